"""Reason phrases, and statuses that Maven must not get."""

from __future__ import annotations

import pytest

from pkgrepo.errors import TooManyAttempts
from pkgrepo.formats.maven.refusals import ERRORS, LONGEST_REASON, reason_of
from pkgrepo.http.responses import Refusal


class FakeRequest:
    """What rendering reads of a request."""

    def __init__(self, method: bytes, accept: bytes | None = None, agent: bytes | None = None) -> None:
        self.method = method
        self._fields = {b"accept": accept, b"user-agent": agent}

    def header(self, name: bytes) -> bytes | None:
        return self._fields.get(name)


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [("as it is", "as it is"), ("gr\u00fcn\r\nX: y\x7f", "gr?n??X: y?"), ("x" * 500, "x" * 197 + "...")],
)
def test_a_reason_is_one_short_line_of_ascii(sentence: str, reason: str) -> None:
    assert reason_of(sentence) == reason
    assert len(reason_of(sentence)) <= LONGEST_REASON


@pytest.mark.parametrize(("method", "status"), [(b"PUT", 403), (b"POST", 403), (b"DELETE", 403), (b"GET", 429)])
def test_an_upload_is_never_answered_429(method: bytes, status: int) -> None:
    answer = ERRORS.answer(FakeRequest(method), TooManyAttempts(30))  # type: ignore[arg-type]
    assert answer.status == status


def test_a_path_is_not_reflected_in_the_reason_of_a_404() -> None:
    answer = ERRORS.answer(FakeRequest(b"GET"), Refusal(404, "secret/path"))  # type: ignore[arg-type]
    assert (answer.status, answer.reason) == (404, None)


@pytest.mark.parametrize(
    ("accept", "problem"),
    [
        (None, False),
        (b"*/*", False),
        (b"text/html, image/gif, *; q=.2", False),
        (b"application/problem+json, */*", True),
        (b"application/json", True),
    ],
)
def test_the_body_is_what_the_client_accepts(accept: bytes | None, problem: bool) -> None:
    answer = ERRORS.answer(FakeRequest(b"PUT", accept), Refusal(409, "why"))  # type: ignore[arg-type]
    assert (answer.content_type == b"application/problem+json") is problem
    assert b"why" in answer.body  # type: ignore[operator]
    assert answer.reason == "why"


@pytest.mark.parametrize(
    ("agent", "problem"), [(b"Apache-Maven/4.0.0-rc-4 (Java 17)", True), (b"Apache-Maven/3.9.16", False)]
)
def test_maven_4_reads_no_reason_phrase_and_sends_no_accept(agent: bytes, problem: bool) -> None:
    answer = ERRORS.answer(FakeRequest(b"PUT", None, agent), Refusal(409, "why"))  # type: ignore[arg-type]
    assert (answer.content_type == b"application/problem+json") is problem


@pytest.mark.parametrize(
    ("accept", "problem"), [(b"application/problem+json, */*", False), (b"application/json", True)]
)
def test_a_missing_file_is_no_problem_document_for_maven_4(accept: bytes, problem: bool) -> None:
    answer = ERRORS.answer(FakeRequest(b"GET", accept), Refusal(404, "why"))  # type: ignore[arg-type]
    assert (answer.content_type == b"application/problem+json") is problem
