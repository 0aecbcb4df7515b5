"""
Parsing of manifests: media type, references, and the fields that lists of referrers repeat.

Manifests are those of the OCI image specification 1.1 (image manifest, image index) and of docker's schema 2 (manifest,
manifest list). Their bytes are stored unchanged, since the digest is computed from the bytes.

Limits keep the processing of 1 MB of upload below one second of CPU time. A manifest over a limit is refused; a
signature over a limit is ignored.

=======================  =====================================================  ====================================
counted                  limit                                                  cost of one
=======================  =====================================================  ====================================
bytes of a manifest      4 MiB                                                  10 ns
its values               250,000                                                up to 0.3 us
its references           10,000                                                 3 us, and a row
its annotations, where   64 KiB                                                 repeated in lists
lists repeat them
tags of one request      100                                                    a row
a manifest with          256 KiB; 32 layers of it, of 1 MiB together; for      0.1 us a byte
signatures               4 signed manifests
signatures of one        16                                                     0.1 ms for each key
envelope
verifications for one    1,000                                                  0.1 ms
manifest
=======================  =====================================================  ====================================
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid
from pkgrepo.formats.container.names import Digest, DigestInvalid, parse_digest
from pkgrepo.repositories.images.push import Reference
from pkgrepo.storage.catalog.images.manifests import ManifestRecord
from pkgrepo.untrusted.strict_json import ERRORS, check_value_count, describe

MANIFEST_SIZE: Final = 4 * 1024 * 1024  # bytes; the least that the specification asks registries to accept
MOST_VALUES: Final = 250_000
MOST_REFERENCES: Final = 10_000
MOST_ANNOTATIONS: Final = 64 * 1024  # bytes of annotations that lists of referrers repeat
MOST_TAGS: Final = 100  # of one request

SIGNATURE_MANIFEST_SIZE: Final = 256 * 1024  # of a manifest with signatures; cosign's are below 4 KiB a signature
MOST_LAYERS: Final = 32  # of one manifest that are searched for signatures
SIGNATURE_LAYERS_SIZE: Final = 1024 * 1024  # bytes of these layers together
MOST_SUBJECTS: Final = 4  # manifests that the signatures of one push may sign; those of cosign sign one
MOST_SIGNATURES: Final = 16  # of one envelope that are verified
MOST_CHECKS: Final = 1000  # verifications for one manifest


IN_THREAD = 16 * 1024  # bytes; parsing less takes at most 4 ms, usually less than switching to a thread


async def parse_in_thread(
    pools: Pools, data: bytes, content_type: str, *, other_types: bool = False
) -> ManifestDocument:
    """
    The parsed manifest, see L{parse_manifest}; large ones are parsed in a thread.

    :raises Invalid, DigestInvalid: see there
    """
    if len(data) < IN_THREAD:
        return parse_manifest(data, content_type, other_types=other_types)
    return await pools.cpu(parse_manifest, data, content_type, other_types=other_types)


OCI_IMAGE = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_ARTIFACT = "application/vnd.oci.artifact.manifest.v1+json"
DOCKER_IMAGE = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"

IMAGES = frozenset({OCI_IMAGE, DOCKER_IMAGE})
INDEXES = frozenset({OCI_INDEX, DOCKER_LIST})
CONFIGURATIONS = frozenset(
    {"application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"}
)

MEDIA_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}")
# wider than a media type: the types of some artifacts have parameters
ARTIFACT_TYPE = re.compile(r"[\x21-\x7e][\x20-\x7e]{0,254}")
SCHEMA_1 = re.compile(r"application/vnd\.docker\.distribution\.manifest\.v1\+(json|prettyjws)")


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


# Content types of clients that state no media type, such as curl
UNSPECIFIC_TYPES = frozenset({"", "application/json", "application/octet-stream", "text/plain"})

# The keys that programs read. Programs written in Go ignore the case of keys, and use the last of several.
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

# Types of layers that no program runs: signatures, attestations, SBOMs. A manifest with only such layers is visible
# without a signature, if the content of the layers matches (see L{manifests.evidence}).
_EVIDENCE = re.compile(
    r"application/vnd\.dev\.cosign\.simplesigning\.v1\+json|application/vnd\.dev\.sigstore\.bundle[A-Za-z0-9.+=;-]*"
    r"|application/(vnd\.dsse\.envelope\.v1|vnd\.in-toto|vnd\.cyclonedx|spdx|vnd\.syft|jose)\+json"
    r"|application/(vnd\.cyclonedx\+xml|cose)|text/spdx(\+json|\+xml)?"
)


@frozen
class ManifestDocument:
    """
    A parsed manifest. ``references`` are all its references as (digest, kind); ``required`` those that must be stored.

    ``artifact_type`` is the type in lists of referrers: the manifest's own, else the media type of an image's config.
    ``evidence``: all layers have the type of a signature, an attestation or an SBOM. ``runs``: the type of its
    configuration is that of an image's.
    """

    media_type: str
    required: tuple[Reference, ...]
    references: tuple[tuple[str, str], ...]
    subject: str | None
    artifact_type: str | None
    annotations: Mapping[str, str]
    evidence: bool
    runs: bool = False

    def to_record(self, digest: str, sha256: str, size: int) -> ManifestRecord:
        """The fields that the catalog stores; annotations only of referrers, since only their lists repeat them."""
        return ManifestRecord(
            digest=digest,
            sha256=sha256,
            media_type=self.media_type,
            size=size,
            subject=self.subject,
            artifact_type=self.artifact_type,
            annotations={} if self.subject is None else self.annotations,
            references=self.references,
            evidence=self.evidence,
        )


def parse_manifest(data: bytes, content_type: str, *, other_types: bool = False) -> ManifestDocument:
    """
    The parsed manifest. Parsing takes about 10 ms per megabyte.

    ``content_type`` is the request's, without parameters. ``other_types`` accepts manifests of any media type.

    :raises Invalid: it is malformed or contradicts itself; :raises DigestInvalid: a descriptor's digest is malformed
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
    read = [parse_descriptor(kind, each) for kind, each in descriptors]
    subject = value.get("subject")
    config = value.get("config") if media_type in IMAGES else None
    return ManifestDocument(
        media_type=media_type,
        required=tuple(reference for reference, required in read if required),
        references=tuple((reference.digest, reference.kind) for reference, _ in read),
        subject=None if subject is None else parse_descriptor("subject", subject)[0].digest,
        artifact_type=_artifact_type(value, config),
        annotations=_annotations(value),
        evidence=_is_evidence(descriptors),
        runs=config is not None and config["mediaType"].lower() in CONFIGURATIONS,
    )


