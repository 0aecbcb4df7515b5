"""The sentence in a refusal of an upstream."""

from __future__ import annotations

import pytest

from pkgrepo.proxy.upstream.refusals import MOST_CHARACTERS, find_sentence

WHY = "blocked by policy: CVE-2026-1"


@pytest.mark.parametrize(
    ("body", "media_type", "reason"),
    [
        (b'{"error":"blocked by policy: CVE-2026-1"}', "application/json", "Forbidden"),
        (b'{"error":{"code":7,"message":"blocked by policy: CVE-2026-1"}}', "application/json", "Forbidden"),
        (b'{"errors":[{"code":"DENIED","message":"blocked by policy: CVE-2026-1"}]}', "application/json", "Forbidden"),
        (b'{"errors":[],"detail":"blocked by policy: CVE-2026-1"}', "application/problem+json", "Forbidden"),
        (b'"blocked by policy: CVE-2026-1"', "application/json", ""),
        (b"blocked by policy:\r\n\x1b CVE-2026-1\n", "text/plain", "Forbidden"),
        (b"blocked by policy: CVE-2026-1", "", "Forbidden"),
        (b"<html><h1>403 Forbidden</h1></html>", "text/html", "blocked by policy: CVE-2026-1"),
        (b"\xff\xfe", "application/octet-stream", "blocked by policy: CVE-2026-1"),
        (b"", "", "blocked by policy: CVE-2026-1"),
    ],
)
def test_sentence_is_found_in_all_forms(body: bytes, media_type: str, reason: str) -> None:
    assert find_sentence(body, media_type, reason) == WHY


@pytest.mark.parametrize(
    ("body", "media_type"),
    [(b"<html>", "text/html"), (b"{}", "application/json"), (b"[" * 100_000, "application/json"), (b"7", "text/plain")],
)
def test_usual_reason_phrase_is_no_sentence(body: bytes, media_type: str) -> None:
    assert find_sentence(body, media_type, "Forbidden") == ""


def test_long_sentence_is_cut() -> None:
    assert len(find_sentence(b"x" * 10_000, "text/plain", "")) == MOST_CHARACTERS
