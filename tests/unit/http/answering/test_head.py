"""Heads of answers that a handler gives a status of its own."""

from __future__ import annotations

import pytest

from pkgrepo.http.answering.send import render_head, status_line
from pkgrepo.http.answers import Answer


@pytest.mark.parametrize(
    ("status", "reason"), [(200, "OK"), (404, "Not Found"), (429, "Too Many Requests"), (299, "Unknown")]
)
def test_a_status_has_its_phrase(status: int, reason: str) -> None:
    assert status_line(status) == f"HTTP/1.1 {status} {reason}\r\n".encode()


def test_a_handlers_own_416_keeps_its_length_and_fields() -> None:
    answer = Answer(416, b"why", headers=((b"Location", b"/here"),))
    head = render_head(answer, 416, 0, 3)
    assert b"Content-Length: 3\r\n" in head
    assert b"Location: /here\r\n" in head
    assert b"Content-Range" not in head


@pytest.mark.parametrize("status", [200, 206, 304, 416])
def test_some_fields_are_said_with_every_status(status: int) -> None:
    answer = Answer(200, b"body", headers=((b"X-Some", b"1"),), always=((b"X-Every", b"2"),), ranges=True)
    head = render_head(answer, status, 1, 2)
    assert b"X-Every: 2\r\n" in head
    assert (b"X-Some" in head) == (status in (200, 206))
