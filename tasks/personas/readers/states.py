"""What may stand after a city: the states of the United States, and countries."""

from __future__ import annotations

from functools import cache

_NAMES = """
Alabama AL, Alaska AK, Arizona AZ, Arkansas AR, California CA, Colorado CO, Connecticut CT, Delaware DE,
Florida FL, Georgia GA, Hawaii HI, Idaho ID, Illinois IL, Indiana IN, Iowa IA, Kansas KS, Kentucky KY,
Louisiana LA, Maine ME, Maryland MD, Massachusetts MA, Michigan MI, Minnesota MN, Mississippi MS, Missouri MO,
Montana MT, Nebraska NE, Nevada NV, New Hampshire NH, New Jersey NJ, New Mexico NM, New York NY, North
Carolina NC, North Dakota ND, Ohio OH, Oklahoma OK, Oregon OR, Pennsylvania PA, Rhode Island RI, South
Carolina SC, South Dakota SD, Tennessee TN, Texas TX, Utah UT, Vermont VT, Virginia VA, Washington WA, West
Virginia WV, Wisconsin WI, Wyoming WY
"""
US_STATES = frozenset(
    name.casefold()
    for entry in _NAMES.replace("\n", " ").split(",")
    for name in (*entry.strip().rsplit(" ", 1), entry.strip()[-2:] + ".")
) | {"d.c.", "dc", "district of columbia"}
"""Names and abbreviations, in lower case."""
_ALSO_COUNTRIES = """
usa, us, u.s., u.s.a., united states of america, uk, u.k., england, scotland, wales, northern ireland, holland,
the netherlands, czech republic, korea, south korea, russia, uae
"""


@cache
def countries() -> frozenset[str]:
    """English names of countries, in lower case."""
    from phonenumbers.geodata.locale import LOCALE_DATA  # of all languages, which few runs need

    told = [(names.get("en", ""), names) for names in LOCALE_DATA.values()]
    named = (names[name[1:]] if name.startswith("*") else name for name, names in told)  # "*fr": as in French
    return frozenset(name.casefold() for name in named if name) | {each.strip() for each in _ALSO_COUNTRIES.split(",")}
