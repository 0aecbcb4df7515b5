"""Parsing of descriptors: media type, digest and size of referenced content (OCI image 1.1, "Descriptors")."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from pkgrepo.errors import Invalid
from pkgrepo.formats.container.names import Digest, DigestInvalid, parse_digest
from pkgrepo.repositories.images.push import Reference

from .media_types import ARTIFACT_TYPE, MEDIA_TYPE

MANIFESTS = frozenset({"manifest", "subject"})  # kinds of descriptors that refer to manifests

_FOREIGN = re.compile(r"\.foreign\.|nondistributable")


def parse_descriptor(kind: str, value: Any) -> tuple[Reference, bool]:
    """
    The reference in a descriptor, and whether the referenced content must be stored here.

    :raises Invalid, DigestInvalid: the descriptor is malformed
    """
    if not isinstance(value, dict):
        raise Invalid(f"the {kind} of a manifest is described by an object")
    media_type, digest, size = value.get("mediaType"), value.get("digest"), value.get("size")
    if not isinstance(media_type, str) or ARTIFACT_TYPE.fullmatch(media_type) is None:
        raise Invalid(f"the {kind} of a manifest has no mediaType")
    if kind in MANIFESTS and MEDIA_TYPE.fullmatch(media_type) is None:
        raise Invalid(f"mediaType of the {kind} of a manifest is a media type")
    check_annotations(value.get("annotations"))
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


def check_annotations(found: Any) -> int:
    """The size in bytes of the annotations of a manifest or descriptor. :raises Invalid: they are malformed"""
    if found is None:
        return 0
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise Invalid("annotations of a manifest are texts by name")
    try:
        return sum(len(f"{name}{text}".encode()) for name, text in found.items())
    except UnicodeEncodeError:
        # JSON can escape an unpaired surrogate, which UTF-8 cannot encode
        raise Invalid("annotations of a manifest are texts by name") from None


def _check_data(data: Any, digest: Digest, size: int) -> None:
    """Check the digest and size of content that is embedded in a descriptor. :raises Invalid: they differ"""
    try:
        content = base64.b64decode(data, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise Invalid("data of a descriptor is base64") from None
    if len(content) != size or not digest.matches(content):
        raise Invalid(f"data of a descriptor is not the content of {digest}")
