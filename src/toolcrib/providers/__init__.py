"""The wire formats of model providers: definitions out, calls in, results out.

Pure translation, one module per provider (`openai`, `anthropic`, `gemini`, `mcp`); no SDK is
imported and nothing is sent. What may be seen or called is decided elsewhere (`discovery`, `turn`).
The rules cited as O…, A… and G… are those of the wire rules for tools.
"""
