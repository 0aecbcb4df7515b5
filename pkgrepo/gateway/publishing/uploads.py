"""
Files that a person sends in a form of the console, or a program in a form of the management API.

A form has texts first and one file last, so that the file streams into the storage while it arrives. Each format
publishes it as it publishes what its clients send: the same checks, rules and refusals.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, Protocol

from attrs import frozen

from pkgrepo.errors import DigestMismatch, Invalid, TooLarge
from pkgrepo.gateway.bodies import check_declared_length
from pkgrepo.gateway.services import Context
from pkgrepo.http.reading.multipart import MultipartLimits, Part
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal
from pkgrepo.model import BlobInfo
from pkgrepo.repositories.publish.staged import Staged

FILE: Final = "file"  # the part with the file
DIGEST: Final = "sha256"  # the part with its digest, in hex
LIMITS: Final = MultipartLimits(parts=16)
TEXTS: Final = 5 * 1024 * 1024  # bytes of all texts, the longest of which is a POM
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
OVERHEAD: Final = 16 * 1024 * 1024  # bytes that a form may have besides its file


@frozen
class UploadField:
    """A text that a format needs beside a file, or with ``file`` a small file, such as a POM."""

    name: str
    label: str
    needed: bool = False
    file: bool = False


class SentFile:
    """
    The file of a form: ``name`` as the client wrote it, and the ``fields`` before it. Its bytes are read once.

    With the field ``sha256`` a file of other bytes is refused.
    """

    def __init__(
        self, part: Part, rest: AsyncIterator[Part], fields: Mapping[str, bytes], *, limit: int, declared: int | None
    ) -> None:
        self.name = part.filename or ""
        self.fields = fields
        self._part = part
        self._rest = rest
        self._limit = limit
        self._form_size = declared

    def text(self, name: str) -> str:
        """A field without spaces around it; empty if it is absent. :raises Invalid: it is not UTF-8"""
        try:
            return self.fields.get(name, b"").decode("utf-8").strip()
        except UnicodeDecodeError:
            raise Invalid(f"the field {name} is not UTF-8", name) from None

    async def receive(self, staged: Staged, algorithms: Sequence[str] = ()) -> BlobInfo:
        """
        Stage the file.

        :raises TooLarge, StorageFull, StorageFailed: it is not stored; :raises Refusal: the form goes on after it
        :raises DigestMismatch: it is damaged
        """
        expected = self._expected
        blob = await staged.receive_part(
            self._part,
            self._form_size,
            self._limit,
            algorithms=algorithms,
            expected={"sha256": expected} if expected else None,
        )
        await self._end()
        return blob

    async def chunks(self) -> AsyncIterator[bytes]:
        """
        The bytes as they arrive.

        :raises TooLarge: there are more than the server takes; :raises Refusal: the form goes on after the file
        :raises DigestMismatch: it is damaged, which is known at its end
        """
        size, digest = 0, sha256()
        async for chunk in self._part:
            size += len(chunk)
            if size > self._limit:
                raise TooLarge(self._limit)
            digest.update(chunk)
            yield chunk
        self._compare(digest.hexdigest())
        await self._end()

    async def read(self, limit: int) -> bytes:
        """The file in memory, if it is small. :raises Refusal: it is longer than ``limit`` bytes, as above"""
        content = await self._part.read_bytes(limit)
        self._compare(sha256(content).hexdigest())
        await self._end()
        return content

    @property
    def _expected(self) -> str:
        """:raises Invalid: it is no sha256"""
        found = self.text(DIGEST).lower()
        if found and not _SHA256.fullmatch(found):
            raise Invalid(f"{DIGEST} must be 64 hexadecimal digits", DIGEST)
        return found

    def _compare(self, actual: str) -> None:
        expected = self._expected
        if expected and expected != actual:
            raise DigestMismatch("sha256", expected, actual)

    async def _end(self) -> None:
        async for part in self._rest:
            raise Refusal(
                400, f"the file is the last part of the form, and {part.name[:100]!r} is after it", "bad_form"
            )


@frozen
class Uploaded:
    """
    What was published of a file: a version of a package. Without ``changed`` the same bytes were there before.

    ``path`` is where the repository has the file; empty for an archive of images.
    """

    package: str
    version: str
    changed: bool
    path: str = ""
    sha256: str = ""


class Take(Protocol):
    """Publishes a file as a client's upload is published."""

    def __call__(self, context: Context[Any], request: Request, sent: SentFile, /) -> Awaitable[Uploaded]:
        """The context is that of the repository that the form was sent to. :raises PkgrepoError, Refusal: as there"""


@frozen
class Folder:
    """
    A folder of which clients make a file that is taken: ``marker`` is the name of a file that such a folder has.

    ``packing`` is how they do it, see L{pkgrepo.client.packing.folders}; without one the ``advice`` says what to do.
    """

    marker: str
    packing: str = ""
    advice: str = ""


@frozen
class Uploads:
    """
    How a format takes files from forms.

    ``names`` are regular expressions for the part of a file's name before each ending that is taken, for a check
    before the file is sent. ``folders`` are what clients make such files of. ``caches`` are those of the format, for
    the context of ``take``.
    """

    what: str
    names: Mapping[str, str]
    take: Take
    fields: tuple[UploadField, ...] = ()
    folders: tuple[Folder, ...] = ()
    caches: Any = None


async def read_sent_file(request: Request, parts: AsyncIterator[Part], limit: int) -> SentFile:
    """
    The file of a form, once its texts have arrived.

    :raises TooLarge: the form announces more than ``limit`` bytes
    :raises Refusal: it is malformed, has no file, or its texts are longer than ``TEXTS`` bytes together (413)
    """
    check_declared_length(request, limit + OVERHEAD)
    fields: dict[str, bytes] = {}
    async for part in parts:
        if part.name == FILE:
            if not part.filename:
                break
            return SentFile(part, parts, fields, limit=limit, declared=request.body.declared)
        if part.name in fields:
            raise Refusal(400, f"the form has two parts named {part.name[:100]!r}", "bad_form")
        fields[part.name] = await part.read_bytes(TEXTS - sum(map(len, fields.values())))
    raise Refusal(400, f"the form has no part named {FILE!r} with the name of a file", "bad_form")
