"""What readers of lock files have in common: digests, documents with limits, and what is left out."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.gateway.mirrored import locks
from pkgrepo.gateway.mirrored.locks import (
    Lock,
    Wanted,
    differs,
    parse_hashes,
    parse_integrity,
    path_of,
    read_json,
)

A, B = "a" * 64, "b" * 64


def test_digests_of_known_forms_are_read() -> None:
    texts: list[Any] = [f" sha256:{A.upper()} ", "sha1=00", "crc32:00", "sha256:no", f"x sha256:{B}", 7, None]
    assert parse_hashes(texts) == {("sha256", A), ("sha1", "00")}
    assert parse_hashes([]) == frozenset()
    said = f"sha1-{b64encode(bytes(2)).decode()} sha512-{b64encode(b'x').decode()}?opt sha256-a md5-AAAA"
    assert parse_integrity(said) == {("sha1", "0000"), ("sha512", "78")}
    assert parse_integrity(None) == frozenset()


@pytest.mark.parametrize(
    ("wanted", "known", "other"),
    [
        ({("sha256", A)}, {"sha256": A}, False),
        ({("sha256", A), ("sha256", B)}, {"sha256": B}, False),
        ({("sha256", A)}, {"sha256": B}, True),
        ({("sha256", A), ("md5", "1")}, {"sha256": B, "md5": "1"}, True),
        ({("sha256", A), ("md5", "1")}, {"md5": "2"}, True),
        ({("sha256", A)}, {"md5": "2"}, None),
        (set(), {"md5": "2"}, False),
    ],
    ids=range(7),
)
def test_the_strongest_digest_that_both_have_decides(wanted: Any, known: dict[str, str], other: bool | None) -> None:
    assert differs(frozenset(wanted), known) is other


def test_what_a_file_names_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "MOST_WANTED", 2)
    lock = Lock()
    for _ in range(2):
        lock.want(Wanted(format="npm", name="a"))
        lock.leave_out("b", "why")
    with pytest.raises(Invalid, match="more than 2 files"):
        lock.want(Wanted(format="npm", name="a"))
    with pytest.raises(Invalid, match="more than 2 things"):
        lock.leave_out("b", "why")
    assert (len(lock.wanted), len(lock.left_out)) == (2, 2)


def test_what_is_left_out_is_named_without_secrets_and_in_short() -> None:
    lock = Lock()
    for each in ("https://ann:secret@there.example/a?signature=x", "https://there.example/t/token/a", "x" * 1000):
        lock.leave_out(each, "why")
    names = [name for name, _ in lock.left_out]
    assert names == ["https://there.example/a", "https://there.example/t/.../a", "x" * locks.LONGEST]


def test_the_path_of_an_address_has_no_escapes() -> None:
    assert path_of("https://there.example/a%20b/c?d=e#f") == "/a b/c"
    assert path_of("https://[there.example/a") == ""


def test_documents_have_so_many_values_and_levels_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "MOST_COLLECTIONS", 3)
    assert read_json('{"a": [], "b": {}}') == {"a": [], "b": {}}
    for text, reason in (
        ('{"a": [[]], "b": {}}', "too many values"),
        ("[]", "no JSON object"),
        ("{", "no JSON object"),
    ):
        with pytest.raises(Invalid, match=reason):
            read_json(text)
