"""Digests in the heads of requests, and checksum files."""

from __future__ import annotations

from base64 import b64encode
from hashlib import md5, sha1, sha256, sha512

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from pkgrepo.gateway.digest_fields import HEX_LENGTHS, parse_checksum, read_digests

DATA = b"data"


class FakeRequest:
    """A request with these header fields."""

    def __init__(self, **fields: bytes) -> None:
        self._fields = {name.replace("_", "-").encode(): value for name, value in fields.items()}

    def header(self, name: bytes) -> bytes | None:
        return self._fields.get(name)


def b64(digest: bytes) -> bytes:
    return b64encode(digest)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {}),
        ({"x_checksum_sha1": sha1(DATA).hexdigest().upper().encode()}, {"sha1": sha1(DATA).hexdigest()}),
        ({"x_checksum_deploy": b"true"}, {}),
        ({"content_md5": b64(md5(DATA).digest())}, {"md5": md5(DATA).hexdigest()}),
        (
            {"digest": b"SHA-256=" + b64(sha256(DATA).digest()) + b", sha=" + b64(sha1(DATA).digest()) + b",crc32c=x"},
            {"sha256": sha256(DATA).hexdigest(), "sha1": sha1(DATA).hexdigest()},
        ),
        ({"content_digest": b"sha-512=:" + b64(sha512(DATA).digest()) + b":"}, {"sha512": sha512(DATA).hexdigest()}),
        ({"repr_digest": b"sha-256=:" + b64(sha256(DATA).digest()) + b":"}, {"sha256": sha256(DATA).hexdigest()}),
        ({"digest": b""}, {}),
        ({"digest": b"sha-256"}, {}),
    ],
)
def test_announced_digests(fields: dict[str, bytes], expected: dict[str, str]) -> None:
    assert read_digests(FakeRequest(**fields)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fields",
    [
        {"x_checksum_md5": b"xyz"},
        {"x_checksum_md5": b""},
        {"x_checksum_md5": b"0" * 33},
        {"content_md5": b"a"},
        {"content_md5": b64(sha1(DATA).digest())},
        {"digest": b"md5=\xff"},
        {"content_md5": b64(md5(DATA).digest()), "x_checksum_md5": b"0" * 32},
    ],
)
def test_malformed_digests_are_refused(fields: dict[str, bytes]) -> None:
    with pytest.raises(Invalid):
        read_digests(FakeRequest(**fields))  # type: ignore[arg-type]


@pytest.mark.parametrize("algorithm", HEX_LENGTHS)
@pytest.mark.parametrize("form", ["{}", " {}\r\n", "{}  a b.jar", "{} *x", "SHA (x.jar) = {}", "x={}", "{}\t{}"])
def test_checksum_files_are_read_leniently(algorithm: str, form: str) -> None:
    digest = "aB" * (HEX_LENGTHS[algorithm] // 2)
    assert parse_checksum(form.format(digest, "0" * 40).encode(), algorithm) == digest.lower()


@given(st.binary(max_size=200), st.sampled_from(sorted(HEX_LENGTHS)))
def test_a_checksum_file_is_a_digest_or_refused(body: bytes, algorithm: str) -> None:
    try:
        digest = parse_checksum(body, algorithm)
    except Invalid:
        return
    assert len(digest) == HEX_LENGTHS[algorithm]
    assert digest.encode() in body.lower()
