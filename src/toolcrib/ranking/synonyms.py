"""Words of tool work that stand for each other: a small table, as terms.

English, by hand, from general knowledge of what tools do and how their parameters are abbreviated;
nothing in it comes from a catalogue. How much a synonym counts is `reading`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from toolcrib.ranking.text import Words

__all__ = ["synonyms"]

_TABLE = """
create add make insert build, create generate produce,
delete remove erase drop clear removal deletion, fetch retrieve get obtain,
view show display list see, update edit modify change alter,
find search lookup query locate discover, send post submit, publish release post,
start run execute launch trigger, stop end terminate kill halt, buy purchase order shop,
sell sale sold, book reserve reservation, calculate compute calc computation calculation evaluate,
convert conversion transform, compare comparison diff difference,
check verify validate validation verification, cancel cancellation, schedule appointment calendar,
meeting event appointment, translate translation translator, summarize summary summarization,
copy duplicate clone, rename name, join merge combine concatenate, split divide separate,
recommend recommendation suggest suggestion, predict prediction forecast,
estimate estimation approximate, analyze analysis analytics analyse, monitor track watch,
register signup enroll, login signin authenticate auth authentication, read open load,
write save store, upload attach, download fetch, enable activate, disable deactivate,
fix repair correct, draw paint sketch, rank sort order, filter select, rate review rating,
encrypt encryption encode, decrypt decryption decode, compress zip archive, extract parse scrape,
deploy deployment release, install setup, describe description, invite invitation,
respond reply answer, explain explanation, solve solution, weather forecast temperature climate,
movie film cinema, show series tv television, picture image photo photograph, email mail,
message sms chat, flight plane airline airplane airport, hotel accommodation lodging,
restaurant dining food, car vehicle automobile, job career employment vacancy hiring,
news headline article, stock share ticker equity, currency exchange money forex,
crypto cryptocurrency bitcoin, song music track, audio sound voice, speech voice,
website site webpage web page url, url link, internet web online, folder directory,
repo repository git, document doc, user account profile, customer client, employee staff worker,
price cost, salary wage income, house home property, apartment rent rental property,
city town place, location place address position, route direction navigation, distance far,
doctor physician, medical health medicine, drug medication medicine, disease illness,
recipe cook cooking dish, food nutrition diet, exercise workout fitness gym, sport match,
team club, course class lesson tutorial, school university college, learn study education,
child kid children, password credential, reminder remind alarm, alert notification notify,
note memo, task todo, definition define meaning dictionary, gift present, pet animal, dog puppy,
cat kitten, loan mortgage, payment pay paid, invoice bill receipt, discount coupon deal promo,
law legal, lawyer attorney, book novel, paper article research academic scholarly, author writer,
vacation holiday trip travel tour, attraction sightseeing tour, concert event, average mean,
maximum max highest largest, minimum min lowest smallest, sum total add addition,
multiply multiplication product, subtract subtraction minus, divide division quotient,
database db sql, error bug problem issue, code program script programming,
chart graph plot diagram visualize visualization, phone telephone mobile, info information detail,
config configuration setting, preference setting, number num, latitude lat, longitude lon lng,
language lang, parameter param, identifier id, environment env, application app, organization org,
company business, command shell terminal, person people, domain website,
shipment shipping delivery parcel package, store shop retail, clothes clothing outfit fashion,
beauty makeup cosmetics, astrology horoscope zodiac, lottery lotto, joke funny humor,
quote quotation, poem poetry, logo icon, interview resume cv job, investment invest portfolio,
tax taxes taxation, budget expense spending, earthquake seismic, train rail railway, bus transit,
taxi cab ride, map geocode, timezone clock, color colour, video youtube clip, playlist song,
podcast episode, celebrity actor actress, government public, population demographic,
country nation, world global, history historical past, statistics stats statistic,
trend popular trending, similar related, random shuffle, text string, table sheet spreadsheet,
row record, column field, presentation slide powerpoint, word vocabulary, grammar spelling,
essay writing, keyword seo, comment feedback, star rating, follower subscriber, tag label,
branch commit, pr pull, container docker, server host, network ip, cloud aws
"""


@cache
def synonyms() -> Mapping[str, tuple[str, ...]]:
    """For each term of the table those that may stand for it, in the table's order."""
    words = Words()
    found: dict[str, dict[str, None]] = {}
    for group in _TABLE.split(","):
        terms = dict.fromkeys(term for word in group.split() for term in words.terms(word))
        for term in terms:
            found.setdefault(term, {}).update(terms)
    return {term: tuple(other for other in near if other != term) for term, near in found.items()}
