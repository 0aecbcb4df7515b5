"""Package URLs (https://github.com/package-url/purl-spec) of packages that advisories are about."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from pkgrepo.errors import Invalid

TYPES: Final = {"npm": "npm", "pypi": "PyPI", "maven": "Maven", "gem": "RubyGems"}  # with OSV's words for them


def read_purl(purl: str, version: str = "") -> tuple[str, str, str]:
    """
    Ecosystem, name and version of a package URL; its own version replaces ``version``.

    :raises Invalid: it is none, or of a type that no format has
    """
    scheme, _, rest = purl.partition(":")
    path = rest.partition("#")[0].partition("?")[0].strip("/")
    kind, _, named = path.partition("/")
    if scheme != "pkg" or kind.lower() not in TYPES or not named:
        raise Invalid(
            f"a package URL is pkg:TYPE/NAME@VERSION with one of the types {', '.join(TYPES)}", "/package/purl"
        )
    before, at, after = named.rpartition("@")
    name, version = (unquote(before), unquote(after)) if at and before else (unquote(named), version)
    word = TYPES[kind.lower()]
    return word, name.replace("/", ":", 1) if word == "Maven" else name, version
