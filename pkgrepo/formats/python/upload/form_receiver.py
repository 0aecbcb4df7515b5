"""Reads the legacy upload form as a stream: text fields into memory, files into the blob store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.formats.python.names import FileName, parse_upload
from pkgrepo.gateway.services import Services
from pkgrepo.http.reading.multipart import MultipartLimits, Part, read_form
from pkgrepo.http.request import Request
from pkgrepo.model import BlobInfo
from pkgrepo.repositories.publish.staged import Staged

from .form import UploadForm
from .release import DIGEST_FIELDS, Distribution

FORM_LIMITS: Final = MultipartLimits(parts=1000, text_bytes=1024 * 1024, header_bytes=8192)
DESCRIPTION_LIMIT: Final = 4 * 1024 * 1024  # bytes; it may hold a readme with embedded pictures
TEXT_BUDGET: Final = 16 * 1024 * 1024  # bytes of all text fields together
SIGNATURE_LIMIT: Final = 1024 * 1024


class FormReceiver:
    """
    Reads one upload form.

    The fields may come in any order. Tools send digests before the file, so that only the announced ones are computed
    besides sha256. ``admit`` is called with the project's key before any of the file is stored; it raises to refuse
    the upload.
    """

    def __init__(
        self,
        services: Services,
        staged: Staged,
        *,
        project: str | None,
        strict: bool,
        admit: Callable[[str], Awaitable[None]],
    ) -> None:
        self._services = services
        self._staged = staged
        self._project = project
        self._strict = strict
        self._admit = admit
        self._expect_size: int | None = None
        self._fields: list[tuple[str, str]] = []
        self._text_size = 0
        self._filename: FileName | None = None
        self._blob: BlobInfo | None = None
        self._signature: BlobInfo | None = None

    async def receive(self, request: Request) -> Distribution:
        """
        The distribution in the request's form.

        :raises Refusal: the form is malformed, too large, or asks for a retired action
        :raises Invalid: a field is missing or given twice
        """
        if request.body.declared is not None:
            self._expect_size = min(request.body.declared, self._services.max_upload)
        async for part in read_form(request.body, request.header(b"content-type"), FORM_LIMITS):
            if part.name == "content":
                await self._take_content(part)
            elif part.name == "gpg_signature":
                self._signature = await self._staged.receive(part, limit=SIGNATURE_LIMIT)
            else:
                await self._take_field(part)
        form = UploadForm.parse(self._fields)
        form.check_action(required=self._project is None)
        if self._filename is None or self._blob is None:
            raise Invalid("the upload form has no file part named 'content'", "content")
        return Distribution(filename=self._filename, blob=self._blob, form=form, signature=self._signature)

    async def _take_field(self, part: Part) -> None:
        value = await part.read_text(DESCRIPTION_LIMIT if part.name == "description" else None)
        self._text_size += len(value)
        if self._text_size > TEXT_BUDGET:
            raise Invalid(f"the fields of the upload form are longer than {TEXT_BUDGET} bytes together")
        self._fields.append((part.name, value))

    async def _take_content(self, part: Part) -> None:
        if self._blob is not None:
            raise Invalid("the upload form has more than one file part named 'content'", "content")
        if part.filename is None:
            raise Invalid("the file part 'content' has no file name", "content")
        named = dict(self._fields).get("name") or self._project
        self._filename = parse_upload(part.filename, project=named, strict=self._strict)
        await self._admit(self._filename.project_key)
        announced = {field for field, value in self._fields if value}
        self._blob = await self._staged.receive(
            part,
            limit=self._services.max_upload,
            expect_size=self._expect_size,
            algorithms=[algorithm for field, algorithm in DIGEST_FIELDS.items() if field in announced],
        )
