"""Models of real providers for the loop: `openai.OpenAIModel`, `anthropic.AnthropicModel`.

They send one request and read one stream; leading the conversation is `loop`, the wire formats are
`providers`. Nothing is retried here once a response has begun. The SDKs are extras, imported only
by the two modules named after them; `model_named` picks one by a word such as `openai:gpt-5`.
"""

from toolcrib.errors import MissingExtra
from toolcrib.models.choosing import model_named
from toolcrib.models.failures import ModelFailed
from toolcrib.models.response import Response, Usage

__all__ = ["MissingExtra", "ModelFailed", "Response", "Usage", "model_named"]
