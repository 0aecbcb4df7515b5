"""Heads of answers that a handler gives a status of its own."""

from __future__ import annotations

from pkgrepo.http.answer_head import render_head
from pkgrepo.http.answers import Answer


def test_a_handlers_own_416_keeps_its_length_and_fields() -> None:
    answer = Answer(416, b"why", headers=((b"Location", b"/here"),))
    head = render_head(answer, 416, 0, 3)
    assert b"Content-Length: 3\r\n" in head
    assert b"Location: /here\r\n" in head
    assert b"Content-Range" not in head
