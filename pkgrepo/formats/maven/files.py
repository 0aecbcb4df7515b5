"""Answers GET and HEAD of files and of their checksums, with the digests that spare clients further requests."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from pkgrepo.errors import NotFound
from pkgrepo.formats.maven.caches import MavenContext
from pkgrepo.formats.maven.configuration import PushRules
from pkgrepo.formats.maven.paths import ALGORITHMS, ArtifactFile, Checksum, FilePath, PlainFile
from pkgrepo.formats.maven.push_rules import require_any
from pkgrepo.gateway.package_files import answer_file, find_package_file
from pkgrepo.gateway.responses.content import SAFE, FileHead, is_private
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response, text_response
from pkgrepo.model import Action, Identity, Repository, RepositoryType
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.proxy.resolving.serving import Want


async def admit(context: MavenContext, request: Request, target: FilePath) -> tuple[Identity, str]:
    """The caller, who may read what is at a path, and the package key for which that is so."""
    identity = await context.services.access.identify(request)
    return identity, await require_any(context.services, identity, Action.READ, context.repository, target)


async def get_file(context: MavenContext, request: Request, target: ArtifactFile | PlainFile) -> Response:
    """A stored file. :raises NotFound: there is none"""
    identity, key = await admit(context, request, target)
    present = partial(present_file, context.repository, target)
    response = await answer_file(
        context.services, request, identity, context.repository, key, target.path, present=present
    )
    if response is None:
        raise _no_file(target)
    return response


async def get_checksum(context: MavenContext, request: Request, target: Checksum) -> Response:
    """
    The checksum of a stored file, computed when that arrived.

    :raises NotFound: there is no such file
    """
    services, repository = context.services, context.repository
    assert isinstance(target.of, (ArtifactFile, PlainFile))
    _, key = await admit(context, request, target.of)
    generation = services.catalog.generation()
    found = await find_package_file(services, repository, key, target.of.path, Want.DIGESTS)
    if found is None:
        raise _no_file(target.of)
    file = found.file
    digests = file.source.digests if isinstance(file, RemoteFile) else file.digests
    if target.algorithm not in digests:
        raise _no_file(target.of)
    modified_s = None if isinstance(file, RemoteFile) else int(file.created_at.timestamp())
    response = checksum_response(repository, target.of, target.algorithm, digests, modified_s)
    if found.fresh is not None:
        services.response_cache.put_response(
            request, repository, response, package=key, fresh=found.fresh, ends_s=found.ends_s, generation=generation
        )
    return response


def _no_file(target: FilePath) -> NotFound:
    return NotFound("file", target.path.rpartition("/")[2])


YEAR: Final = 31_536_000  # seconds


def present_file(
    repository: Repository, target: FilePath, digests: Mapping[str, str], *, settled: bool = False
) -> FileHead:
    """The head of the response with a file: both forms of its digests that spare Maven 3.9 requests for checksums."""
    sha1 = digests.get("sha1")
    etag = f'"{{SHA1{{{sha1}}}}}"' if sha1 is not None else f'"{digests["sha256"]}"' if "sha256" in digests else None
    sums = ((f"X-Checksum-{each.upper()}", digests[each]) for each in ALGORITHMS if each in digests)
    return FileHead(
        None if etag is None else etag.encode("ascii"),
        (
            (b"Cache-Control", cache_control(repository, target, settled=settled)),
            *((name.encode("ascii"), digest.encode("ascii")) for name, digest in sums),
            *SAFE,
        ),
    )


def cache_control(repository: Repository, target: FilePath, *, settled: bool = False) -> bytes:
    """
    How long what is at a path may be cached.

    Files of releases and timestamped snapshots never change where they cannot be overwritten; upstreams never change
    theirs. Metadata of a view of the past do not, either, once they are ``settled``.
    """
    private = is_private(repository)
    lasting = isinstance(target, ArtifactFile) and not target.literal_snapshot
    if repository.type is RepositoryType.HOSTED:
        lasting = lasting and not PushRules.of(repository).allow_overwrite
    else:
        lasting = lasting and repository.type is RepositoryType.PROXY
    if not lasting and not settled:
        return b"private, no-cache" if private else b"no-cache"
    return b"%s, max-age=%d, immutable" % (b"private" if private else b"public", YEAR)


def checksum_response(
    repository: Repository,
    target: FilePath,
    algorithm: str,
    digests: Mapping[str, str],
    modified_s: int | None,
    *,
    settled: bool = False,
) -> Response:
    """The checksum of what is at a path and has these digests, among them one by ``algorithm``."""
    digest = digests[algorithm]
    return text_response(
        digest,
        content_type=b"text/plain",
        etag=f'"{algorithm}-{digest}"'.encode("ascii"),
        last_modified=modified_s,
        headers=((b"Cache-Control", cache_control(repository, target, settled=settled)), *SAFE),
    )
