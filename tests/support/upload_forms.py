"""Upload forms of each Python client, with its fields in its order."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence

from tests.support.http_client import Field

Form = list[Field]


def digests(data: bytes) -> dict[str, str]:
    """Return the digest fields of a file."""
    return {
        "md5_digest": hashlib.md5(data).hexdigest(),
        "sha256_digest": hashlib.sha256(data).hexdigest(),
        "blake2_256_digest": hashlib.blake2b(data, digest_size=32).hexdigest(),
    }


def _described(name: str, version: str, filename: str) -> Form:
    wheel = filename.endswith(".whl")
    return [
        ("metadata_version", "2.1"),
        ("name", name),
        ("version", version),
        ("filetype", "bdist_wheel" if wheel else "sdist"),
        ("pyversion", filename.split("-")[-3] if wheel else "source"),
        ("summary", "a summary"),
        ("description", "Grüße\r\n\r\n--not-a-boundary\r\n"),
        ("classifiers", "Private :: One"),
        ("classifiers", "Private :: Two"),
    ]


def twine(name: str, version: str, filename: str, data: bytes) -> Form:
    """twine 6 sends the action near the end, three digests, and the file last."""
    return [
        *_described(name, version, filename),
        ("comment", ""),
        *digests(data).items(),
        (":action", "file_upload"),
        ("protocol_version", "1"),
        ("content", filename, data),
    ]


def twine_7(name: str, version: str, filename: str, data: bytes) -> Form:
    """twine 7 sends no md5."""
    return [field for field in twine(name, version, filename, data) if field[0] != "md5_digest"]


def uv(name: str, version: str, filename: str, data: bytes) -> Form:
    """uv sends the action and the digest first, empty fields, and attestations after the file."""
    return [
        (":action", "file_upload"),
        ("sha256_digest", digests(data)["sha256_digest"]),
        ("protocol_version", "1"),
        *_described(name, version, filename),
        ("requires_python", ""),
        ("content", filename, data),
        ("attestations", attestations(filename, data)),
    ]


def flit(name: str, version: str, filename: str, data: bytes) -> Form:
    """flit sends no pyversion for source distributions, and no blake2."""
    found = digests(data)
    described = [field for field in _described(name, version, filename) if field[:2] != ("pyversion", "source")]
    return [
        (":action", "file_upload"),
        *described,
        ("protocol_version", "1"),
        ("md5_digest", found["md5_digest"]),
        ("sha256_digest", found["sha256_digest"]),
        ("content", filename, data),
    ]


def setuptools(name: str, version: str, filename: str, data: bytes) -> Form:
    """The ``setup.py upload`` command sends only md5, and the file in the middle."""
    return [
        (":action", "file_upload"),
        ("protocol_version", "1"),
        ("name", name),
        ("version", version),
        ("content", filename, data),
        ("filetype", "bdist_wheel" if filename.endswith(".whl") else "sdist"),
        ("pyversion", ""),
        ("md5_digest", digests(data)["md5_digest"]),
    ]


TOOLS: dict[str, Callable[[str, str, str, bytes], Form]] = {
    each.__name__: each for each in (twine, twine_7, uv, flit, setuptools)
}


def replaced(form: Sequence[Field], **values: str | None) -> Form:
    """Return the form with some values replaced; None removes the field, and ``action`` means ``:action``."""
    changes = {(":action" if name == "action" else name): value for name, value in values.items()}
    kept = [(field[0], changes.pop(field[0]), *field[2:]) if field[0] in changes else field for field in form]
    return [field for field in [*changes.items(), *kept] if field[1] is not None]  # type: ignore[misc]


def attestations(filename: str, data: bytes) -> str:
    """Return the value of the ``attestations`` field: one attestation of this file, with an invalid signature."""
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": filename, "digest": {"sha256": hashlib.sha256(data).hexdigest()}}],
        "predicateType": "https://attestations.example/publish/v1",
        "predicate": None,
    }
    envelope = {
        "statement": base64.b64encode(json.dumps(statement).encode()).decode(),
        "signature": base64.b64encode(b"signed").decode(),
    }
    material = {"certificate": base64.b64encode(b"certificate").decode(), "transparency_entries": [{}]}
    return json.dumps([{"version": 1, "verification_material": material, "envelope": envelope}])
