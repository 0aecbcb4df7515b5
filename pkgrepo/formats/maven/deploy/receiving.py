"""Bundles in the bodies of requests: as the whole body, or as the part ``bundle`` of a form."""

from __future__ import annotations

from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.gateway.services import Services
from pkgrepo.gateway.uploads import check_declared_length, receive_body
from pkgrepo.http.answers import Refusal
from pkgrepo.http.reading.multipart import MultipartLimits, read_form
from pkgrepo.http.request import Request
from pkgrepo.model import BlobInfo
from pkgrepo.repositories.publish.staged import Staged

FORM: Final = b"multipart/form-data"
FIELD: Final = "bundle"
FORM_LIMITS: Final = MultipartLimits(parts=20, text_bytes=64 * 1024)
FORM_OVERHEAD: Final = 2 * 1024 * 1024  # bytes that a form may have besides its bundle

# The types under which archives are sent. What a body is, its first bytes tell.
ARCHIVES: Final = frozenset(
    {
        b"application/zip",
        b"application/x-zip-compressed",
        b"application/gzip",
        b"application/x-gzip",
        b"application/x-gtar",
        b"application/x-tar",
        b"application/x-compressed-tar",
        b"application/tar+gzip",
        b"application/octet-stream",
        b"",
    }
)


def media_type(request: Request) -> bytes:
    """The media type of a request's body, without parameters; empty if it has none."""
    return (request.header(b"content-type") or b"").partition(b";")[0].strip().lower()


def check_bundle_head(request: Request, services: Services) -> None:
    """
    Check that a body may be a bundle, before a byte of it is read.

    :raises Refusal: its type is another; :raises TooLarge: it announces too many bytes
    """
    kind = media_type(request)
    if kind not in ARCHIVES and kind != FORM:
        sentence = "a bundle is application/zip, application/gzip, application/x-tar, or the field bundle of a form"
        raise Refusal(415, sentence, "not_a_bundle")
    if (request.header(b"content-encoding") or b"identity").strip().lower() not in (b"", b"identity"):
        raise Refusal(415, "a bundle is sent as it is, without Content-Encoding", "content_coding")
    overhead = FORM_OVERHEAD if kind == FORM else 0
    check_declared_length(request, services.max_upload + overhead)


async def receive_bundle(request: Request, services: Services, staged: Staged) -> BlobInfo:
    """
    The bundle in a body, staged.

    :raises TooLarge: it is too large; :raises Refusal: it is a malformed form, or does not arrive whole
    :raises Invalid: the form has no field ``bundle``, or several
    """
    if media_type(request) != FORM:
        return await receive_body(request, staged, limit=services.max_upload)
    found: BlobInfo | None = None
    async for part in read_form(request.body, request.header(b"content-type"), FORM_LIMITS):
        if part.name != FIELD:
            continue
        if found is not None:
            raise Invalid("the form has two fields 'bundle'", FIELD)
        found = await staged.receive(part, limit=services.max_upload)
    if found is None:
        raise Invalid("the form has no field 'bundle'", FIELD)
    return found
