"""
What a manifest says: its type, what it refers to, and what lists of referrers repeat of it.

The documents are those of the OCI image specification 1.1 (image manifest, image index) and of docker's second schema
(manifest, manifest list). Their bytes are kept as they came: a digest is of bytes, not of meaning.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.repositories.images.push import Reference
from pkgrepo.untrusted.json_errors import ERRORS, sentence
from pkgrepo.untrusted.json_limits import check_values

from .limits import MOST_ANNOTATIONS, MOST_REFERENCES, MOST_VALUES
from .names import Digest, DigestInvalid, parse_digest

OCI_IMAGE = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_ARTIFACT = "application/vnd.oci.artifact.manifest.v1+json"
DOCKER_IMAGE = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"

IMAGES = frozenset({OCI_IMAGE, DOCKER_IMAGE})
INDEXES = frozenset({OCI_INDEX, DOCKER_LIST})
MANIFESTS = frozenset({"manifest", "subject"})  # kinds of descriptors whose content is a manifest itself
UNSPECIFIC = frozenset({"", "application/json", "application/octet-stream", "text/plain"})  # curl says such things

_SCHEMA_1 = re.compile(r"application/vnd\.docker\.distribution\.manifest\.v1\+(json|prettyjws)")
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}")
_KIND = re.compile(r"[\x21-\x7e][\x20-\x7e]{0,254}")  # wider than a media type: some artifacts' types have parameters
_FOREIGN = re.compile(r"\.foreign\.|nondistributable")

# What manifests are read by. Programs written in Go take keys in whatever case, and of several the last.
_KEYS = {
    key.lower(): key
    for key in (
        "schemaVersion",
        "mediaType",
        "artifactType",
        "config",
        "layers",
        "manifests",
        "blobs",
        "subject",
        "annotations",
    )
}

# Layers that no program runs: signatures, statements and bills of material. A manifest of nothing else may be seen by
# readers before anybody has signed it, if its layers hold what their types say.
_EVIDENCE = re.compile(
    r"application/vnd\.dev\.cosign\.simplesigning\.v1\+json|application/vnd\.dev\.sigstore\.bundle[A-Za-z0-9.+=;-]*"
    r"|application/(vnd\.dsse\.envelope\.v1|vnd\.in-toto|vnd\.cyclonedx|spdx|vnd\.syft|jose)\+json"
    r"|application/(vnd\.cyclonedx\+xml|cose)|text/spdx(\+json|\+xml)?"
)


@frozen
class Document:
    """
    A manifest, read. ``required`` must be there, ``references`` are all that can be, as (digest, kind).

    ``artifact_type`` is what lists of referrers say: its own, else an image's type of configuration. ``evidence`` says
    that all of its layers call themselves signatures or statements about something else.
    """

    media_type: str
    required: tuple[Reference, ...]
    references: tuple[tuple[str, str], ...]
    subject: str | None
    artifact_type: str | None
    annotations: Mapping[str, str]
    evidence: bool


def parse_document(data: bytes, content_type: str, *, other_types: bool = False) -> Document:
    """
    What a manifest says. Takes some 10 ms for a megabyte.

    ``content_type`` is the request's, without parameters. With ``other_types`` any JSON object is a manifest.

    :raises Invalid: it is none, or contradicts itself; :raises DigestInvalid: a descriptor's digest is malformed
    """
    value = _load(data)
    media_type = _media_type(value, content_type)
    if media_type in IMAGES:
        if "manifests" in value:
            raise Invalid("a manifest of an image has no list of manifests")
        descriptors = [("config", value.get("config")), *(("layer", each) for each in _list(value, "layers"))]
    elif media_type in INDEXES:
        if "layers" in value or "config" in value:
            raise Invalid("an index has neither layers nor a config")
        descriptors = [("manifest", each) for each in _list(value, "manifests")]
    elif media_type == OCI_ARTIFACT or other_types:
        descriptors = [("layer", each) for each in _list(value, "blobs", optional=True)]
    else:
        raise Invalid(f"manifests of type {media_type} are not accepted here (other_media_types)")
    version = value.get("schemaVersion")
    if media_type in IMAGES | INDEXES and (version != 2 or not isinstance(version, int)):
        raise Invalid("schemaVersion of a manifest is 2; schema 1 manifests are not supported")
    if len(descriptors) > MOST_REFERENCES:
        raise Invalid(f"a manifest refers to at most {MOST_REFERENCES} others")
    read = [_descriptor(kind, each) for kind, each in descriptors]
    subject = value.get("subject")
    config = value.get("config") if media_type in IMAGES else None
    return Document(
        media_type=media_type,
        required=tuple(reference for reference, required in read if required),
        references=tuple((reference.digest, reference.kind) for reference, _ in read),
        subject=None if subject is None else _descriptor("subject", subject)[0].digest,
        artifact_type=_artifact_type(value, config),
        annotations=_annotations(value),
        evidence=_is_evidence(descriptors),
    )


def _load(data: bytes) -> dict[str, Any]:
    check_values(data, MOST_VALUES, "the manifest")
    try:
        # RFC 8259 section 8.1: UTF-8 without a mark; json would also take UTF-16, which no client reads
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_object, parse_constant=_refuse_constant)
    except ERRORS as error:
        raise Invalid(f"the manifest is not JSON: {sentence(data, error)}") from None
    if not isinstance(value, dict):
        raise Invalid("a manifest is a JSON object")
    for key in value:
        if _KEYS.get(key.lower(), key) != key:
            raise Invalid(f"the manifest has {key!r}, which some programs would take for {_KEYS[key.lower()]}")
    return value


def _refuse_constant(text: str) -> Any:
    raise Invalid(f"the manifest is not JSON: {text} is no number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        # two readers would see two different manifests
        raise Invalid("the manifest has a key twice")
    return value


def _media_type(value: Mapping[str, Any], content_type: str) -> str:
    stated = value.get("mediaType")
    if stated is not None and (not isinstance(stated, str) or _MEDIA_TYPE.fullmatch(stated) is None):
        raise Invalid("mediaType of a manifest is a media type")
    sent = "" if content_type in UNSPECIFIC else content_type
    for each in (sent, stated or ""):
        if _SCHEMA_1.fullmatch(each):
            raise Invalid("schema 1 manifests are not supported")
    if sent and _MEDIA_TYPE.fullmatch(sent) is None:
        raise Invalid(f"{sent[:100]!r} is not a media type")
    if sent and stated and sent != stated.lower():
        raise Invalid(f"the manifest was sent as {sent} and calls itself {stated}")
    if "manifests" in value and "layers" in value:
        raise Invalid("a manifest has either layers or manifests")
    found = stated or sent
    if not found:
        found = OCI_INDEX if "manifests" in value else OCI_IMAGE if "config" in value else ""
    if not found:
        raise Invalid("nothing says what kind of manifest this is")
    return found


def _list(value: Mapping[str, Any], key: str, *, optional: bool = False) -> list[Any]:
    found = value.get(key, [] if optional else None)
    if not isinstance(found, list):
        raise Invalid(f"{key} of a manifest is a list")
    return found


def _descriptor(kind: str, value: Any) -> tuple[Reference, bool]:
    """A descriptor, and whether what it describes must be there."""
    if not isinstance(value, dict):
        raise Invalid(f"the {kind} of a manifest is described by an object")
    media_type, digest, size = value.get("mediaType"), value.get("digest"), value.get("size")
    if not isinstance(media_type, str) or _KIND.fullmatch(media_type) is None:
        raise Invalid(f"the {kind} of a manifest has no mediaType")
    if kind in MANIFESTS and _MEDIA_TYPE.fullmatch(media_type) is None:
        raise Invalid(f"mediaType of the {kind} of a manifest is a media type")
    _check_annotations(value.get("annotations"))
    if not isinstance(digest, str):
        raise DigestInvalid(f"the {kind} of a manifest has no digest")
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise Invalid(f"the {kind} of a manifest has no size in bytes")
    known = parse_digest(digest)
    if "data" in value:
        _check_data(value["data"], known, size)
        return Reference(digest, kind, size), False
    elsewhere = kind == "layer" and (bool(value.get("urls")) or _FOREIGN.search(media_type) is not None)
    return Reference(digest, kind, size), not elsewhere


def _check_data(data: Any, digest: Digest, size: int) -> None:
    """Content that stands in the descriptor itself must be what that describes (OCI image 1.1, "Descriptors")."""
    try:
        content = base64.b64decode(data, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise Invalid("data of a descriptor is base64") from None
    if len(content) != size or hashlib.new(digest.algorithm, content).hexdigest() != digest.hex:
        raise Invalid(f"data of a descriptor is not the content of {digest}")


def _is_evidence(descriptors: list[tuple[str, Any]]) -> bool:
    layers = [each for kind, each in descriptors if kind != "config"]
    return bool(layers) and all(
        kind == "config" or (kind == "layer" and _EVIDENCE.fullmatch(each["mediaType"]) is not None)
        for kind, each in descriptors
    )


def _artifact_type(value: Mapping[str, Any], config: Any) -> str | None:
    own = value.get("artifactType")
    if own is not None and not (isinstance(own, str) and (not own or _KIND.fullmatch(own))):
        # it is repeated in lists, so a long one would be paid for by every reader
        raise Invalid("artifactType of a manifest is a media type")
    if own:
        return str(own)
    return str(config["mediaType"]) if isinstance(config, dict) else None


def _annotations(value: Mapping[str, Any]) -> Mapping[str, str]:
    found = value.get("annotations")
    size = _check_annotations(found)
    if size > MOST_ANNOTATIONS and value.get("subject") is not None:  # lists of referrers repeat them
        raise Invalid(f"annotations of a referrer are at most {MOST_ANNOTATIONS} bytes")
    return found or {}


def _check_annotations(found: Any) -> int:
    """The size in bytes of the annotations of a manifest or descriptor, if there are any."""
    if found is None:
        return 0
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise Invalid("annotations of a manifest are texts by name")
    try:
        return sum(len(f"{name}{text}".encode()) for name, text in found.items())
    except UnicodeEncodeError:
        # JSON can write half of a pair of surrogates, but no text in UTF-8 can hold it
        raise Invalid("annotations of a manifest are texts by name") from None