def _load(data: bytes) -> dict[str, Any]:
    check_value_count(data, MOST_VALUES, "the manifest")
    try:
        # RFC 8259 section 8.1: UTF-8 without a byte order mark; json would also take UTF-16, which no client reads
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_object, parse_constant=_refuse_constant)
    except ERRORS as error:
        raise Invalid(f"the manifest is not JSON: {describe(data, error)}") from None
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
        # some programs use the first value, some the last
        raise Invalid("the manifest has a key twice")
    return value


def _media_type(value: Mapping[str, Any], content_type: str) -> str:
    stated = value.get("mediaType")
    if stated is not None and (not isinstance(stated, str) or MEDIA_TYPE.fullmatch(stated) is None):
        raise Invalid("mediaType of a manifest is a media type")
    sent = "" if content_type in UNSPECIFIC_TYPES else content_type
    for each in (sent, stated or ""):
        if SCHEMA_1.fullmatch(each):
            raise Invalid("schema 1 manifests are not supported")
    if sent and MEDIA_TYPE.fullmatch(sent) is None:
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


def _is_evidence(descriptors: list[tuple[str, Any]]) -> bool:
    layers = [each for kind, each in descriptors if kind != "config"]
    return bool(layers) and all(
        kind == "config" or (kind == "layer" and _EVIDENCE.fullmatch(each["mediaType"]) is not None)
        for kind, each in descriptors
    )


def _artifact_type(value: Mapping[str, Any], config: Any) -> str | None:
    own = value.get("artifactType")
    if own is not None and not (isinstance(own, str) and (not own or ARTIFACT_TYPE.fullmatch(own))):
        # lists of referrers repeat it, so it is short
        raise Invalid("artifactType of a manifest is a media type")
    if own:
        return str(own)
    return str(config["mediaType"]) if isinstance(config, dict) else None


def _annotations(value: Mapping[str, Any]) -> Mapping[str, str]:
    found = value.get("annotations")
    size = check_annotations(found)
    if size > MOST_ANNOTATIONS and value.get("subject") is not None:  # lists of referrers repeat them
        raise Invalid(f"annotations of a referrer are at most {MOST_ANNOTATIONS} bytes")
    return found or {}
