"""Answers requests to the JSON API of one repository; what is looked up here is in hosted ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from pkgrepo.errors import AuthenticationRequired, NotFound
from pkgrepo.formats.rubygems.api import records
from pkgrepo.formats.rubygems.api.records import OWNER, ROW, Release, gem_record, read_entry, version_record
from pkgrepo.formats.rubygems.marshal import VERSION, Stream, array, integer
from pkgrepo.formats.rubygems.names import RUBY, full_version, is_name
from pkgrepo.gateway.answers.content import document_cache_control
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import JSON, Answer, Refusal
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, Repository, RepositoryType
from pkgrepo.repositories.search_index import Query, facet

Row = Mapping[str, Any]

PAGE: Final = 30  # gems on a page of a search, as on the public registry
MOST_PAGES: Final = 100
MOST_OWN: Final = 300  # gems in the list of one's own gems
MOST_NAMES: Final = 200  # gems whose dependencies are asked for at once
MOST_RELEASES: Final = 20_000  # versions of these together
NO_GEM: Final = "This rubygem could not be found."
NO_VERSION: Final = "This version could not be found."
TOO_MANY: Final = "Too many gems! (use --full-index instead)"
MARSHAL: Final = b"application/octet-stream"
_encode = msgspec.json.Encoder().encode


def dependency_rows(releases: Iterable[Release]) -> list[Row]:
    """A row for each version: its name, number and platform, and pairs of name and requirement."""
    return [
        {
            "name": each.spec.name,
            "number": each.spec.number,
            "platform": each.spec.platform,
            "dependencies": [
                [needed.name, ", ".join(f"{operator} {bound}" for operator, bound in needed.requirement)]
                for needed in each.spec.runtime_dependencies
            ],
        }
        for each in releases
    ]


def marshal_rows(rows: Sequence[Row]) -> bytes:
    """The rows as a Marshal stream."""
    stream = Stream()
    return VERSION + array([_row(stream, each) for each in rows])


def _row(stream: Stream, row: Row) -> bytes:
    parts = [b"{" + integer(len(row))]
    for key, value in row.items():
        parts.append(stream.symbol(key))
        if isinstance(value, str):
            parts.append(stream.string(value))
        else:
            parts.append(array([stream.strings(pair) for pair in value]))
    return b"".join(parts)


class ApiRequests:
    """Reads by scripts and bots, and by old versions of Bundler."""

    def __init__(self, services: Services, repository: Repository) -> None:
        self._services = services
        self._repository = repository

    def handler(self, parts: tuple[str, ...]) -> Callable[[Request], Any] | None:  # noqa: PLR0911 - one for each path
        """The method that answers a GET of a path below ``/api/``, or None."""
        match parts:
            case ("v1", "gems.json"):
                return self.own
            case ("v1", "search.json"):
                return self.search
            case ("v1", ("dependencies" | "dependencies.json") as document):
                return lambda request: self.dependencies(request, json=document.endswith(".json"))
            case ("v1", "gems", file) if _is_json(file):
                return lambda request: self.gem(request, file.removesuffix(".json"))
            case ("v1", "versions", file) if _is_json(file):
                return lambda request: self.versions(request, file.removesuffix(".json"))
            case ("v1", "versions", name, "latest.json") if is_name(name):
                return lambda request: self.latest(request, name)
            case ("v2", "rubygems", name, "versions", file) if is_name(name) and file.endswith(".json"):
                return lambda request: self.version(request, name, file.removesuffix(".json"))
        return None

    async def gem(self, request: Request, name: str) -> Answer:
        """A gem in its latest version."""
        await self._admit(request, name)
        return self._record(request, await self.find_latest(name), NO_GEM)

    async def version(self, request: Request, name: str, number: str) -> Answer:
        """A gem in one version, for the platform in the query."""
        await self._admit(request, name)
        key = full_version(number, request.parameter(b"platform") or RUBY)
        return self._record(request, await self.find_version(name, key), NO_VERSION)

    async def versions(self, request: Request, name: str) -> Answer:
        """All live versions of a gem, the highest first."""
        await self._admit(request, name)
        body = await self.find_versions(name)
        if body is None:
            raise Refusal(404, NO_GEM, "not_found")
        return self._json(body)

    async def latest(self, request: Request, name: str) -> Answer:
        """The number of the latest version; of a gem that does not exist it is ``unknown``."""
        await self._admit(request, name)
        found = await self.find_latest(name)
        return self._json(_encode({"version": "unknown" if found is None else found.spec.number}))

    async def search(self, request: Request) -> Answer:
        """A page of the gems whose name, summary or description has all words of the query."""
        await self._admit(request, None)
        words = tuple((request.parameter(b"query") or "").lower().split())
        page = _number(request.parameter(b"page"))
        return await self._find(request, Query(words=words), (page - 1) * PAGE, PAGE)

    async def own(self, request: Request) -> Answer:
        """The gems that the caller owns."""
        identity = await self._services.access.admit(request, Action.READ, self._repository)
        await self._admit(request, None)
        if identity.anonymous:
            raise AuthenticationRequired
        return await self._find(request, Query(facets=((facet(OWNER, identity.username),),)), 0, MOST_OWN)

    async def dependencies(self, request: Request, *, json: bool) -> Answer:
        """
        The dependencies of the gems in the query.

        :raises Refusal: they are too many; Bundler then reads the legacy index
        """
        await self._admit(request, None)
        names = [each for each in dict.fromkeys((request.parameter(b"gems") or "").split(",")) if each]
        if len(names) > MOST_NAMES:
            raise Refusal(422, TOO_MANY, "too_many")
        body = await self._services.catalog.scan(_dependencies, self._repository.id, names, json)
        return self._json(body) if json else self._answer(body, MARSHAL)

    async def find_latest(self, name: str) -> Release | None:
        """The latest version of a gem; None if there is no such gem."""
        found: Release | None = await self._services.catalog.look(records.find_latest, self._repository.id, name)
        return found

    async def find_version(self, name: str, key: str) -> Release | None:
        """One version of a gem, or None."""
        found: Release | None = await self._services.catalog.look(records.find_version, self._repository.id, name, key)
        return found

    async def find_versions(self, name: str) -> bytes | None:
        """The records of all versions of a gem in JSON; None if there is no such gem."""
        return await self._services.catalog.scan(_versions, self._repository.id, name)

    async def _find(self, request: Request, query: Query, start: int, count: int) -> Answer:
        searches = self._services.searches
        index = await searches.get(self._repository, ROW, read_entry)
        async with searches.semaphore.hold((request.client_address,)):
            found = await self._services.pools.cpu(index.find, query, start, count)
        url = self._url(request)
        return self._json(
            await self._services.catalog.scan(_gems, self._repository.id, [key for key, _ in found.keys], url)
        )

    def _record(self, request: Request, found: Release | None, absent: str) -> Answer:
        if found is None:
            raise Refusal(404, absent, "not_found")
        return self._json(_encode(gem_record(found, self._url(request))))

    async def _admit(self, request: Request, name: str | None) -> None:
        await self._services.access.admit(request, Action.READ, self._repository, name)
        if name is None and self._repository.type is not RepositoryType.HOSTED:
            # Bundler then reads the legacy index. An answer without the gems of upstreams would hide these from it.
            raise NotFound("address", "of searches and dependencies in a repository that is not hosted")

    def _json(self, body: bytes) -> Answer:
        return self._answer(body, JSON)

    def _answer(self, body: bytes, content_type: bytes) -> Answer:
        headers = ((b"Cache-Control", document_cache_control(self._repository)),)
        return Answer(body=body, content_type=content_type, headers=headers)

    def _url(self, request: Request) -> str:
        return self._services.repository_url(request, self._repository)


def encode_versions(releases: Iterable[Release]) -> bytes:
    """The records of versions in JSON."""
    return _encode([version_record(each) for each in releases])


def _versions(r: Reader, repository_id: int, name: str) -> bytes | None:
    found = records.list_releases(r, repository_id, name)
    return None if found is None else encode_versions(found)


def _gems(r: Reader, repository_id: int, names: list[str], url: str) -> bytes:
    return _encode([gem_record(each, url) for each in records.latest_of_each(r, repository_id, names)])


def _dependencies(r: Reader, repository_id: int, names: list[str], json: bool) -> bytes:
    def releases() -> Iterator[Release]:
        count = 0
        for name in names:
            found = records.list_releases(r, repository_id, name) or []
            count += len(found)
            if count > MOST_RELEASES:
                raise Refusal(422, TOO_MANY, "too_many")
            yield from reversed(found)

    rows = dependency_rows(releases())
    return _encode(rows) if json else marshal_rows(rows)


def _is_json(file: str) -> bool:
    return file.endswith(".json") and is_name(file.removesuffix(".json"))


def _number(text: str | None) -> int:
    return (
        min(int(text), MOST_PAGES) if text and text.isascii() and text.isdigit() and len(text) < 9 and int(text) else 1
    )
