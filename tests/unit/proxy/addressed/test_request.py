"""Digests that upstreams announce, in all their forms."""

from __future__ import annotations

import hashlib

import pytest

from pkgrepo.proxy.addressed.request import digest_in_file, digests_in_header, select

SHA1 = hashlib.sha1(b"x").hexdigest()
MD5 = hashlib.md5(b"x").hexdigest()
SHA512 = hashlib.sha512(b"x").hexdigest()


class Fields:
    def __init__(self, **values: str) -> None:
        self._values = {name.lower().replace("_", "-"): value for name, value in values.items()}

    def get(self, name: str) -> str | None:
        return self._values.get(name.lower())


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"X_Checksum_Sha1": SHA1.upper(), "X_Checksum_MD5": f" {MD5} "}, {"sha1": SHA1, "md5": MD5}),
        ({"x_goog_meta_checksum_sha1": SHA1}, {"sha1": SHA1}),
        ({"x_amz_meta_checksum_sha512": SHA512}, {"sha512": SHA512}),
        ({"ETag": f'"{{SHA1{{{SHA1}}}}}"'}, {"sha1": SHA1}),
        ({"ETag": f'"{{SHA1{{{SHA1}}}}}"', "X_Checksum_SHA1": "0" * 40}, {"sha1": "0" * 40}),
        ({"ETag": f'W/"{SHA1}"', "X_Checksum_SHA1": SHA1[:-1]}, {}),
        ({"X_Checksum_SHA1": f"{SHA1},{SHA1}", "X_Checksum_MD5": "none"}, {}),
        ({}, {}),
    ],
)
def test_header_fields_announce_digests(fields: dict[str, str], found: dict[str, str]) -> None:
    assert digests_in_header(Fields(**fields)) == found


@pytest.mark.parametrize(
    "content",
    [
        SHA1,
        f"{SHA1}\n",
        SHA1.upper(),
        f"{SHA1}  app-1.0.jar",
        f"{SHA1} *app-1.0.jar\r\n",
        f"SHA1(app-1.0.jar)= {SHA1}",
        f"app-1.0.jar: {SHA1}",
    ],
)
def test_files_of_checksums_are_read_leniently(content: str) -> None:
    assert digest_in_file(content.encode(), "sha1") == SHA1


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"<html>404</html>", MD5.encode(), SHA1.encode() + b"0", b"0" * 4096]
)
def test_what_has_no_digest_of_this_length_announces_none(content: bytes) -> None:
    assert digest_in_file(content, "sha1") is None


def test_digests_that_are_not_computed_are_not_expected() -> None:
    assert select({"sha512": "a", "sha256": "b", "md5": "c"}, ("md5",)) == {"sha256": "b", "md5": "c"}
