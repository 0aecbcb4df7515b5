"""
A PUT of a package's document: a publish when a tarball is attached, else a change of what was published.

npm uses one method and address for both, so that only the body tells which it is. The tarball goes to the blob store
while it arrives, the rest to memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Final, TypeVar

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm import semver
from pkgrepo.formats.npm.authorization import require, require_publishing, verb_of_put
from pkgrepo.formats.npm.change.commands import check_versions
from pkgrepo.formats.npm.change.document_change import DocumentChange, read_change, verb_of_change
from pkgrepo.formats.npm.change.requests import apply_written
from pkgrepo.formats.npm.change.written_document import read_written
from pkgrepo.formats.npm.limits import DOCUMENT
from pkgrepo.formats.npm.packument.requests import find_package
from pkgrepo.formats.npm.paths import PackagePath, RootPath, VersionPath, tarball_path
from pkgrepo.formats.npm.publish.envelope import packed_publication, read_name, read_publication
from pkgrepo.formats.npm.publish.manifest import ALGORITHMS
from pkgrepo.formats.npm.publish.requests import publish
from pkgrepo.formats.npm.publish.scanner import PublishScanner
from pkgrepo.formats.npm.publish.sent_document import AttachmentEnd, AttachmentStart, ScanEvent, SentDocument
from pkgrepo.formats.npm.publish.tarball import read_tarball
from pkgrepo.formats.npm.refusals import REGISTRY
from pkgrepo.gateway.bodies import check_declared_length, misplaced_upload, read_pieces
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.publishing.uploads import SentFile, Uploaded
from pkgrepo.gateway.publishing.virtual import publish_context
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal, Response
from pkgrepo.model import Action, Actor, BlobInfo, Extent, File, Identity
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import files

LONGEST_SHOWN: Final = 200  # characters of a file's name in error messages
SMALL_DOCUMENT: Final = 64 * 1024  # bytes; parsing a larger one takes a millisecond or more
T = TypeVar("T")
DocumentPath = RootPath | PackagePath | VersionPath


@frozen
class ReceivedDocument:
    """A document, and its tarball as a staged blob; None when the document has no tarball and so is a change."""

    document: SentDocument
    tarball: BlobInfo | None


class Receiver:
    """Reads the body of one request."""

    def __init__(self, request: Request, staged: Staged, *, max_tarball: int) -> None:
        self._pieces = read_pieces(request)
        self._staged = staged
        self._max_tarball = max_tarball
        # The store reserves room for the largest possible tarball: base64 has four characters for three bytes.
        declared = request.body.declared
        self._form_size = None if declared is None else declared // 4 * 3
        self._scanner = PublishScanner()
        self._events: deque[ScanEvent] = deque()
        self._document: SentDocument | None = None

    async def receive(self) -> ReceivedDocument:
        """
        The document with its tarball.

        :raises Invalid: it is malformed, or has two tarballs; :raises TooLarge: the tarball or the rest is too large
        """
        tarball: BlobInfo | None = None
        while (event := await self._next()) is not None:
            if not isinstance(event, AttachmentStart):
                continue
            if tarball is not None:
                raise Invalid("a publish document has one tarball", "_attachments")
            tarball = await self._staged.receive_part(
                self._data(), self._form_size, self._max_tarball, algorithms=ALGORITHMS
            )
        assert self._document is not None
        return ReceivedDocument(self._document, tarball)

    async def _next(self) -> ScanEvent | None:
        """The next event, or None at the end of the body."""
        while not self._events:
            chunk = await anext(self._pieces, b"")
            if not chunk:
                if self._document is None:
                    self._document = self._scanner.finish()
                return None
            self._events.extend(self._scanner.feed(chunk))
        return self._events.popleft()

    async def _data(self) -> AsyncIterator[bytes]:
        """The bytes of the attachment that has begun, up to its end."""
        while (event := await self._next()) is not None and not isinstance(event, AttachmentEnd):
            if isinstance(event, bytes):
                yield event


def largest_body(max_tarball: int) -> int:
    """The size in bytes of a request with the largest tarball, in base64, and the largest document."""
    return max_tarball // 3 * 4 + DOCUMENT.size


async def put_document(context: Context[object], request: Request, path: DocumentPath) -> Response:
    """Publish or change a package. :raises Forbidden: the caller may not do what the document asks for"""
    services = context.services
    named = None if isinstance(path, RootPath) else path.name
    revision = path.revision if isinstance(path, PackagePath) else ""
    identity = await services.access.identify(request)
    await require(context, identity, Action.WRITE, named, verb_of_put(request, revision))
    check_declared_length(request, largest_body(services.max_upload))
    async with services.content.stage(context.repository, named, user_id=identity.user_id) as staged:
        received = await Receiver(request, staged, max_tarball=services.max_upload).receive()
        identity = await services.access.identify(request)  # again: the body may have taken hours
        actor, document, tarball = actor_of(request, identity), received.document, received.tarball
        try:
            if tarball is None:
                name, change = await parse_document(
                    context, document, partial(_read_change, document, named, revision, actor)
                )
                if isinstance(path, VersionPath):
                    raise Refusal(
                        400, f"the document has no tarball attached; it is {name} that changes, at its address"
                    )
                return await _change(context, name, change, identity, actor)
            publication = await parse_document(context, document, partial(read_publication, document, named))
            admitted = await require_publishing(context, identity, publication.name, "publish", actor)
            if isinstance(path, VersionPath) and not semver.is_same(path.selector, publication.version):
                raise Refusal(400, f"the document publishes {publication.version.text}, not {path.selector}")
            return await publish(context, request, staged, publication, tarball, identity, admitted)
        except Invalid as error:
            if isinstance(path, VersionPath) and error.pointer == "name":  # ``<registry>/npm/<package>``
                refusal = Refusal(400, str(error), "invalid")
                raise misplaced_upload(services.base_url(request), request, refusal, REGISTRY) from None
            raise


async def take_file(context: Context[object], request: Request, sent: SentFile) -> Uploaded:
    """
    Publish a tarball that is the file of a form; see ``pkgrepo.gateway.publishing.uploads``.

    What clients send around a tarball is read from its package.json and its readme, as they do.
    """
    context = await publish_context(context, request)
    services = context.services
    identity = await services.access.identify(request)
    await require(context, identity, Action.WRITE, Extent.SOME, "publish")
    async with services.content.stage(context.repository, user_id=identity.user_id) as staged:
        blob = await sent.receive(staged, ALGORITHMS)
        look = partial(read_tarball, filename=sent.name[:LONGEST_SHOWN], readme=True)
        try:
            contents = await staged.inspect(services.pools.cpu, blob, look, commit=False)
            publication = packed_publication(contents, sent.text("tag"))
        except Invalid as error:
            raise Invalid(f"{sent.name[:LONGEST_SHOWN]} is no npm package: {error.message}", error.pointer) from None
        identity = await services.access.identify(request)  # again: the file may have taken hours
        actor = actor_of(request, identity)
        admitted = await require_publishing(context, identity, publication.name, "publish", actor)
        version, path = publication.version.text, tarball_path(publication.name, publication.version.text)
        found: File | None = await services.catalog.look(files.find_file, context.repository.id, path)
        changed = found is None or found.sha256 != blob.sha256
        if changed:
            await publish(context, request, staged, publication, blob, identity, admitted)
    return Uploaded(publication.name, version, changed, path, blob.sha256)


async def parse_document(context: Context[object], document: SentDocument, parse: Callable[[], T]) -> T:
    """The result of ``parse``, which runs in a thread when the document is large."""
    if len(document.text) <= SMALL_DOCUMENT:
        return parse()
    return await context.services.pools.cpu(parse)


def _read_change(document: SentDocument, named: str | None, revision: str, actor: Actor) -> tuple[str, DocumentChange]:
    written = read_written(document)
    change = read_change(written, revision, actor.name)
    return read_name(written.members, named), change


async def _change(
    context: Context[object], name: str, change: DocumentChange, identity: Identity, actor: Actor
) -> Response:
    admitted = await require_publishing(context, identity, name, verb_of_change(change), actor)
    if await find_package(context, name) is None:
        raise Refusal(400, f"the document has no tarball attached, and there is no package {name} to change")
    await context.services.catalog.look(check_versions, context.repository, name, change)
    return await apply_written(context, name, change, identity, admitted)
