"""Which tools fit a query, best first: the contract of a ranker, and the lexical index behind
`tool_search`. What may be found and what becomes of a hit is `discovery`."""

from toolcrib.ranking.index import Index
from toolcrib.ranking.learned import Learned
from toolcrib.ranking.ranker import Hit, Ranker

__all__ = ["Hit", "Index", "Learned", "Ranker"]
