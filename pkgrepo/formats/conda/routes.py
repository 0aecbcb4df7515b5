"""
The path table of a channel: which handler of which inner room answers a request.

``paths`` reads the raw path. Uploads to a virtual repository go to the repository that takes them, and so does all that
anaconda-client asks.
"""

from __future__ import annotations

from functools import partial

from attrs import frozen

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
from pkgrepo.gateway.format_site import Routes, path_parts, unserved
from pkgrepo.gateway.publishing.uploads import SentFile, Uploaded
from pkgrepo.gateway.publishing.virtual import publish_context
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response, text_response
from pkgrepo.model import Action, RepositoryType

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
    raise await unserved(context, request, CHANNEL)


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
    raise await unserved(context, request, CHANNEL, method=True)


ROUTES: Routes[Caches, list[str]] = Routes(
    read=partial(path_parts, advice=CHANNEL),
    answer=_answer,
    changes=_changes,
    target=_target,
    errors=ERRORS,
    methods=METHODS,
)
