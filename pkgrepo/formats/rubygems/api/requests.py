"""
Requests to the JSON API, by scripts and bots, and by old versions of Bundler.

Searches are not passed on to upstreams; dependencies of many gems are in the compact and legacy indexes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from pkgrepo.errors import AuthenticationRequired, NotFound
from pkgrepo.formats.rubygems.api.attestations import attestations
from pkgrepo.formats.rubygems.api.members import releases_of_members, shown_releases
from pkgrepo.formats.rubygems.api.records import (
    OWNER,
    ROW,
    Release,
    find_latest,
    find_version,
    gem_record,
    list_releases,
    read_entry,
    version_record,
)
from pkgrepo.formats.rubygems.marshal import VERSION, Stream, array, integer
from pkgrepo.formats.rubygems.names import RUBY, full_version, is_name
from pkgrepo.formats.rubygems.paths import is_full_name
from pkgrepo.gateway.responses.content import document_cache_control
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import JSON, Refusal, Response
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, Identity, RepositoryType
from pkgrepo.repositories.policy.judge import Judge
from pkgrepo.repositories.search_index import Query, facet
from pkgrepo.untrusted.networks import networks_of

Row = Mapping[str, Any]
Handler = Callable[..., Awaitable[Response]]  # of the context and the request

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


def find_handler(parts: tuple[str, ...]) -> Handler | None:  # noqa: PLR0911 - one for each path
    """The function that answers a GET of a path below ``/api/``, or None."""
    match parts:
        case ("v1", "gems.json"):
            return own
        case ("v1", "search.json"):
            return search
        case ("v1", ("dependencies" | "dependencies.json") as document):
            return partial(dependencies, json=document.endswith(".json"))
        case ("v1", "gems", file) if _is_json(file):
            return partial(gem, name=file.removesuffix(".json"))
        case ("v1", "attestations", file) if file.endswith(".json") and is_full_name(file.removesuffix(".json")):
            return partial(attestations, full_name=file.removesuffix(".json"))
        case ("v1", "versions", file) if _is_json(file):
            return partial(versions, name=file.removesuffix(".json"))
        case ("v1", "versions", name, "latest.json") if is_name(name):
            return partial(latest, name=name)
        case ("v2", "rubygems", name, "versions", file) if is_name(name) and file.endswith(".json"):
            return partial(version, name=name, number=file.removesuffix(".json"))
    return None


async def gem(context: Context[object], request: Request, name: str) -> Response:
    """A gem in its latest version."""
    await context.admit(request, Action.READ, name)
    return _record(context, request, await _find_latest(context, name), NO_GEM)


async def version(context: Context[object], request: Request, name: str, number: str) -> Response:
    """A gem in one version, for the platform in the query."""
    await context.admit(request, Action.READ, name)
    key = full_version(number, request.parameter(b"platform") or RUBY)
    if context.services.proxy.resolver.reads_catalog(context.repository, name):
        found = await context.services.catalog.look(find_version, context.repository.id, name, key)
    else:
        listed = await releases_of_members(context, name) or ()
        found = next((each for each in listed if each.spec.full_version == key), None)
    return _record(context, request, found, NO_VERSION)


async def versions(context: Context[object], request: Request, name: str) -> Response:
    """All live versions of a gem, the highest first."""
    await context.admit(request, Action.READ, name)
    if context.services.proxy.resolver.reads_catalog(context.repository, name):
        body = await context.services.catalog.scan(_versions, context.repository.id, name)
    else:
        listed = await releases_of_members(context, name)
        body = None if listed is None else await context.services.pools.cpu(_encode_versions, listed)
    if body is None:
        raise Refusal(404, NO_GEM, "not_found")
    return _answer(context, body)


async def latest(context: Context[object], request: Request, name: str) -> Response:
    """The number of the latest version; of a gem that does not exist it is ``unknown``."""
    await context.admit(request, Action.READ, name)
    found = await _find_latest(context, name)
    return _answer(context, _encode({"version": "unknown" if found is None else found.spec.number}))


async def search(context: Context[object], request: Request) -> Response:
    """A page of the gems whose name, summary or description has all words of the query."""
    await _admit_all(context, request)
    words = tuple((request.parameter(b"query") or "").lower().split())
    page = _number(request.parameter(b"page"))
    return await _search(context, request, Query(words=words), (page - 1) * PAGE, PAGE)


async def own(context: Context[object], request: Request) -> Response:
    """The gems that the caller owns."""
    identity = await _admit_all(context, request)
    if identity.anonymous:
        raise AuthenticationRequired
    return await _search(context, request, Query(facets=((facet(OWNER, identity.username),),)), 0, MOST_OWN)


async def dependencies(context: Context[object], request: Request, *, json: bool) -> Response:
    """
    The dependencies of all versions of the gems in the query, which Bundler asks for where it finds no compact index.

    They are an array of hashes in Ruby's Marshal format, or in JSON.

    :raises Refusal: they are too many; Bundler then reads the legacy index
    """
    await _admit_all(context, request)
    names = [each for each in dict.fromkeys((request.parameter(b"gems") or "").split(",")) if each]
    if len(names) > MOST_NAMES:
        raise Refusal(422, TOO_MANY, "too_many")
    if not all(context.services.proxy.resolver.reads_catalog(context.repository, each) for each in names):
        raise NotFound("address", "of the dependencies of gems that a rule is about")
    body = await context.services.catalog.scan(_dependencies, context.repository.id, names, json)
    return _answer(context, body, JSON if json else MARSHAL)


async def _admit_all(context: Context[object], request: Request) -> Identity:
    identity = await context.admit(request, Action.READ)
    if context.repository.type is not RepositoryType.HOSTED:
        # Bundler then reads the legacy index. A response without the gems of upstreams would hide these from it.
        raise NotFound("address", "of searches and dependencies in a repository that is not hosted")
    return identity


async def _find_latest(context: Context[object], name: str) -> Release | None:
    """The highest version that is no prerelease, else the highest one, for Ruby rather than a platform; or None."""
    if context.services.proxy.resolver.reads_catalog(context.repository, name):
        found: Release | None = await context.services.catalog.look(find_latest, context.repository.id, name)
        return found
    return _latest_of(await releases_of_members(context, name) or [])


def _latest_of(listed: Sequence[Release]) -> Release | None:
    """The latest of some versions, the highest first."""
    if not listed:
        return None
    best = next((each for each in listed if not each.spec.prerelease), listed[0])
    return next((each for each in listed if each.spec.full_version == best.spec.number), best)


async def _search(context: Context[object], request: Request, query: Query, start: int, count: int) -> Response:
    searches = context.services.searches
    index = await searches.get(context.repository, ROW, read_entry)
    async with searches.semaphore.hold(networks_of(request.client_address)):
        found = await context.services.pools.cpu(index.find, query, start, count)
    names = [key for key, _ in found.keys]
    proxy, repository = context.services.proxy, context.repository
    judges = await proxy.judges.of_each(proxy.resolver.flat_member(repository, repository), names)
    return _answer(
        context, await context.services.catalog.scan(_gems, repository.id, names, judges, context.url(request))
    )


def _record(context: Context[object], request: Request, found: Release | None, absent: str) -> Response:
    if found is None:
        raise Refusal(404, absent, "not_found")
    return _answer(context, _encode(gem_record(found, context.url(request))))


def _answer(context: Context[object], body: bytes, content_type: bytes = JSON) -> Response:
    headers = ((b"Cache-Control", document_cache_control(context.repository)),)
    return Response(body=body, content_type=content_type, headers=headers)


def _encode_versions(releases: Iterable[Release]) -> bytes:
    """The records of versions in JSON."""
    return _encode([version_record(each) for each in releases])


def _versions(r: Reader, repository_id: int, name: str) -> bytes | None:
    found = list_releases(r, repository_id, name)
    return None if found is None else _encode_versions(found)


def _gems(r: Reader, repository_id: int, names: list[str], judges: Mapping[str, Judge], url: str) -> bytes:
    """The records of gems in the latest version that no rule hides; those of which all versions are hidden are not."""
    found = [
        _latest_of(shown_releases(r, repository_id, name, judges[name]))
        if name in judges
        else find_latest(r, repository_id, name)
        for name in names
    ]
    return _encode([gem_record(each, url) for each in found if each is not None])


def _dependencies(r: Reader, repository_id: int, names: list[str], json: bool) -> bytes:
    def releases() -> Iterator[Release]:
        count = 0
        for name in names:
            found = list_releases(r, repository_id, name) or []
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
