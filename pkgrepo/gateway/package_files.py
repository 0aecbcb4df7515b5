"""Answers reads of the files of packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

from attrs import evolve
from twisted.internet.interfaces import IConsumer

from pkgrepo.errors import NotFound, UpstreamMismatch, existing
from pkgrepo.gateway.responses.content import SAFE, Present, arriving, sent_part
from pkgrepo.gateway.responses.long_bodies import deliver_pieces
from pkgrepo.http.answering.conditional import select
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Content, Fields, Response
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, File, Identity, Repository, RepositoryType
from pkgrepo.proxy.fetching import READ_IN_PARTS
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.proxy.resolving.serving import FoundFile, Want, same_file
from pkgrepo.proxy.transfers.arriving import ArrivingBody
from pkgrepo.storage.catalog.packages import files
from pkgrepo.storage.catalog.packages.summaries import package_and_version_of_file

from .services import Context, Services

T = TypeVar("T")

MOST_NAMES: Final = 4  # of packages that upstreams are asked about for one file
STALE: Final = (b"Warning", b'110 - "stale"')  # RFC 7234 section 5.5.1
REMOVED: Final = (b"Warning", b'299 - "the upstream has removed this version"')  # section 5.5.7


async def answer_file(
    services: Services,
    request: Request,
    identity: Identity,
    repository: Repository,
    package: str,
    path: str,
    headers: Fields | None = None,
    *,
    present: Present | None = None,
) -> Response | None:
    """
    The file of a package (a key) at a path of a repository, or None.

    The response is cached until the file is another. With ``headers``, see L{Files.answer}, it is not cached: a request
    with another path may mean another file later. With ``present`` a format sets the head of the response.

    A file of an upstream that is not kept yet is sent while it arrives. A response with the whole file is a download by
    ``identity``, unless the file is a companion of another.

    :raises BlobMissing: the storage has lost the bytes; :raises NotFound: an upstream does not have it
    :raises UpstreamFailed: it cannot be had from there; :raises RuleRefused: a rule refuses it
    """
    generation = services.catalog.generation()
    want = Want.HEAD if request.method == b"HEAD" else Want.BYTES
    found = await find_package_file(services, repository, package, path, want)
    if found is None:
        return None
    file = found.file
    content: ArrivingBody | bytes | File | None = found.content
    if isinstance(file, RemoteFile) and content is None:
        response = await _answer_unfetched(services, request, repository, file, headers or SAFE, present)
        if response is not None:
            return response
        file, content = await _fetch(services, repository, package, path, file)
    if isinstance(file, RemoteFile):
        assert content is not None, "it was fetched"
        if not isinstance(content, File):
            body = arriving(content)
            response = services.files.answer_arriving(repository, file.source, body, headers or SAFE, present)
            part = sent_part(request, response)
            if part:
                record = partial(_record_kept, services, identity, request.client_address, whole=part == "all")
                services.proxy.fetching.when_kept(file, record)
            return response
        file = content
    response = await services.files.answer(repository, file, headers or SAFE, present)
    if found.stale or found.removed:
        response = evolve(response, headers=(*response.headers, STALE if found.stale else REMOVED))
    item = file if file.role is None and file.id else None
    if found.fresh is not None and headers is None:
        services.response_cache.put_response(
            request,
            repository,
            response,
            package=package,
            fresh=found.fresh,
            ends_s=found.ends_s,
            generation=generation,
            item=item,
        )
    part = sent_part(request, response) if item is not None else ""
    if item is not None and part:
        services.downloads.record(item, identity, request.client_address, whole=part == "all")
    return response


async def _answer_unfetched(
    services: Services,
    request: Request,
    repository: Repository,
    file: RemoteFile,
    headers: Fields,
    present: Present | None,
) -> Response | None:
    """The answer to a HEAD, or to a request for a far part of a file, which is passed on; None if it is fetched."""
    in_parts = request.header(b"range") is not None and file.source.path.endswith(READ_IN_PARTS)
    if request.method != b"HEAD" and not in_parts:
        return None
    size = await services.proxy.fetching.size(file)
    if size is None:
        return None
    body = Content(size, deliver=partial(_deliver_part, services, file, size))
    response = services.files.answer_arriving(repository, file.source, body, headers, present)
    part = select(request.method, request.fields, response)
    if request.method == b"HEAD" or (
        part.status == 206 and services.proxy.fetching.passes_on(file, part.start, part.end)
    ):
        return response
    return None


async def _deliver_part(
    services: Services, file: RemoteFile, size: int, consumer: IConsumer, start: int, end: int
) -> None:
    """Write a part of a file as the upstream sends it; if it sends no parts, when all of it is kept."""
    async with services.proxy.fetching.open_part(file, size, start, end) as response:
        if response is not None:
            await deliver_pieces(response.chunks, consumer, 0, end - start)
            return
    await services.files.deliver(await services.proxy.fetching.finish(file), consumer, start, end)


async def _fetch(
    services: Services, repository: Repository, package: str, path: str, file: RemoteFile
) -> tuple[File | RemoteFile, ArrivingBody | bytes | File]:
    """
    What a document lists at a path, and what there is of it.

    If the upstream has another file there than its document announced, the document is asked for once more.

    :raises UpstreamMismatch: it still announces that file
    """
    try:
        return file, await services.proxy.fetching.content(file)
    except UpstreamMismatch:
        now = (await services.proxy.package_files.find(repository.live, package, path)).file
        if isinstance(now, RemoteFile):
            if now.identity == file.identity:
                raise
            return now, await services.proxy.fetching.content(now)
        return now, now


def _record_kept(services: Services, identity: Identity, address: str, file: File, *, whole: bool) -> None:
    """Record the download of a file that was sent while it arrived."""
    if file.role is None:
        services.downloads.record(file, identity, address, whole=whole, fetched=True)


async def find_package_file(
    services: Services, repository: Repository, package: str, path: str, want: Want
) -> FoundFile | None:
    """The file of a package (a key) at a path, or None in a hosted repository without it; see L{PackageFiles.find}."""
    package_files, repository = services.proxy.package_files, repository.live
    if repository.type is not RepositoryType.HOSTED:
        return await package_files.find(repository, package, path, want=want)
    file = await services.catalog.look(files.find_file, repository.id, path)
    if file is None:
        return None
    if services.proxy.resolver.flat_member(repository, repository).policy is not None:
        return await package_files.find(repository, package, path, want=want)
    return FoundFile(file, same_file(file))


async def inspect_file(
    services: Services, repository: Repository, package: str, path: str, look: Callable[[int | bytes], T]
) -> T:
    """
    What a function finds in the file of a package (a key) at a path; a file that is not kept is fetched before.

    :raises NotFound: there is none; otherwise as L{answer_file}
    """
    found = existing(await find_package_file(services, repository, package, path, Want.BYTES), "file", path)
    file = found.content if isinstance(found.content, File) else found.file
    if isinstance(file, RemoteFile):
        file = await services.proxy.fetching.finish(file)
    return await services.files.inspect(services.pools.cpu, file.storage_id, file, look)


async def answer_named_file(context: Context[Any], request: Request, path: str, possible: Iterable[str]) -> Response:
    """
    The file at a path, where the name of a file does not tell for certain whose it is.

    It is of the package that has it, or else of one of the ``possible`` ones (keys), which upstreams are asked about.

    :raises NotFound: there is no such file; :raises UpstreamFailed: that is not known
    """
    services, repository = context.services, context.repository
    for package in await packages_of_file(services, repository, path, possible):
        identity = await context.admit(request, Action.READ, package)
        try:
            response = await answer_file(services, request, identity, repository, package, path)
        except NotFound:
            continue
        if response is not None:
            return response
    await context.admit(request, Action.READ)
    raise NotFound("file", path.rpartition("/")[2])


async def packages_of_file(
    services: Services, repository: Repository, path: str, possible: Iterable[str]
) -> Sequence[str]:
    """The packages (keys) that may have the file at a path: the one that has it, or the first of the possible ones."""
    for member in services.proxy.resolver.flat_members(repository):
        package: str | None = await services.catalog.look(find_package_key, member.id, path)
        if package is not None:
            return [package]
    return [] if repository.type is RepositoryType.HOSTED else list(islice(possible, MOST_NAMES))


def find_package_key(r: Reader, repository_id: int, path: str) -> str | None:
    """The key of the package that the file at a path belongs to, None if there is no file."""
    file = files.find_file(r, repository_id, path)
    found = None if file is None else package_and_version_of_file(r, file.id)
    return None if found is None else found[0]
