"""Sealed values of the web login."""

import pytest

from pkgrepo.formats.npm.login.web_login import seal, unseal

KEY = b"key"
SEALED = seal(KEY, "done", 1_800_000_000_000, "secret")


def test_sealed_value_is_read_back() -> None:
    assert unseal(KEY, "done", SEALED) == ("secret", 1_800_000_000_000)


@pytest.mark.parametrize(
    ("key", "purpose", "sealed"),
    [
        (b"other", "done", SEALED),
        (KEY, "login", SEALED),
        (KEY, "done", SEALED.replace("secret", "forged")),
        (KEY, "done", SEALED.replace("1800", "1900", 1)),
        (KEY, "done", SEALED[:-1]),
        (KEY, "done", f"{SEALED}\xe9"),
        (KEY, "done", ""),
    ],
)
def test_altered_value_is_refused(key: bytes, purpose: str, sealed: str) -> None:
    assert unseal(key, purpose, sealed) is None
