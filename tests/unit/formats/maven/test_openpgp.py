"""Signatures by OpenPGP: whose they are, and of what; keys and signatures come from anybody."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pysequoia import Cert, SignatureMode, Tsk, sign

from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.openpgp import LONGEST_KEY, MOST_KEYS, is_signed_by, read_certificates

KEY, STRANGER = Tsk.generate("Ada <ada@example.com>"), Tsk.generate("Eve <eve@example.com>")
CONTENT = b"the bytes of a jar" * 10_000


def trusted() -> list[Cert]:
    return read_certificates([str(KEY.extract_certificate())])


def signature_by(key: Tsk, content: bytes = CONTENT) -> bytes:
    return sign(key.signer(), content, mode=SignatureMode.DETACHED)


def test_a_signature_is_of_one_file_and_by_one_key(tmp_path: Path) -> None:
    (tmp_path / "jar").write_bytes(CONTENT)
    descriptor = os.open(tmp_path / "jar", os.O_RDONLY)
    os.lseek(descriptor, 5, os.SEEK_SET)
    try:
        for content in (CONTENT, descriptor):
            assert is_signed_by(content, signature_by(KEY), trusted())
            assert not is_signed_by(content, signature_by(STRANGER), trusted())
            assert not is_signed_by(content, signature_by(KEY, b"other"), trusted())
            assert not is_signed_by(content, signature_by(KEY), [])
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    "signature",
    [b"", b"junk", b"\x00" * 5000, signature_by(KEY)[:-60], str(KEY.extract_certificate()).encode(), CONTENT],
    ids=["nothing", "junk", "zeros", "cut off", "a key", "the content"],
)
def test_what_is_no_signature_is_not_valid(signature: bytes) -> None:
    assert not is_signed_by(CONTENT, signature, trusted())


def test_a_text_may_have_several_keys() -> None:
    both = f"{KEY.extract_certificate()}{STRANGER.extract_certificate()}"
    found = read_certificates([both])
    assert {each.fingerprint for each in found} >= {KEY.extract_certificate().fingerprint}
    assert read_certificates([]) == []


@pytest.mark.parametrize(
    "text",
    ["", "junk", "é", "x" * (LONGEST_KEY + 1), str(KEY), signature_by(KEY).decode()],
    ids=["nothing", "junk", "no ASCII", "too long", "a private key", "a signature"],
)
def test_what_is_no_public_key_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        read_certificates([str(KEY.extract_certificate()), text])
    assert caught.value.pointer == "/deploy/trusted_keys/1"
    assert "backtrace" not in str(caught.value)


def test_too_many_keys_are_refused() -> None:
    with pytest.raises(Invalid, match="more than"):
        read_certificates([str(KEY.extract_certificate())] * (MOST_KEYS + 1))
