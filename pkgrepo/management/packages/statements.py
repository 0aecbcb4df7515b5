"""
Shows the documents in manifests about images: bills of materials (CycloneDX and SPDX in JSON), attestations (in-toto
statements, also signed ones), and other JSON.

A document is whatever bytes the publisher pushed. Nothing is verified, what is malformed is left out, and every list
has a bound.
"""

from __future__ import annotations

import base64
from typing import Any, Final

import msgspec
from attrs import evolve, frozen

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.management.api.access_rules import CONTENT_READERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.route import Table
from pkgrepo.management.packages import images
from pkgrepo.management.packages.advisories import check_components
from pkgrepo.management.packages.contents import ComponentRecord, StatementRecord
from pkgrepo.management.packages.image_contents import (
    Budget,
    Descriptor,
    read_blob,
    read_document,
    stored_manifests,
)
from pkgrepo.storage.catalog.images.contents import StoredManifest
from pkgrepo.untrusted.strict_json import check_value_count, decode_as

MOST_DOCUMENTS: Final = 8  # of a manifest
MOST_VALUES: Final = 400_000  # of a document
MOST_COMPONENTS: Final = 5000
MOST_SUBJECTS: Final = 20
MOST_TEXT: Final = 64 * 1024  # characters of another document
LONGEST: Final = 300  # characters of a name, a version or a licence
MOST_LICENSES: Final = 5  # of a component
ENVELOPES: Final = 4  # documents in documents: a bundle, its envelope, its statement, the text in that
UNSAID: Final = ("NOASSERTION", "NONE")  # SPDX 2.3 section 7.13: nothing is known
TOO_LARGE: Final = "it is lost, or too large to be shown"

table = Table("packages")


class _License(msgspec.Struct):
    id: Any = ""
    name: Any = ""


class _LicenseChoice(msgspec.Struct):
    license: _License | None = None
    expression: Any = ""


class _Component(msgspec.Struct):
    name: Any = ""
    version: Any = ""
    type: Any = ""
    group: Any = ""
    purl: Any = ""
    licenses: list[_LicenseChoice] | None = None


class _Metadata(msgspec.Struct):
    component: _Component | None = None


class _CycloneDx(msgspec.Struct):
    bomFormat: str = ""
    specVersion: Any = ""
    metadata: _Metadata | None = None
    components: list[_Component] | None = None


class _Reference(msgspec.Struct):
    referenceType: Any = ""
    referenceLocator: Any = ""


class _Package(msgspec.Struct):
    name: Any = ""
    versionInfo: Any = ""
    licenseConcluded: Any = ""
    licenseDeclared: Any = ""
    primaryPackagePurpose: Any = ""
    externalRefs: list[_Reference] | None = None


class _Creation(msgspec.Struct):
    creators: list[Any] = []


class _Spdx(msgspec.Struct):
    spdxVersion: str = ""
    name: Any = ""
    creationInfo: _Creation | None = None
    packages: list[_Package] | None = None


class _Subject(msgspec.Struct):
    name: Any = ""


class _Statement(msgspec.Struct):
    predicateType: str = ""
    subject: list[_Subject] | None = None
    predicate: msgspec.Raw = msgspec.Raw()


class _Kind(msgspec.Struct):
    """The members by which documents are told apart."""

    bomFormat: Any = None
    spdxVersion: Any = None
    predicateType: Any = None
    payload: Any = None
    payloadType: Any = None
    dsseEnvelope: msgspec.Raw = msgspec.Raw()
    Data: Any = None


@frozen
class Document:
    """What a document says; see L{StatementRecord}."""

    kind: str = "JSON"
    subjects: tuple[str, ...] = ()
    made_by: str = ""
    components: tuple[ComponentRecord, ...] = ()
    count: int = 0
    text: str = ""
    problem: str = ""


def read_statement(data: bytes) -> Document:
    """What a document says. Takes up to 50 ms."""
    try:
        check_value_count(data, MOST_VALUES, "the document")
        return _read(data, ENVELOPES)
    except (Invalid, ValueError) as error:
        return Document(kind="", problem=str(error) if isinstance(error, Invalid) else "it is not JSON")


def _read(data: bytes, envelopes: int) -> Document:
    found = decode_as(data, _Kind, what="the document")
    if found.bomFormat == "CycloneDX":
        return _cyclonedx(decode_as(data, _CycloneDx, what="the bill of materials"))
    if isinstance(found.spdxVersion, str):
        return _spdx(decode_as(data, _Spdx, what="the bill of materials"))
    inner = _inner(found)
    if envelopes and inner is not None:
        return _read(inner, envelopes - 1)
    if envelopes and isinstance(found.predicateType, str):
        return _attestation(decode_as(data, _Statement, what="the statement"), envelopes)
    if len(data) > 4 * MOST_TEXT:
        return Document(problem=TOO_LARGE)
    return Document(text=msgspec.json.format(data, indent=2).decode()[:MOST_TEXT])


def _inner(found: _Kind) -> bytes | None:
    """The document in a Sigstore bundle, in an envelope (DSSE), or in a predicate of cosign before 2."""
    if bytes(found.dsseEnvelope):
        return bytes(found.dsseEnvelope)
    if isinstance(found.payload, str) and found.payloadType is not None:
        return base64.b64decode(found.payload, validate=True)
    if isinstance(found.Data, str) and found.Data.lstrip().startswith("{"):
        return found.Data.encode()
    return None


