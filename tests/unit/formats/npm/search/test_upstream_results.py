"""Answers of upstreams to searches, good and bad."""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from pkgrepo.formats.npm.search.merged_requests import UpstreamResults, read_results, search_question
from pkgrepo.formats.npm.search.requests import MOST_SIZE, Page


def result(name: Any) -> dict[str, Any]:
    return {"package": {"name": name, "version": "1.0.0", "unknown": 1}, "searchScore": 1}


def test_results_are_kept_as_they_are() -> None:
    found = read_results(json.dumps({"objects": [result("b"), result("@sc/a"), result("b")], "total": 70}).encode())
    assert found.total == 70
    assert [json.loads(msgspec.json.encode(each)) for each in found.objects.values()] == [result("b"), result("@sc/a")]


def test_results_without_a_usable_name_are_left_out() -> None:
    odd = [7, None, {}, {"package": 1}, result(None), result("../x"), result("__proto__"), result("good")]
    assert list(read_results(json.dumps({"objects": odd}).encode()).objects) == ["good"]


def test_number_of_results_is_bounded() -> None:
    many = [result(f"x{number}") for number in range(MOST_SIZE * 2)]
    assert len(read_results(json.dumps({"objects": many}).encode()).objects) == MOST_SIZE


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b'{"objects":{}}', b'{"objects":[],"total":"x"}', b'{"objects":["\xff"]}', b"[" * 9999],
)
def test_answer_that_cannot_be_read_has_no_results(body: bytes) -> None:
    assert read_results(body) == UpstreamResults()


def test_question_has_the_text_and_the_page() -> None:
    parts = urlsplit(search_question("a b&size=9", Page(size=5, start=10)).path)
    assert parse_qs(parts.query) == {"text": ["a b&size=9"], "size": ["5"], "from": ["10"]}
