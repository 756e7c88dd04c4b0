"""Encoders for `dense.hybrid`: `minilm.MiniLM`, which needs no service and no torch, and
adapters to `sentence_transformers`, `fastembed` and servers that speak OpenAI's embeddings API
(`openai_compatible`).

Each module imports its library when its encoder is made, and raises `MissingExtra` where that is
not installed. How vectors are used is `dense`.
"""
