"""Two rankings as one: what holds for any two."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from toolcrib.dense.fusion import Scale, fused, scale_of
from toolcrib.ranking.ranker import Hit

KEYS = st.text("abcdef", min_size=1, max_size=2)
SCORES = st.floats(0.001, 100)
LEXICAL = st.dictionaries(KEYS, st.tuples(SCORES, st.booleans()), max_size=12).map(
    lambda found: sorted(
        (Hit(key, score, exact) for key, (score, exact) in found.items()),
        key=lambda hit: (not hit.exact, -hit.score, hit.name),
    )
)
ALIKE = st.dictionaries(KEYS, st.floats(0.001, 1), max_size=12)
WEIGHTS = st.floats(0, 1)
USUAL = st.floats(0, 0.5)


@given(LEXICAL, ALIKE, USUAL, WEIGHTS)
def test_everything_is_ranked_once_best_first_and_the_named_before_all(
    hits: list[Hit], alike: dict[str, float], usual: float, weight: float
) -> None:
    ranked = fused(hits, alike, scale_of(hits, alike, usual), weight)
    assert sorted(hit.name for hit in ranked) == sorted({h.name for h in hits} | alike.keys())
    assert ranked == sorted(ranked, key=lambda hit: (-hit.score, hit.name))
    exact = [hit.name for hit in hits if hit.exact]
    assert {hit.name for hit in ranked[: len(exact)]} == set(exact)
    assert all(hit.score > 0 and hit.exact == (hit.name in exact) for hit in ranked)


@given(LEXICAL, ALIKE, USUAL, WEIGHTS, st.randoms())
def test_the_order_in_which_things_were_found_does_not_matter(
    hits: list[Hit], alike: dict[str, float], usual: float, weight: float, random: object
) -> None:
    scale = scale_of(hits, alike, usual)
    other = list(alike.items())
    random.shuffle(other)  # type: ignore[attr-defined]
    assert fused(hits[::-1], dict(other), scale, weight) == fused(hits, alike, scale, weight)


@given(LEXICAL, WEIGHTS)
def test_without_likenesses_the_lexical_order_stays(hits: list[Hit], weight: float) -> None:
    ranked = fused(hits, {}, scale_of(hits, {}, 0.0), weight)
    scores = {hit.name: hit.score for hit in hits}
    plain = [scores[hit.name] for hit in ranked if not hit.exact]
    assert all(first >= second * (1 - 1e-12) for first, second in pairwise(plain))


@given(LEXICAL, ALIKE, USUAL, WEIGHTS, st.data())
def test_what_becomes_more_alike_never_ranks_lower(
    hits: list[Hit], alike: dict[str, float], usual: float, weight: float, data: st.DataObject
) -> None:
    if not alike:
        return
    scale = scale_of(hits, alike, usual)
    key = data.draw(st.sampled_from(sorted(alike)))
    closer = {**alike, key: data.draw(st.floats(alike[key], 1))}
    before = [hit.name for hit in fused(hits, alike, scale, weight)]
    after = [hit.name for hit in fused(hits, closer, scale, weight)]
    assert after.index(key) <= before.index(key)


def test_scores_are_weighed_on_one_scale() -> None:
    hits = [Hit("both", 4.0), Hit("words", 2.0)]
    alike = {"both": 0.5, "meaning": 0.8}
    assert scale_of(hits, alike, 0.2) == Scale(4.0, 0.8, 0.2)
    ranked = fused(hits, alike, Scale(4.0, 0.8, 0.2), 0.5)
    assert {hit.name: round(hit.score, 3) for hit in ranked} == {
        "both": 0.75,  # ½·1 + ½·0.5
        "words": 0.5,  # no vector yet: by its words alone
        "meaning": 0.5,  # ½·0 + ½·1
    }
    assert [hit.name for hit in ranked] == ["both", "meaning", "words"]
