"""Public keys: which are accepted, and their ids."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from pkgrepo.untrusted.public_keys import KeyInvalid, parse_key
from tests.support.signing import Signer


def test_a_key_has_one_id_however_its_text_is_wrapped() -> None:
    pem = Signer().pem
    assert parse_key(pem).id == parse_key(pem.replace("\n", "\r\n") + "\n\n").id


def test_private_keys_are_refused_without_being_repeated() -> None:
    pem = Signer().private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    with pytest.raises(KeyInvalid, match="private key") as caught:
        parse_key(pem)
    assert pem.splitlines()[1] not in str(caught.value)


@pytest.mark.parametrize(
    ("private", "sentence"),
    [
        (ec.generate_private_key(ec.SECP384R1()), "P-256"),
        (rsa.generate_private_key(65537, 1024), "2048"),
        (ed448.Ed448PrivateKey.generate(), "Ed25519"),
    ],
)
def test_other_kinds_of_keys_are_refused(private: Any, sentence: str) -> None:
    pem = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    with pytest.raises(KeyInvalid, match=sentence):
        parse_key(pem)


@pytest.mark.parametrize(
    "text", ["", "hello", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "\ud7ff"]
)
def test_malformed_keys_are_refused(text: str) -> None:
    with pytest.raises(KeyInvalid):
        parse_key(text)
