"""The table of incidents, which is a file beside this module."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

from pkgrepo.errors import NotFound

from .shapes import Incident

TABLE: Final = "incidents.json"


@cache
def incidents() -> tuple[Incident, ...]:
    """All incidents, the oldest first."""
    data = files(__package__).joinpath(TABLE).read_bytes()
    found = msgspec.json.decode(data, type=list[Incident])
    return tuple(sorted(found, key=lambda each: each.published_at))


def get_incident(name: str) -> Incident:
    """The incident with a name. :raises NotFound: there is none"""
    for each in incidents():
        if each.name == name:
            return each
    raise NotFound("incident", name)
