"""Parsing of challenges: what a registry says about the credentials that it wants (RFC 9110 section 11.6.1)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import frozen

MOST_CHARACTERS = 16 * 1024  # of the field

_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARAMETER = re.compile(rf'({_WORD})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*))')
_SCHEME = re.compile(_WORD)
_BETWEEN = re.compile(r"[\s,]*")
_ESCAPED = re.compile(r"\\(.)")


@frozen
class Challenge:
    """A scheme, such as ``bearer``, and its parameters; names are in lower case."""

    scheme: str
    parameters: Mapping[str, str]


def parse_challenges(value: str | None) -> list[Challenge]:
    """
    The challenges of a WWW-Authenticate field, whose lines are joined by commas. What cannot be parsed ends the list.

    Quoted values may hold commas, as the scopes of registries do.
    """
    text = (value or "")[:MOST_CHARACTERS]
    found: list[Challenge] = []
    parameters: dict[str, str] = {}
    at = _skip(text, 0)
    while at < len(text):
        parameter = _PARAMETER.match(text, at) if found else None
        if parameter is not None:
            quoted, plain = parameter[2], parameter[3]
            parameters.setdefault(parameter[1].lower(), plain if quoted is None else _ESCAPED.sub(r"\1", quoted))
            at = parameter.end()
        else:
            scheme = _SCHEME.match(text, at)
            if scheme is None:
                break
            parameters = {}
            found.append(Challenge(scheme[0].lower(), parameters))
            at = scheme.end()
        at = _skip(text, at)
    return found


def _skip(text: str, at: int) -> int:
    match = _BETWEEN.match(text, at)
    return at if match is None else match.end()
