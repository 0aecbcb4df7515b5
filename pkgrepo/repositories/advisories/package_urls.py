"""Package URLs (https://github.com/package-url/purl-spec) of packages of the formats."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from pkgrepo.errors import Invalid

# With OSV's words for them.
TYPES: Final = {"npm": "npm", "pypi": "PyPI", "maven": "Maven", "gem": "RubyGems"}
# With the names of formats.
FORMATS: Final = {
    "npm": "npm",
    "pypi": "python",
    "maven": "maven",
    "gem": "ruby",
    "conda": "conda",
    "docker": "docker",
    "oci": "docker",
}


def read_purl(purl: str, version: str = "") -> tuple[str, str, str]:
    """
    Ecosystem, name and version of a package URL; its own version replaces ``version``.

    :raises Invalid: it is none, or of a type that no database of vulnerabilities has
    """
    kind, name, found = split_purl(purl)
    if kind not in TYPES:
        raise Invalid(
            f"a package URL is pkg:TYPE/NAME@VERSION with one of the types {', '.join(TYPES)}", "/package/purl"
        )
    return TYPES[kind], name, found or version


def split_purl(purl: str) -> tuple[str, str, str]:
    """
    Type, name and version of a package URL; the version is empty if it has none. Qualifiers are left out.

    The name is as clients of the type's format write it: group and artifact of Maven have a colon between them.

    :raises Invalid: it is none
    """
    scheme, _, rest = purl.partition(":")
    path = rest.partition("#")[0].partition("?")[0].strip("/")
    kind, _, named = path.partition("/")
    if scheme != "pkg" or not kind or not named:
        raise Invalid("a package URL is pkg:TYPE/NAME@VERSION", "/package/purl")
    kind = kind.lower()
    before, at, after = named.rpartition("@")
    name, version = (unquote(before), unquote(after)) if at and before else (unquote(named), "")
    return kind, name.replace("/", ":", 1) if kind == "maven" else name, version
