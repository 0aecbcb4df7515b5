"""
Verification of signatures of images, in the forms that cosign writes.

=============  ======================================  ============================================================
form           stored in                               signed bytes
=============  ======================================  ============================================================
simple         layers of the manifest tagged           the layer, a JSON payload that names the digest; the
signing        ``sha256-HEX.sig``, or of one whose     signature is in the layer's annotations
               subject is the image (OCI 1.1)
bundle         the same, of any version; cosign        the pre-authentication encoding (DSSE 1.0) of an in-toto
               writes them as the latter               statement about the digest
=============  ======================================  ============================================================

Only signatures of trusted keys count; certificates and transparency logs are ignored. Malformed data is ignored too and
raises no error, since every caller who may push can send it.

The trusted keys of a repository are those in its configuration, else those of the server.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.container.configuration import trust_policy
from pkgrepo.formats.container.documents import MOST_CHECKS, MOST_LAYERS, MOST_SIGNATURES
from pkgrepo.model import Repository
from pkgrepo.storage.catalog.images.trust import Keys
from pkgrepo.untrusted.public_keys import KeyInvalid, PublicKey, encode_dsse, parse_key

SETTING = "container.trusted_keys"
DISCOVERY = "2"  # another one where signatures are looked for elsewhere: then those that are stored are verified again
NO_KEY = (
    f"require_content_trust is on and no key is trusted: list public keys in trust.keys of the repository or in "
    f"{SETTING} of the server; until then every image waits, and readers see none"
)


@frozen
class KeySet:
    """Trusted keys with their ids, and the id of the whole set."""

    keys: tuple[PublicKey, ...]
    ids: tuple[str, ...]
    id: str


class Keyring:
    """Finds the trusted keys of a repository. ``server`` are public keys in PEM, for repositories without own keys."""

    def __init__(self, server: tuple[str, ...] = ()) -> None:
        self._server = server

    def check(self) -> None:
        """
        Check the keys of the server.

        :raises Invalid: a key is malformed or not supported
        """
        for number, text in enumerate(self._server, 1):
            try:
                parse_key(text)
            except KeyInvalid as error:
                raise Invalid(f"{SETTING}, key {number}: {error}") from None

    def keys(self, repository: Repository) -> KeySet | None:
        """The trusted keys of a repository; None if it requires no signatures."""
        policy = trust_policy(repository)
        return None if policy is None else _parse(tuple(policy.keys) or self._server)

    def ids(self, repository: Repository) -> Keys:
        """The ids of the trusted keys of a repository; None if it requires no signatures."""
        trusted = self.keys(repository)
        return None if trusted is None else trusted.ids

    def warnings(self, repository: Repository) -> list[str]:
        """Warnings about the keys of a repository, for its administrator."""
        return [NO_KEY] if self.ids(repository) == () else []


@lru_cache(maxsize=1024)
def _parse(texts: tuple[str, ...]) -> KeySet:
    keys = tuple({key.id: key for key in map(parse_key, texts)}.values())
    ids = tuple(key.id for key in keys)
    return KeySet(keys, ids, hashlib.sha256("".join([DISCOVERY, *sorted(ids)]).encode("ascii")).hexdigest())


SIMPLE = "application/vnd.dev.cosign.simplesigning.v1+json"

BUNDLE = "application/vnd.dev.sigstore.bundle"  # how the types of all versions begin: .v0.3+json, +json;version=0.2

_SIMPLE_TYPE = "cosign container image signature"
_SIGNATURE = "dev.cosignproject.cosign/signature"
_STATEMENT = "application/vnd.in-toto+json"
_SIGNED = "https://sigstore.dev/cosign/sign/v1"


@frozen
class SignatureLayer:
    """A layer that may hold a signature: its media type, its content, and the annotations of its descriptor."""

    media_type: str
    data: bytes
    annotations: Mapping[str, Any]


def find_signature_layers(manifest: bytes) -> Sequence[tuple[str, str, int, Mapping[str, Any]]]:
    """The layers of a stored manifest that may hold signatures: media type, digest, size in bytes, annotations."""
    value = _parse_object(manifest)
    layers = value.get("layers")
    found: list[tuple[str, str, int, Mapping[str, Any]]] = []
    for each in layers[:MOST_LAYERS] if isinstance(layers, list) else ():
        media_type = each.get("mediaType") if isinstance(each, dict) else None
        if not isinstance(media_type, str) or not (media_type == SIMPLE or media_type.startswith(BUNDLE)):
            continue
        digest, size, annotations = each.get("digest"), each.get("size"), each.get("annotations")
        if isinstance(digest, str) and isinstance(size, int):
            found.append((media_type, digest, size, annotations if isinstance(annotations, dict) else {}))
    return found


def find_signers(
    digest: str, layers: Iterable[SignatureLayer], keys: Sequence[PublicKey], *, most: int = MOST_CHECKS
) -> frozenset[str]:
    """
    Ids of the keys that have signed the manifest of this digest.

    Call it in a thread: each verification takes about 0.1 ms, and there are up to ``most``.
    """
    found: set[str] = set()
    claims = (claim for layer in layers for claim in _claims(digest, layer))
    checks = ((key, *claim) for claim in claims for key in keys if key.id not in found)
    for key, signature, signed in islice(checks, most):
        if key.has_signed(signature, signed):
            found.add(key.id)
    return frozenset(found)


def _claims(digest: str, layer: SignatureLayer) -> Iterator[tuple[bytes, bytes]]:
    """The signatures in a layer for this digest, each with the signed bytes. They are not verified yet."""
    if layer.media_type == SIMPLE:
        signature = _base64(layer.annotations.get(_SIGNATURE))
        if signature and _is_payload_for(digest, layer.data):
            yield signature, layer.data
    elif layer.media_type.startswith(BUNDLE):
        yield from _envelope_claims(digest, _parse_object(layer.data).get("dsseEnvelope"))


def _is_payload_for(digest: str, payload: bytes) -> bool:
    critical = _lower_keys(_lower_keys(_parse_object(payload)).get("critical"))
    image = _lower_keys(critical.get("image"))
    return critical.get("type") == _SIMPLE_TYPE and image.get("docker-manifest-digest") == digest


def _envelope_claims(digest: str, envelope: Any) -> Iterator[tuple[bytes, bytes]]:
    if not isinstance(envelope, dict) or envelope.get("payloadType") != _STATEMENT:
        return
    payload, listed = _base64(envelope.get("payload")), envelope.get("signatures")
    if payload is None or not isinstance(listed, list) or not _is_statement_for(digest, payload):
        return
    signed = encode_dsse(_STATEMENT, payload)
    for each in listed[:MOST_SIGNATURES]:
        signature = _base64(each.get("sig")) if isinstance(each, dict) else None
        if signature:
            yield signature, signed


def _is_statement_for(digest: str, payload: bytes) -> bool:
    statement = _parse_object(payload)
    subjects = statement.get("subject")
    if statement.get("predicateType") != _SIGNED or not isinstance(subjects, list):
        return False
    algorithm, _, text = digest.partition(":")
    # in-toto statement 1.0: the predicate holds for each subject
    return any(
        isinstance(each, dict) and isinstance(each.get("digest"), dict) and each["digest"].get(algorithm) == text
        for each in subjects
    )


def _parse_object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _lower_keys(value: Any) -> dict[str, Any]:
    # older programs write the key as Docker-manifest-digest
    return {key.lower(): each for key, each in value.items()} if isinstance(value, dict) else {}


def _base64(value: Any) -> bytes | None:
    """The decoded bytes; DSSE 1.0 allows both alphabets."""
    if not isinstance(value, str):
        return None
    try:
        return base64.b64decode(value.replace("-", "+").replace("_", "/"), validate=True)
    except (ValueError, binascii.Error):
        return None
