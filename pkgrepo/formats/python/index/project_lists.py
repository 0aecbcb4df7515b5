"""
The list of all projects of a repository, which shows the name of each project.

That of a hosted repository also has the serial of each project's last change, for mirrors. A proxy has the names in the
list of its upstream; if the upstream has no list, those of the stored projects. Lists of proxies and virtual
repositories have the names of all members, and are rendered when one of them has changed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Final, TypeVar

import msgspec
from attrs import frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.concurrency.single_flight import StampCache
from pkgrepo.errors import NotFound
from pkgrepo.formats.python.index import pages
from pkgrepo.formats.python.index.indexing import CONTENT_TYPES, is_quarantined
from pkgrepo.formats.python.index.pages import HTML_PAGE, JSON_PAGE, NAME_LIST
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import Reader
from pkgrepo.model import Document, Repository, RepositoryType
from pkgrepo.proxy.caching.questions import DocumentRequest, Held
from pkgrepo.proxy.configuration import Rules
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.trace import Trace
from pkgrepo.repositories.publish.package_lists import ListForm, ListSource, PackageList
from pkgrepo.repositories.publish.splicing import Spliced
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.server import repositories

MOST_DOCUMENTS: Final = 8  # in memory; one of 600,000 names has 30 to 60 MB
MOST_OF_VIEWS: Final = 2  # of the past

Names = Sequence[tuple[str, str]]  # pairs of key and name, by key
Project = tuple[str, int]  # its name, and the serial of its last change
T = TypeVar("T")


def all_names(reader: Reader, repository_id: int, at_ms: int | None = None) -> list[tuple[str, str]]:
    """Keys and names of all projects that are not quarantined (PEP 792), by key; with ``at_ms`` those of that time."""
    hidden = {each.key for each in packages.packages_with_meta(reader, repository_id) if is_quarantined(each)}
    if at_ms is None:
        found = packages.package_names(reader, repository_id)
    else:
        found = packages.package_names_at(reader, repository_id, at_ms)
    return [(key, name) for key, name in found if key not in hidden]


def _all_projects(reader: Reader, repository_id: int) -> list[tuple[str, Project]]:
    hidden = {each.key for each in packages.packages_with_meta(reader, repository_id) if is_quarantined(each)}
    found = packages.package_serials(reader, repository_id)
    return [(key, (name, serial)) for key, name, serial in found if key not in hidden]


def _project(reader: Reader, repository_id: int, key: str) -> Project | None:
    package = packages.find_package(reader, repository_id, key)
    return None if package is None or is_quarantined(package) else (package.name, package.serial)


def _name(reader: Reader, repository_id: int, key: str) -> str | None:
    found = _project(reader, repository_id, key)
    return None if found is None else found[0]


def _forms(json: Callable[[Iterable[T]], bytes], html: Callable[[Iterable[T]], bytes]) -> dict[str, ListForm[T]]:
    def splice_json(serial: int, listed: PackageList[T]) -> Spliced:
        return pages.project_list_json(serial, listed.fragments(JSON_PAGE, json))

    def splice_html(serial: int, listed: PackageList[T]) -> Spliced:
        return pages.project_list_html(serial, listed.fragments(HTML_PAGE, html))

    return {
        JSON_PAGE: ListForm(CONTENT_TYPES[JSON_PAGE], splice_json, zstd=True),
        HTML_PAGE: ListForm(CONTENT_TYPES[HTML_PAGE], splice_html, zstd=True),
    }


# Of hosted repositories,
PROJECT_LISTS: Final[ListSource[Project]] = ListSource(
    serial=repositories.content_serial,
    read_all=_all_projects,
    read_one=_project,
    forms=_forms(pages.listed_json_with_serials, lambda projects: pages.listed_html(name for name, _ in projects)),
)
# and of the others, whose upstreams have serials of their own.
NAME_LISTS: Final[ListSource[str]] = ListSource(
    serial=repositories.names_serial,
    read_all=all_names,
    read_one=_name,
    forms=_forms(pages.listed_json, pages.listed_html),
)


@frozen(eq=False)
class _Member:
    """The names of one repository: of the upstream's list if it is ``held``, else of the catalog."""

    repository: Repository
    serial: int
    held: Held | None


