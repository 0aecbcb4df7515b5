"""
Answers requests for files: reads with the checksums beside them, uploads, and deletions.

An upload is checked before its body is read, so that a client which waits for ``100 Continue`` sends no body in vain,
and again when it has arrived. What depends on what is at the path is decided in the transaction.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from attrs import frozen

from pkgrepo.errors import Conflict, FileBurned, FileExists, NotFound, existing
from pkgrepo.formats.raw.configuration import patterns_of, policy_of
from pkgrepo.formats.raw.paths import (
    ALGORITHMS,
    SUMS,
    check_path,
    check_version,
    folder_of,
    media_type,
    package_of,
    package_of_folder,
    parse_path,
    sort_key,
    version_of,
)
from pkgrepo.gateway.bodies import check_preconditions, receive_body
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.digest_fields import read_digests
from pkgrepo.gateway.package_files import answer_file, find_package_file
from pkgrepo.gateway.publishing.removals import Removal, remove
from pkgrepo.gateway.publishing.uploads import LIMITS, SentFile, Uploaded, read_sent_file
from pkgrepo.gateway.responses.content import SAFE, FileHead, document_cache_control
from pkgrepo.gateway.services import Context
from pkgrepo.http.reading.multipart import read_form
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Fields, Refusal, Response, text_response
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Action, BlobInfo, Extent, File, NewFile, Repository, RepositoryType
from pkgrepo.model.admission import Admitted
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.proxy.resolving.serving import FoundFile, Want
from pkgrepo.repositories.format import index_nothing
from pkgrepo.repositories.publish.releases import Published, Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import files, packages, versions
from pkgrepo.storage.catalog.packages.summaries import package_and_version_of_file
from pkgrepo.storage.catalog.packages.tree import check_place, file_or_folder

RawContext = Context[Any]
FORM: Final = "application/x-www-form-urlencoded"  # what curl calls any body
LONGEST_TYPE: Final = 200  # characters
HINT: Final = "; with a slash at the end of the address curl puts a file into a folder"


async def get_file(context: RawContext, request: Request, path: str, headers: Fields | None = None) -> Response:
    """
    A file, or the checksum of the file beside whose path it would be; for ``headers`` see L{answer_file}.

    :raises NotFound: there is neither; :raises RuleRefused: a rule refuses it, or the file of which it is the checksum
    """
    services, repository = context.services, context.repository
    package = package_of(path, patterns_of(repository))
    identity = await context.admit(request, Action.READ, package)
    stem, _, algorithm = path.rpartition(".")
    generation = services.catalog.generation()
    beside = await _find(context, request, stem) if algorithm in SUMS and stem[-1:] not in ("", "/") else None
    of = None if beside is None else beside.file
    # What an upstream has beside a file would be kept as a file of its own, which no rule about the other one reaches.
    computed = of is not None and (isinstance(of, RemoteFile) or not of.id or of.origin is not None)
    found = None
    if not computed:
        present = partial(present_file, repository)
        try:
            found = await answer_file(services, request, identity, repository, package, path, headers, present=present)
        except NotFound:
            if of is None:
                raise
    if found is None and beside is not None and of is not None:
        found = _checksum(repository, of, stem, algorithm)
        fresh = _sum_query(repository, beside, path)
        if found is not None and fresh is not None and package == package_of(stem, patterns_of(repository)):
            services.response_cache.put_response(
                request, repository, found, package=package, fresh=fresh, ends_s=beside.ends_s, generation=generation
            )
    return existing(found, "file", path)


def _sum_query(repository: Repository, beside: FoundFile, path: str) -> Callable[[Reader], bool] | None:
    """Whether a checksum is still that of the same file, and no file of its own; None if that is not known."""
    same, hosted = beside.fresh, repository.type is RepositoryType.HOSTED
    if same is None or not hosted:
        return None
    return lambda reader: same(reader) and files.find_file(reader, repository.id, path) is None


async def _find(context: RawContext, request: Request, path: str) -> FoundFile | None:
    """
    The file at a path with its digests, if there is one, which the caller may read.

    :raises RuleRefused: a rule refuses it
    """
    services, repository = context.services, context.repository
    package = package_of(path, patterns_of(repository))
    await context.admit(request, Action.READ, package)
    try:
        return await find_package_file(services, repository, package, path, Want.DIGESTS)
    except NotFound:
        return None


def _checksum(repository: Repository, file: File | RemoteFile, path: str, algorithm: str) -> Response | None:
    """The checksum of a file as ``sha256sum -c`` reads it; None if it is not known."""
    digests = file.source.digests if isinstance(file, RemoteFile) else {**file.digests, "sha256": file.sha256}
    if algorithm not in digests:
        return None
    text = f"{digests[algorithm]}  {path.rpartition('/')[2]}\n"
    headers = ((b"Cache-Control", document_cache_control(repository)),)
    return text_response(text, etag=f'"{algorithm}-{digests[algorithm]}"'.encode(), headers=headers)


def present_file(repository: Repository, digests: Mapping[str, str]) -> FileHead:
    """The head of a response with a file with these digests (hex)."""
    sha256 = digests.get("sha256")
    headers = [(f"X-Checksum-{each.capitalize()}".encode(), digests[each].encode()) for each in SUMS if each in digests]
    if sha256 is not None:
        headers.append((b"Repr-Digest", b"sha-256=:%s:" % b64encode(bytes.fromhex(sha256))))
    etag = None if sha256 is None else f'"{sha256}"'.encode()
    return FileHead(etag, ((b"Cache-Control", document_cache_control(repository)), *headers, *SAFE))


def make_release(package: str, file: NewFile, **more: Any) -> Release:
    """The release of one file of a package (a key); ``more`` are further fields of L{Release}."""
    version = version_of(package, file.path)
    return Release(
        package_key=package,
        package_name=package,
        version_key=version,
        version_text=version,
        sort=sort_key(version),
        files=(file,),
        **more,
    )


@frozen
class Permit:
    """What an upload to a path may do: replace what is there, ``reuse`` the path of what was deleted, or why not."""

    package: str
    user_id: int | None
    overwrite: bool
    reuse: bool
    admitted: Admitted
    why_not: Refusal


async def put_file(context: RawContext, request: Request, path: str) -> Response:
    """
    Store the body at a path.

    :raises Refusal: another file is there, which may not be replaced, or is not the one that the request expects
    :raises Conflict: a folder is there, or a file where a folder is needed; :raises DigestMismatch: it is damaged
    """
    services, repository = context.services, context.repository
    permit = await _permit(context, request, path)
    expected = read_digests(request)
    if request.header(b"content-range") is not None:
        raise Refusal(400, "a part of a file is not taken: send the whole", "partial")
    there: File | None = await services.catalog.look(files.find_file, repository.id, path)
    _check_conditions(repository, request, there)
    if there is None:
        await services.catalog.look(_check_place, repository.id, path)
    elif not permit.overwrite and request.body.declared not in (None, there.size):
        raise permit.why_not
    receive = partial(receive_body, request, limit=services.max_upload, algorithms=ALGORITHMS, expected=expected)
    blob, published = await _store(context, request, permit, path, receive, _sent_type(request), _check_conditions)
    return _stored(path, blob.sha256, published.changed, created=there is None and published.changed)


def _stored(path: str, sha256: str, changed: bool, *, created: bool) -> Response:
    text = f"stored {path} sha256={sha256}\n" if changed else f"{path} has these bytes already\n"
    return text_response(text, 201 if created else 200, headers=((b"ETag", f'"{sha256}"'.encode()),))


def _sent_type(request: Request) -> str:
    """The media type that a client says; empty if it says none, or what curl calls any body."""
    sent = (request.header(b"content-type") or b"").decode("latin-1").strip()
    return "" if sent == FORM or len(sent) > LONGEST_TYPE or not sent.isprintable() else sent


async def _store(
    context: RawContext,
    request: Request,
    permit: Permit,
    path: str,
    receive: Callable[[Staged], Awaitable[BlobInfo]],
    kind: str = "",
    check: Callable[[Repository, Request, File | None], None] = lambda *_: None,
) -> tuple[BlobInfo, Published]:
    """
    Receive and publish a file, of a media type that its name tells if it is empty.

    :raises Refusal: another one is there, or was, and may not be replaced, or ``check`` refuses it
    """
    content, repository = context.services.content, context.repository

    def guard(tx: Transaction) -> None:
        check(repository, request, files.find_file(tx, repository.id, path))
        _check_place(tx, repository.id, path)

    async with content.stage(repository, permit.package, user_id=permit.user_id) as staged:
        blob = await receive(staged)
        permit = await _permit(context, request, path)
        file = NewFile(path=path, blob=blob, media_type=kind or media_type(path))
        release = make_release(permit.package, file, overwrite=permit.overwrite, reuse=permit.reuse, guard=guard)
        try:
            return blob, await content.publish(repository, release, staged, permit.admitted, index_nothing)
        except FileExists:
            raise permit.why_not from None
        except FileBurned:
            sentence = f"a file at {path} was deleted, and its path is not used again (policy.overwrite)"
            raise Refusal(409, sentence, "file_exists") from None


async def post_form(context: RawContext, request: Request, folder: str) -> Response:
    """Store the file of a form in a folder, or at its ``path`` there; for the errors see L{put_file}."""
    package = package_of_folder(folder, patterns_of(context.repository))
    await context.admit(request, Action.WRITE, package or Extent.SOME)  # before a byte of the form is read
    parts = read_form(request.body, request.header(b"content-type"), LIMITS)
    sent = await read_sent_file(request, parts, context.services.max_upload)
    done = await take_file(context, request, sent, folder)
    return _stored(done.path, done.sha256, done.changed, created=done.changed)


async def take_file(context: RawContext, request: Request, sent: SentFile, folder: str = "") -> Uploaded:
    """Publish the file of a form at its ``path``; one that ends with a slash is the folder of the file."""
    wanted = f"{folder}/{sent.text('path')}" if folder else sent.text("path")
    name = sent.name.rpartition("/")[2]
    path = check_path(
        parse_path(quote(f"{wanted}{name}" if wanted.endswith("/") or not wanted else wanted).encode(), written=True)
    )
    permit = await _permit(context, request, path)
    await context.services.catalog.look(_check_place, context.repository.id, path)
    blob, published = await _store(context, request, permit, path, lambda staged: sent.receive(staged, ALGORITHMS))
    return Uploaded(permit.package, version_of(permit.package, path), published.changed, path, blob.sha256)


async def _permit(context: RawContext, request: Request, path: str) -> Permit:
    """What the caller may do at a path. :raises Forbidden, ReadOnly: nothing"""
    repository = context.repository
    package = package_of(path, patterns_of(repository))
    check_version(version_of(package, path))
    identity, admitted = await context.admit_publishing(request, package)
    allowed = any(fnmatchcase(path, each) for each in policy_of(repository).overwrite)
    may = allowed and await context.services.access.authorizer.may(identity, Action.OVERWRITE, repository, package)
    if allowed:
        why_not = Refusal(403, f"{path} already exists; to replace it you need the permission 'overwrite'", "forbidden")
    else:
        why_not = Refusal(409, f"{path} already exists, and may not be replaced (policy.overwrite)", "file_exists")
    return Permit(package, identity.user_id, may, allowed, admitted, why_not)


def _check_conditions(repository: Repository, request: Request, there: File | None) -> None:
    etag = None if there is None else present_file(repository, {"sha256": there.sha256}).etag
    check_preconditions(request, etag, None if there is None else int(there.created_at.timestamp()))


def _check_place(r: Reader, repository_id: int, path: str) -> None:
    """:raises Conflict: a folder is at the path, or a file where a folder is needed; it says what clients do wrong"""
    if files.find_file(r, repository_id, path) is not None:
        return
    try:
        check_place(r, repository_id, path)
    except Conflict as error:
        raise Conflict(f"{error}{HINT if file_or_folder(r, repository_id, path) is True else ''}") from None


async def delete(context: RawContext, request: Request, path: str) -> Response:
    """Remove a file, or the folder of a version or package. :raises NotFound: there is none of these"""
    services, repository = context.services, context.repository
    identity = await context.admit(request, Action.DELETE, package_of(path, patterns_of(repository)))
    found = await services.catalog.look(_find_removal, repository, path)
    if found is None:
        raise NotFound("file or version", path)
    await services.access.require(identity, Action.DELETE, repository, found.package)
    await remove(services, repository, found, actor_of(request, identity), index_nothing, burn=True)
    return Response(204)


def _find_removal(r: Reader, repository: Repository, path: str) -> Removal | None:
    file = files.find_file(r, repository.id, path)
    if file is not None:
        of = package_and_version_of_file(r, file.id)
        return None if of is None else Removal(of[0], of[1], (path,))
    key = package_of(path, patterns_of(repository))
    package = packages.find_package(r, repository.id, key)
    if package is None or key == path:
        return None if package is None else Removal(key)
    version = versions.find_version(r, package.id, version_of(key, f"{path}/x"))
    return Removal(key, version.key) if version is not None and folder_of(key, version.text) == path else None
