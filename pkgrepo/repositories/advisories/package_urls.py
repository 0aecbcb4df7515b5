"""Package URLs (https://github.com/package-url/purl-spec) of packages of the formats."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import unquote

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.repositories.format import StoredFormat


@frozen
class PackageUrl:
    """
    What a package URL names: the ``name`` as clients of the format write it; ``version`` is empty if it has none.

    Qualifiers are left out.
    """

    format: StoredFormat
    type: str
    name: str
    version: str


def read_purl(purl: str, formats: Iterable[StoredFormat], pointer: str) -> PackageUrl:
    """
    Read a package URL; ``pointer`` is where it stands in the body or the query.

    :raises Invalid: the text is no package URL, or of a type that none of the formats has
    """
    scheme, _, rest = purl.partition(":")
    path = rest.partition("#")[0].partition("?")[0].strip("/")
    kind, _, named = path.partition("/")
    if scheme != "pkg" or not kind or not named:
        raise Invalid("a package URL is pkg:TYPE/NAME@VERSION", pointer)
    kind = kind.lower()
    by_type = {type_: each for each in formats for type_ in each.package_urls.types}
    if kind not in by_type:
        types = ", ".join(by_type)
        raise Invalid(f"a package URL is pkg:TYPE/NAME@VERSION with one of the types {types}", pointer)
    before, at, after = named.rpartition("@")
    name, version = (unquote(before), unquote(after)) if at and before else (unquote(named), "")
    found = by_type[kind]
    return PackageUrl(found, kind, found.package_urls.name(name), version)
