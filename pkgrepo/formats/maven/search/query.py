"""
The query of a search, in the part of Solr's syntax that build tools and editors send.

Terms are words that the name contains, or fields: ``g:`` group, ``a:`` artifact, ``v:`` version, ``p:`` packaging,
``l:`` classifier, ``1:`` SHA-1 of a file. All of them must match (``AND`` between them may be left out). A ``*`` in a
group or artifact stands for any text, and a value may be in quotes. Classes (``c:``, ``fc:``) are
not indexed, and a query for them is refused: no response would be a wrong one.

A search looks into the repositories that the caller may read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from attrs import field, frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.listing import folders_of
from pkgrepo.gateway.services import Services
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Extent, Identity, Repository, RepositoryType
from pkgrepo.storage.catalog.packages.search.matching import Match
from pkgrepo.storage.catalog.rows import dump, like
from pkgrepo.untrusted.text import quoted

LONGEST: Final = 500  # characters
MOST_TERMS: Final = 10
MOST_ROWS: Final = 200
MOST_SKIPPED: Final = 100_000

_TERM: Final = re.compile(r'(?:(g|a|v|p|l|1|c|fc):\s*)?(?:"([^"]*)"|(\S+))\s*')
_FIELDS: Final = {"g": "group", "a": "artifact", "v": "version", "p": "packaging", "l": "classifier", "1": "sha1"}


@frozen
class Query:
    """The terms of a query."""

    words: tuple[str, ...] = field(default=())
    group: str | None = None
    artifact: str | None = None
    version: str | None = None
    packaging: str | None = None
    classifier: str | None = None
    sha1: str | None = None

    def match(self) -> Match:
        """What the catalog looks for."""
        name = f"{_pattern(self.group)}:{_pattern(self.artifact)}"
        return Match(
            keys=(name, *(like(word) for word in self.words)),
            best=like(f":{self.words[0]}")[:-1] if self.words else "",
            version=self.version,
            meta=None if self.packaging is None else f'"packaging":{dump(self.packaging)}',
            attrs=None if self.classifier is None else f'"classifier":{dump(self.classifier)}',
            digests=None if self.sha1 is None else f'"sha1":{dump(self.sha1.lower())}',
        )


def read_query(text: str) -> Query:
    """The query in a text. :raises Invalid: it is too long, names a field twice, or asks for classes"""
    text = text.strip()
    if len(text) > LONGEST:
        raise Invalid(f"the query is longer than {LONGEST} characters", "q")
    fields: dict[str, Any] = {}
    words: list[str] = []
    at = count = 0
    while at < len(text):
        match = _TERM.match(text, at)
        assert match is not None, "any character begins a word"
        at, count = match.end(), count + 1
        name, value = match[1], match[2] if match[2] is not None else match[3]
        if count > 2 * MOST_TERMS:
            raise Invalid(f"the query has more than {MOST_TERMS} terms", "q")
        if name is None:
            if value != "AND" and value.strip("*:"):
                words.append(value)
        elif name in _FIELDS:
            if _FIELDS[name] in fields:
                raise Invalid(f"the query has the field {quoted(name)} twice", "q")
            fields[_FIELDS[name]] = value
        else:
            raise Invalid("classes are not indexed here; search by name, or by g:, a:, v:, p:, l: and 1: (SHA-1)", "q")
    if len(words) > MOST_TERMS:
        raise Invalid(f"the query has more than {MOST_TERMS} terms", "q")
    return Query(words=tuple(words), **fields)


def read_number(text: str | None, default: int, most: int, name: str) -> int:
    """A parameter that is a number, at most ``most``. :raises Invalid: the text is no such number"""
    if text is None or text == "":
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise Invalid(f"{name} must be a number", name)
    return min(int(text), most)


def _pattern(value: str | None) -> str:
    """The operand of LIKE for a group or artifact; None for any."""
    return "%" if value is None else "%".join(like(part)[1:-1] for part in value.split("*"))


HAS = "has:"
NONE = "none:"


def filter_versions(versions: Sequence[str], wanted: str | None) -> list[str]:
    """
    The versions that pass: those that contain X for ``has:X``, do not for ``none:X``, and begin with any other text.

    ``|`` separates several filters, all of which apply.
    """
    found = list(versions)
    for each in (wanted or "").split("|"):
        if each.startswith(HAS):
            found = [version for version in found if each.removeprefix(HAS) in version]
        elif each.startswith(NONE):
            found = [version for version in found if each.removeprefix(NONE) not in version]
        else:
            found = [version for version in found if version.startswith(each)]
    return found


FORMAT = "maven"


@frozen
class SearchScope:
    """
    Repositories with packages of their own, in the order in which the first one is shown.

    ``shown`` is the repository that the caller asked, None for all. Without ``whole`` the caller may read only some of
    its packages.
    """

    repositories: Sequence[Repository]
    identity: Identity
    shown: Repository | None = None
    whole: bool = True

    @property
    def ids(self) -> list[int]:
        """The ids of the repositories, in order."""
        return [each.id for each in self.repositories]


async def scope_of(services: Services, request: Request, repository: Repository) -> SearchScope:
    """
    One repository, or the members of a virtual one.

    :raises AuthenticationRequired, RepositoryInactive: see L{Access.require}
    """
    identity = await services.access.identify(request)
    whole = await services.access.authorizer.may(identity, Action.READ, repository)
    if not whole:
        await services.access.require(identity, Action.READ, repository, Extent.SOME)
    return SearchScope(
        _hosted_first([*folders_of(services, repository).members().values()]), identity, repository, whole
    )


async def scope_of_all(services: Services, request: Request) -> SearchScope:
    """Every repository that the caller may read as a whole, except hidden ones whose settings they may not change."""
    identity = await services.access.identify(request)
    await services.registry.refresh()
    every = [
        each
        for each in services.registry.listed()
        if each.format == FORMAT and each.active and each.type is not RepositoryType.VIRTUAL
    ]
    readable = await services.access.authorizer.may_each(identity, [(Action.READ, each, None) for each in every])
    found = [
        each
        for each, may in zip(every, readable, strict=True)
        if may and await services.access.may_list(identity, each)
    ]
    return SearchScope(_hosted_first(found), identity)


def _hosted_first(repositories: Sequence[Repository]) -> Sequence[Repository]:
    """Repositories in the order in which they are searched: an upstream's artifact hides none of ours."""
    return sorted(repositories, key=lambda each: each.type is not RepositoryType.HOSTED)
