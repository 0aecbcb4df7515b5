"""
The path table of a channel: which handler of which inner room answers a request.

``paths`` reads the raw path. Uploads to a virtual repository go to the repository that takes them, and so does all that
anaconda-client asks.
"""

from __future__ import annotations

from attrs import frozen

from pkgrepo.errors import NotFound
from pkgrepo.formats.conda.anaconda.requests import answer_anaconda
from pkgrepo.formats.conda.anaconda.targets import WORDS
from pkgrepo.formats.conda.files import get_file, post_form, publish_sent, put_package
from pkgrepo.formats.conda.index.documents import ChannelLists
from pkgrepo.formats.conda.index.requests import NOTICES, find_shard, form_of, get_document, get_shard, notices
from pkgrepo.formats.conda.proxied.channels import MemberChannels, find_member_shard, get_member_document
from pkgrepo.formats.conda.proxied.restoring import upstream_folders
from pkgrepo.formats.conda.wheels.following import DOCUMENT as UNCONVERTED
from pkgrepo.formats.conda.wheels.following import list_unconverted
from pkgrepo.formats.conda.wheels.reading import FirstReads
from pkgrepo.gateway.bodies import UPLOADS, misplaced_upload
from pkgrepo.gateway.format_site import Routes
from pkgrepo.gateway.publishing.uploads import SentFile, Uploaded
from pkgrepo.gateway.publishing.virtual import publish_context
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal, Response, text_response
from pkgrepo.model import Action, RepositoryType
from pkgrepo.untrusted.text import split_path

from .names import SUBDIRS
from .paths import ChannelPath, PackagePath, RootPath, ShardPath, SubdirPath, read_path
from .refusals import ERRORS

CHANNEL = "packages are uploaded by PUT to {}/<subdir>/<file>"
METHODS = (b"DELETE", b"GET", b"HEAD", b"PATCH", b"POST", b"PUT")
READS = frozenset({b"GET", b"HEAD"})


@frozen
class Caches:
    """The documents of hosted channels, those of channels that have members, and which channels were read."""

    hosted: ChannelLists
    channels: MemberChannels
    first_reads: FirstReads


async def _read(context: Context[Caches], request: Request, rest: bytes) -> list[str]:
    """The parts of a path. :raises NotFound, Refusal: it cannot be one, for callers who may know of the channel"""
    parts = split_path(rest)
    if parts is None:
        raise await _nothing(context, request)
    return parts


def _changes(request: Request, parts: list[str]) -> bool:
    """Whether a request goes to the repository that takes uploads, as does all that anaconda-client asks."""
    return request.method not in READS or _is_of_anaconda(request, parts)


def _is_of_anaconda(request: Request, parts: list[str]) -> bool:
    """Whether anaconda-client asks this. It never sends PUT, whose channel may have any name."""
    return bool(parts) and parts[0] in WORDS and request.method != b"PUT"


async def _target(context: Context[Caches], request: Request, parts: list[str]) -> Context[Caches]:
    async def folders() -> list[str]:
        return list(dict.fromkeys([*parts[:1], *await upstream_folders(context.services, context.repository)]))

    return await publish_context(context, request, folders)


async def _answer(context: Context[Caches], request: Request, parts: list[str]) -> Response:
    if _changes(request, parts):
        return await _write(context, request, parts)
    path = read_path(parts)
    if isinstance(path, PackagePath):
        first_reads = context.caches.first_reads
        if not first_reads.knows(context.services, context.repository):
            await context.admit(request, Action.READ, path.name.name)
            await first_reads.admit(context.services, context.repository)
        return await get_file(context, request, path)
    if isinstance(path, RootPath):  # anaconda-client asks for it before an upload
        await context.services.access.admit_known(request, context.repository)
        return text_response(f"This is the conda channel {context.repository.path}.\n")
    await context.admit(request, Action.READ)
    if path == ChannelPath(UNCONVERTED):
        await context.caches.first_reads.admit(context.services, context.repository)
        return await list_unconverted(context, request)
    if path == ChannelPath(NOTICES):
        return notices(context.repository)
    if isinstance(path, ChannelPath | SubdirPath | ShardPath):
        return await _index(context, request, path)
    raise await _nothing(context, request)


async def take_file(context: Context[Caches], request: Request, sent: SentFile) -> Uploaded:
    """Publish a package that is the file of a form, in the repository that takes uploads."""
    return await publish_sent(await _target(context, request, []), request, sent)


async def _index(context: Context[Caches], request: Request, path: ChannelPath | SubdirPath | ShardPath) -> Response:
    services, repository, caches = context.services, context.repository, context.caches
    await caches.first_reads.admit(services, repository)
    hosted, members = Context(services, repository, caches.hosted), Context(services, repository, caches.channels)
    own = (
        services.proxy.resolver.flat_member(repository, repository)
        if repository.type is RepositoryType.HOSTED
        else None
    )
    is_hosted = own is not None and own.policy is None  # else its documents lack what rules hide
    if isinstance(path, ShardPath):
        found = find_shard(hosted, path) if is_hosted else find_member_shard(members, request, path)
        return await get_shard(context, request, path, found)
    form, negotiated = form_of(path)
    if is_hosted:
        return await get_document(hosted, request, form, negotiated=negotiated)
    return await get_member_document(members, request, form, negotiated=negotiated)


async def _write(context: Context[Caches], request: Request, parts: list[str]) -> Response:
    if _is_of_anaconda(request, parts):
        return await answer_anaconda(context, request, parts)
    match request.method, parts:
        case b"PUT", [*_, subdir, file] if len(parts) <= 3 and subdir in SUBDIRS:
            return await put_package(context, request, subdir, file)
        case b"POST", ["api", "channels", _, "upload", file]:
            return await put_package(context, request, None, file)
        case b"POST", ["api", "v1", "upload", _]:
            return await post_form(context, request)
    await context.admit(request, Action.READ)
    headers = ((b"Allow", b"GET, HEAD"),)
    refusal = Refusal(405, "this address does not take this method", "method_not_allowed", headers=headers)
    raise misplaced_upload(context.services.base_url(request), request, refusal, CHANNEL)


async def _nothing(context: Context[Caches], request: Request) -> Exception:
    """The error for an address with nothing, for callers who may know of the repository."""
    await context.admit(request, Action.READ)
    error = NotFound("address", request.entry.rest.decode("ascii", "replace")[:200])
    if request.method not in UPLOADS:
        return error
    refusal = Refusal(404, str(error), "not_found")
    return misplaced_upload(context.services.base_url(request), request, refusal, CHANNEL)


ROUTES: Routes[Caches, list[str]] = Routes(
    read=_read, answer=_answer, changes=_changes, target=_target, errors=ERRORS, methods=METHODS
)
