"""
The legacy upload form: text fields are read into memory, files into the blob store.

Tools differ: fields come in any order, empty fields are sent or left out, digests vary. Name, version and kind must
match the metadata in the file itself; the other fields are kept unchanged.

=====================  =====================================================================================
field                  which tools differ
=====================  =====================================================================================
``pyversion``          flit 4 sends none for source distributions
``md5_digest``         twine 7 and uv send none, setuptools' old command sends no other digest
``blake2_256_digest``  flit 4 sends none
``requires_python``    uv sends it even when it is empty
``license_file``       twine, uv and hatch use the singular
``attestations``       uv and twine send them on request only
=====================  =====================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.python.names import FileName, normalise, parse_upload
from pkgrepo.formats.python.upload.metadata import CoreMetadata
from pkgrepo.formats.python.upload.provenance import parse_attestations
from pkgrepo.formats.python.versions import parse_version
from pkgrepo.http.reading.multipart import MultipartLimits, read_form
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal
from pkgrepo.model import BlobInfo
from pkgrepo.repositories.publish.staged import Staged

ACTION = ":action"
UPLOAD = "file_upload"
RETIRED_ACTIONS: Final = ("submit", "submit_pkg_info", "doc_upload")
KINDS: Final = ("bdist_wheel", "sdist")
DIGEST_LENGTHS: Final = {"sha256_digest": 64, "blake2_256_digest": 64, "md5_digest": 32}  # hex digits

DIGEST_FIELDS: Final = {"md5_digest": "md5", "blake2_256_digest": "blake2b_256"}
FORM_LIMITS: Final = MultipartLimits(parts=1000, text_bytes=1024 * 1024, header_bytes=8192)
DESCRIPTION_LIMIT: Final = 4 * 1024 * 1024  # bytes; it may hold a readme with embedded pictures
TEXT_BUDGET: Final = 16 * 1024 * 1024  # bytes of all text fields together
SIGNATURE_LIMIT: Final = 1024 * 1024

_METADATA_VERSION = re.compile(r"[12]\.[0-9]{1,3}")
_HEX = re.compile(r"[0-9A-Fa-f]+")

# Fields with one value; others may be repeated, and their order is kept.
_SINGLE: Final = (
    ACTION,
    "protocol_version",
    "metadata_version",
    "name",
    "version",
    "filetype",
    "pyversion",
    "comment",
    "attestations",
    *DIGEST_LENGTHS,
)


@frozen
class UploadForm:
    """
    The parsed text fields; absent ones are empty.

    ``digests`` maps field name to lower-case hex, for those that were sent. ``values`` holds every field unchanged,
    repeated ones in order.
    """

    action: str
    name: str
    version: str
    filetype: str
    pyversion: str
    comment: str
    digests: Mapping[str, str]
    attestations: Sequence[Mapping[str, Any]]
    values: Mapping[str, Sequence[str]]

    @classmethod
    def parse(cls, fields: Sequence[tuple[str, str]]) -> UploadForm:
        """
        Parse the text fields, given in the order of the form.

        :raises Invalid: a field has an unknown value or two different ones
        """
        values: dict[str, list[str]] = {}
        for field, value in fields:
            values.setdefault(field, []).append(value)
        single = {field: _single(field, values[field]) if field in values else "" for field in _SINGLE}
        if single["protocol_version"] not in ("", "1"):
            raise Invalid(
                f"protocol_version {single['protocol_version']!a} is not known, only 1 is", "protocol_version"
            )
        metadata_version = single["metadata_version"]
        if metadata_version and not _METADATA_VERSION.fullmatch(metadata_version):
            raise Invalid(f"metadata_version {metadata_version!a} is not known, 1.0 to 2.x are", "metadata_version")
        if single["filetype"] not in ("", *KINDS):
            raise Invalid(
                f"filetype {single['filetype']!a} is not taken: only wheels (bdist_wheel) and source distributions "
                "(sdist) are",
                "filetype",
            )
        return cls(
            action=single[ACTION],
            name=single["name"],
            version=single["version"],
            filetype=single["filetype"],
            pyversion=single["pyversion"],
            comment=single["comment"],
            digests=MappingProxyType(_digests(single)),
            attestations=parse_attestations(single["attestations"]),
            values=MappingProxyType({field: tuple(each) for field, each in values.items()}),
        )

    def check_action(self, *, required: bool) -> None:
        """
        Check that the action is ``file_upload``, or absent if it is not ``required``.

        :raises Invalid: no action, or an unknown one; :raises Refusal: an action that registries retired
        """
        if self.action == UPLOAD or not (self.action or required):
            return
        if self.action in RETIRED_ACTIONS:
            raise Refusal(410, f"the action {self.action} is not supported any more; upload files instead", "gone")
        said = f"not {self.action!a}" if self.action else "and is missing"
        raise Invalid(f"the field {ACTION} must be {UPLOAD}, {said}", ACTION)

    def check(self, filename: FileName, metadata: CoreMetadata) -> None:
        """
        Compare the form with the file.

        :raises Invalid: project, version or kind differ
        """
        if self.name and normalise(self.name) != filename.project_key:
            raise Invalid(f"the form has the name {self.name!a}, the file is one of {metadata.name!a}", "name")
        if self.version and parse_version(self.version)[0] != filename.version_key:
            raise Invalid(
                f"the form has the version {self.version!a}, the file is one of {metadata.version!a}", "version"
            )
        if self.filetype and self.filetype != filename.kind:
            raise Invalid(
                f"the form has the filetype {self.filetype}, {filename.filename} is a {filename.kind}", "filetype"
            )


@frozen
class Distribution:
    """An uploaded file, staged, with its form and signature if it has them."""

    filename: FileName
    blob: BlobInfo
    form: UploadForm | None = None
    signature: BlobInfo | None = None


async def receive_form(
    request: Request,
    staged: Staged,
    *,
    limit: int,
    project: str | None,
    strict: bool,
    admit: Callable[[str], Awaitable[None]],
) -> Distribution:
    """
    Stage the distribution in the request's form.

    Tools send digests before the file, so that only the announced ones are computed besides sha256. ``admit`` is called
    with the project's key before any of the file is stored; it raises to refuse the upload.

    :raises Refusal: the form is malformed, too large, or asks for a retired action
    :raises Invalid: a field is missing or given twice
    """
    fields: list[tuple[str, str]] = []
    text_size = 0
    filename: FileName | None = None
    blob: BlobInfo | None = None
    signature: BlobInfo | None = None
    async for part in read_form(request.body, request.header(b"content-type"), FORM_LIMITS):
        if part.name == "content":
            if blob is not None:
                raise Invalid("the upload form has more than one file part named 'content'", "content")
            if part.filename is None:
                raise Invalid("the file part 'content' has no file name", "content")
            filename = parse_upload(part.filename, project=dict(fields).get("name") or project, strict=strict)
            await admit(filename.project_key)
            announced = {field for field, value in fields if value}
            blob = await staged.receive_part(
                part,
                request.body.declared,
                limit,
                algorithms=[algorithm for field, algorithm in DIGEST_FIELDS.items() if field in announced],
            )
        elif part.name == "gpg_signature":
            signature = await staged.receive(part, limit=SIGNATURE_LIMIT)
        else:
            value = await part.read_text(DESCRIPTION_LIMIT if part.name == "description" else None)
            text_size += len(value)
            if text_size > TEXT_BUDGET:
                raise Invalid(f"the fields of the upload form are longer than {TEXT_BUDGET} bytes together")
            fields.append((part.name, value))
    form = UploadForm.parse(fields)
    form.check_action(required=project is None)
    if filename is None or blob is None:
        raise Invalid("the upload form has no file part named 'content'", "content")
    return Distribution(filename=filename, blob=blob, form=form, signature=signature)


def _single(field: str, values: Sequence[str]) -> str:
    said = {value.strip() for value in values} - {""}
    if len(said) > 1:
        raise Invalid(f"the upload form gives {field} more than once", field)
    return said.pop() if said else ""


def _digests(single: Mapping[str, str]) -> dict[str, str]:
    digests: dict[str, str] = {}
    for field, length in DIGEST_LENGTHS.items():
        value = single[field]
        if not value:
            continue
        if len(value) != length or not _HEX.fullmatch(value):
            raise Invalid(f"{field} must be {length} hexadecimal digits", field)
        digests[field] = value.lower()
    return digests