class MergedLists:
    """The lists of all repositories that are not hosted, one instance per process."""

    def __init__(self, question: DocumentRequest) -> None:
        """``question`` asks an upstream for its list, of which the parts have names in fragments of ``NAME_LIST``."""
        self._question = question
        self._kept: StampCache[tuple[int, str], Document] = StampCache(MOST_DOCUMENTS)
        self._of_views: StampCache[tuple[int, str, int], Document] = StampCache(MOST_OF_VIEWS)

    async def get(self, services: Services, repository: Repository, kind: str, *, revalidate: bool) -> Document:
        """
        The present list in one form; for ``revalidate`` see L{Documents.get}.

        :raises UpstreamFailed: an upstream failed, and what it said before is not known
        """
        active = [each for each in services.proxy.resolver.flat_members(repository) if each.active]
        members = [await self._member(services, each, revalidate=revalidate) for each in active]
        stamp = (services.registry.serial, tuple((each.repository.id, each.serial) for each in members))

        async def make() -> Document:
            return await self._make(services, repository, kind, members)

        if repository.view is not None:
            key = (repository.id, kind, repository.view.at_ms)
            return await self._of_views.get(key, stamp, lambda: services.view_turns.make(repository, make))
        return await self._kept.get((repository.id, kind), stamp, make)

    async def _member(self, services: Services, member: Repository, *, revalidate: bool) -> _Member:
        if member.type is RepositoryType.PROXY:
            try:
                held = await services.proxy.documents.get(member, self._question, Trace(), revalidate=revalidate)
            except NotFound:
                pass
            else:
                return _Member(member, held.document.fetched_ms, held)
        return _Member(member, await services.catalog.look(repositories.names_serial, member.id), None)

    async def _make(
        self, services: Services, repository: Repository, kind: str, members: Sequence[_Member]
    ) -> Document:
        # Own names come first, in their own spelling: no upstream is asked for them.
        own_first = sorted(members, key=lambda member: member.held is not None)
        lists = [await self._names(services, repository, member) for member in own_first]
        serial = sum(each.serial for each in members)

        def render() -> Document:
            names = lists[0] if len(lists) == 1 else list(_merge(lists))
            return NAME_LISTS.render(PackageList(names), serial, kind)

        return await services.pools.cpu(render)

    async def _names(self, services: Services, repository: Repository, member: _Member) -> Names:
        proxy = member.repository
        if member.held is None:
            view = repository.view
            names: Names = await services.catalog.scan(all_names, proxy.id, None if view is None else view.at_ms)
            return names
        rules = [
            each for _, each in services.proxy.resolver.flat_member(repository, proxy).rules if each.reserved_names
        ]
        return await services.proxy.documents.read(
            proxy, self._question, member.held, lambda parts: _listed_names(parts, rules)
        )


def _listed_names(parts: PartsFile, rules: Sequence[Rules]) -> Names:
    """The names that an upstream lists, without those that it is not asked for."""
    found: list[tuple[str, str]] = []
    gil = GilReleaser()
    for _, _, body in parts.fragments(NAME_LIST):
        some = msgspec.json.decode(body, type=list[tuple[str, str]])
        found += [each for each in some if not any(rule.reserved_by(each[0]) for rule in rules)] if rules else some
        gil.release_if_due()
    return found


def _merge(lists: Sequence[Names]) -> Iterator[tuple[str, str]]:
    """The names of several lists; of several spellings of one that of the first list."""
    gil = GilReleaser()
    last = ""
    for each in heapq.merge(*lists, key=itemgetter(0)):
        if each[0] != last:
            yield each
        last = each[0]
        gil.release_if_due()
