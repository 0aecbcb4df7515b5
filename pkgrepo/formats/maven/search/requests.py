"""Answers searches for artifacts in the form that the search of the public repository has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

from attrs import frozen

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.formats.maven.names import Coordinates
from pkgrepo.formats.maven.paths import parse_path
from pkgrepo.formats.maven.refusals import ERRORS
from pkgrepo.formats.maven.search import questions
from pkgrepo.formats.maven.search.query import (
    MOST_ROWS,
    MOST_SKIPPED,
    Query,
    SearchScope,
    read_number,
    read_query,
    scope_of_all,
)
from pkgrepo.gateway.services import Services
from pkgrepo.http.answering.dispatch import App, answering, refuse_unrouted
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Refusal, Response, json_response
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, Identity, Package, Repository, RepositoryType, Version
from pkgrepo.proxy.resolving.rules import MemberJudges
from pkgrepo.storage.catalog.packages import packages, versions
from pkgrepo.storage.catalog.packages.search import matching
from pkgrepo.storage.catalog.packages.search.matching import Match, matching_packages
from pkgrepo.storage.catalog.packages.tree import list_files

SOLR: Final = b"/solrsearch/select"

Question = Callable[[Services, Request, Repository, Identity, str], Awaitable[Response]]

QUESTIONS: Final[Mapping[bytes, Question]] = {
    b"/api/maven/details/": questions.details,
    b"/api/maven/versions/": questions.versions,
    b"/api/maven/latest/version/": questions.latest_version,
    b"/api/maven/latest/file/": questions.latest_file,
    b"/api/maven/latest/details/": questions.latest_details,
    b"/api/badge/latest/": questions.badge,
}

app = App()


class SearchSite:
    """Searches and questions over all Maven repositories."""

    app = app

    def __init__(self, services: Services) -> None:
        self._services = services

    @app.route("/", methods=["GET", "HEAD"])
    @app.route("/<raw:rest>", methods=["GET", "HEAD"])
    @answering(ERRORS)
    async def route(self, request: Request, rest: str = "") -> Response:  # noqa: ARG002 - the raw path is read
        """Answer any of the addresses."""
        path = request.raw_path
        if path == SOLR:
            return await search(self._services, request, await scope_of_all(self._services, request))
        for prefix, question in QUESTIONS.items():
            if path.startswith(prefix):
                return await self._ask(request, path.removeprefix(prefix), question)
        raise Refusal(404, "nothing is served at this address", "not_found")

    async def _ask(self, request: Request, raw: bytes, question: Question) -> Response:
        storage, _, rest = raw.partition(b"/")
        name, _, below = rest.partition(b"/")
        try:
            target = parse_path(below.rstrip(b"/") + b"/", directory_ok=True)
        except Invalid:
            raise NotFound("path", below.decode("latin-1")) from None
        if not target.path:
            raise NotFound("path", "")
        repository, identity = await questions.find_repository(
            self._services, request, storage.decode("latin-1"), name.decode("latin-1")
        )
        request.repository = repository.path
        return await question(self._services, request, repository, identity, target.path)


refuse_unrouted(SearchSite.app, ERRORS)


ROWS: Final = 20
MOST_CHECKED: Final = 10_000  # packages whose permissions are checked one by one
CORES: Final = (None, "", "ga", "gav")


async def search(services: Services, request: Request, scope: SearchScope) -> Response:
    """
    A page of the artifacts that match ``q``, or with ``core=gav`` of their versions.

    :raises Invalid: a parameter has a wrong value
    """
    text = request.parameter(b"q") or ""
    rows = read_number(request.parameter(b"rows"), ROWS, MOST_ROWS, "rows")
    start = read_number(request.parameter(b"start"), 0, MOST_SKIPPED, "start")
    core, form = request.parameter(b"core"), request.parameter(b"wt")
    if core not in CORES:
        raise Invalid("core must be ga or gav", "core")
    if form not in (None, "", "json"):
        raise Invalid("wt must be json", "wt")
    page = await _find(services, scope, read_query(text), core == "gav", start, rows)
    shown = {"q": text, "core": core or "ga", "rows": str(rows), "start": str(start), "wt": "json"}
    body: dict[str, Any] = {
        "responseHeader": {"status": 0, "QTime": 0, "params": shown},
        "response": {"numFound": page.total, "start": start, "docs": page.documents},
        "spellcheck": {"suggestions": []},
    }
    return json_response(body, headers=NO_STORE)


async def _find(services: Services, scope: SearchScope, query: Query, gav: bool, start: int, rows: int) -> Page:
    match = query.match()
    readable: frozenset[str] | None = None
    if not scope.whole and scope.shown is not None:
        keys = await services.catalog.scan(matching_packages, scope.ids, match, 0, MOST_CHECKED)
        readable = frozenset(await services.access.allowed(scope.identity, Action.READ, scope.shown, keys))
    versions = partial(find_artifact_versions, joined=scope.shown is not None)
    members = [await _judged(services, scope.shown or each, each) for each in scope.repositories]
    find = partial(versions if gav else find_artifacts, members=members, match=match)
    page: Page = await services.catalog.scan(find, start=start, rows=rows, readable=readable)
    return page


async def _judged(services: Services, asked: Repository, member: Repository) -> MemberJudges:
    return await services.proxy.judges.of_member(services.proxy.resolver.flat_member(asked, member))


MOST_FILES: Final = 200  # of a version, whose endings are shown


@frozen
class Page:
    """A page of documents, and the number of all."""

    documents: list[dict[str, Any]]
    total: int


def find_artifacts(
    r: Reader, members: Sequence[MemberJudges], match: Match, start: int, rows: int, readable: frozenset[str] | None
) -> Page:
    """
    The artifacts that match; ``readable`` are the only keys that may be shown, None for all.

    Those of which rules hide all versions are left out, though counted.
    """
    ids = [each.flat.repository.id for each in members]
    if readable is None:
        total = matching.count_packages(r, ids, match)
        keys = matching.matching_packages(r, ids, match, start, rows)
    else:
        shown = sorted(readable)
        total, keys = len(shown), shown[start : start + rows]
    return Page([each for key in keys for each in _artifact(r, members, key)], total)


def find_artifact_versions(
    r: Reader,
    members: Sequence[MemberJudges],
    match: Match,
    start: int,
    rows: int,
    readable: frozenset[str] | None,
    *,
    joined: bool,
) -> Page:
    """
    The versions that match, like ``find_artifacts``.

    With ``joined`` the repositories are one to clients: of an artifact that a hosted one has, versions of others are
    left out, though counted.
    """
    ids = [each.flat.repository.id for each in members]
    if readable is None:
        total = matching.count_versions(r, ids, match)
        found = matching.matching_versions(r, ids, match, start, rows)
    else:
        every = [each for each in matching.matching_versions(r, ids, match, 0, 10_000) if each[0] in readable]
        total, found = len(every), every[start : start + rows]
    return Page([each for key, version in found for each in _version(r, members, key, version, joined)], total)


def _artifact(r: Reader, members: Sequence[MemberJudges], key: str) -> list[dict[str, Any]]:
    for judges in members:
        repository = judges.flat.repository
        package = packages.find_package(r, repository.id, key)
        if package is None:
            continue
        hidden = _hidden(r, judges, package)
        count = versions.count_versions(r, package.id)
        latest = versions.find_highest(r, package.id)
        if hidden:
            shown = [each for each in versions.list_versions(r, package.id) if each.text not in hidden]
            count, latest = len(shown), shown[-1] if shown else None
        if latest is not None:
            document = _document(r, repository, package, latest)
            return [{"id": key, **document, "latestVersion": latest.text, "versionCount": count}]
    return []


def _hidden(r: Reader, judges: MemberJudges, package: Package) -> Collection[str]:
    """The versions of a package that rules hide, as texts."""
    judge = judges(r, package.key)
    return () if judge is None else judge.hidden_files(r, package.id)[0]


def _version(
    r: Reader, members: Sequence[MemberJudges], key: str, version_key: str, joined: bool
) -> list[dict[str, Any]]:
    owned = False
    for judges in members:
        repository = judges.flat.repository
        package = packages.find_package(r, repository.id, key)
        if joined and owned and repository.type is not RepositoryType.HOSTED:
            break
        owned = owned or (package is not None and repository.type is RepositoryType.HOSTED)
        version = None if package is None else versions.find_version(r, package.id, version_key)
        if package is not None and version is not None and version.text not in _hidden(r, judges, package):
            shown = _document(r, repository, package, version)
            return [{"id": f"{key}:{version.text}", **shown, "v": version.text}]
    return []


def _document(r: Reader, repository: Repository, package: Package, version: Version) -> dict[str, Any]:
    group, _, artifact = package.key.partition(":")
    directory = Coordinates(group, artifact, version.text).directory
    some = list_files(r, repository.id, directory, "", MOST_FILES)
    endings = {_ending(file.attrs) for file in some if file.role is None and file.version_id == version.id}
    return {
        "g": group,
        "a": artifact,
        "repositoryId": repository.path,
        "p": version.meta.get("packaging", "jar"),
        "timestamp": round(version.published_at.timestamp() * 1000),
        "text": [group, artifact],
        "ec": sorted(endings),
    }


def _ending(attrs: Mapping[str, Any]) -> str:
    classifier = attrs.get("classifier")
    return (f"-{classifier}" if classifier else "") + f".{attrs.get('extension', '')}"
