"""Finding tools by meaning too: `Hybrid` joins any `ranking.Ranker` with an encoder's vectors.

Needs the extra `dense`. Encoders are `encoders`.
"""

from toolcrib.dense.encoder import Encoder
from toolcrib.dense.hybrid import Hybrid
from toolcrib.dense.vectors import VectorCache

__all__ = ["Encoder", "Hybrid", "VectorCache"]