def _attestation(statement: _Statement, envelopes: int) -> Document:
    predicate = bytes(statement.predicate) or b"{}"
    inner = _read(predicate, envelopes - 1) if predicate.lstrip().startswith(b"{") else Document()
    subjects = tuple(_text(each.name) for each in (statement.subject or [])[:MOST_SUBJECTS])
    kind = inner.kind if inner.components else statement.predicateType[:LONGEST]
    return evolve(inner, kind=kind, subjects=tuple(filter(None, subjects)) or inner.subjects)


def _cyclonedx(document: _CycloneDx) -> Document:
    listed = document.components or []
    top = document.metadata.component if document.metadata is not None else None
    return Document(
        kind=" ".join(filter(None, ("CycloneDX", _text(document.specVersion)))),
        subjects=() if top is None or not _text(top.name) else (_text(top.name),),
        components=tuple(_component(each) for each in listed[:MOST_COMPONENTS]),
        count=len(listed),
    )


def _component(found: _Component) -> ComponentRecord:
    choices = [
        _text(each.expression) or (_text(each.license.id) or _text(each.license.name) if each.license else "")
        for each in (found.licenses or [])[:MOST_LICENSES]
    ]
    group, name = _text(found.group), _text(found.name)
    return ComponentRecord(
        name=f"{group}/{name}" if group else name,
        version=_text(found.version),
        license=" AND ".join(filter(None, choices))[:LONGEST],
        kind=_text(found.type),
        purl=_text(found.purl),
    )


def _spdx(document: _Spdx) -> Document:
    listed = document.packages or []
    creators = document.creationInfo.creators if document.creationInfo is not None else []
    return Document(
        kind=document.spdxVersion[:LONGEST],
        subjects=(_text(document.name),) if _text(document.name) else (),
        made_by=", ".join(filter(None, map(_text, creators[:MOST_LICENSES])))[:LONGEST],
        components=tuple(_package(each) for each in listed[:MOST_COMPONENTS]),
        count=len(listed),
    )


def _package(found: _Package) -> ComponentRecord:
    said = [_text(each) for each in (found.licenseConcluded, found.licenseDeclared)]
    purls = [_text(each.referenceLocator) for each in found.externalRefs or [] if each.referenceType == "purl"]
    return ComponentRecord(
        name=_text(found.name),
        version=_text(found.versionInfo),
        license=next((each for each in said if each and each not in UNSAID), ""),
        kind=_text(found.primaryPackagePurpose).lower(),
        purl=purls[0] if purls else "",
    )


def _text(value: Any) -> str:
    return value[:LONGEST] if isinstance(value, str) else ""


@table.get(
    "/package/<repository>/<package>/versions/<version>/statements",
    CONTENT_READERS,
    "Show what a manifest about an image says",
)
async def list_statements(call: Call, version: str) -> list[StatementRecord]:
    """
    Only for images: version is the digest of an SBOM, an attestation or a signature, as the referrers and attestations
    of an image name it. Its first eight documents are read, of at most 8 MiB together. Nothing of them is verified.
    """
    if not images.are_in(call):
        raise NotFound("image", call.package or "")
    package = await call.find_package()
    found = await images.find(call, package, version)
    read = await _documents(call, package.id, found.digest, Budget())
    if read is None:
        raise NotFound("manifest", found.digest)
    return [await _record(call, layer, said) for layer, said in read]


async def read_statements(call: Call, package_id: int, digest: str, budget: Budget) -> list[Document]:
    """What the documents in a manifest about an image say; none of one that cannot be read."""
    try:
        return [said for _, said in await _documents(call, package_id, digest, budget) or ()]
    except Invalid:
        return []


async def _documents(
    call: Call, package_id: int, digest: str, budget: Budget
) -> list[tuple[Descriptor, Document]] | None:
    """The first documents in a manifest; None if it cannot be read. :raises Invalid: it is no manifest"""
    for held in await stored_manifests(call, package_id, [digest]):
        data = await read_blob(call, held.locator, held.size, budget)
        if data is not None:
            document = await call.shared.pools.cpu(read_document, data)
            return [(each, await _said(call, held, each, budget)) for each in document.layers[:MOST_DOCUMENTS]]
    return None


async def _said(call: Call, held: StoredManifest, layer: Descriptor, budget: Budget) -> Document:
    data = await _content(call, held, layer, budget)
    if data is None:
        return Document(kind="", problem=TOO_LARGE)
    if data.lstrip()[:1] in (b"{", b"["):
        said: Document = await call.shared.pools.cpu(read_statement, data)
        return said
    return Document(kind="", problem="it is not JSON")


async def _record(call: Call, layer: Descriptor, said: Document) -> StatementRecord:
    return StatementRecord(
        digest=layer.digest,
        media_type=layer.mediaType[:LONGEST],
        size=layer.size,
        kind=said.kind or layer.mediaType[:LONGEST],
        subjects=list(said.subjects),
        made_by=said.made_by,
        components=await check_components(call, said.components),
        component_count=said.count,
        text=said.text,
        problem=said.problem,
    )


async def _content(call: Call, held: StoredManifest, layer: Descriptor, budget: Budget) -> bytes | None:
    for blob in held.blobs:
        if blob.digest == layer.digest:
            return await read_blob(call, blob.locator, blob.size, budget)
    return None
