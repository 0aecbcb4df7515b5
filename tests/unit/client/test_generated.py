"""Commands that are made of operations: which of their calls fits what is written, and what is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import click
import pytest
from click.testing import CliRunner

from pkgrepo.client import generated
from pkgrepo.client.groups import operations
from pkgrepo.client.printer import Printer
from pkgrepo.client.session import Session
from pkgrepo.errors import Invalid

QUOTA = {
    "kind": "project",
    "name": "a",
    "limits": dict.fromkeys(("bytes", "packages", "versions", "file_size")),
    "usage": {"bytes": 1, "packages": 2, "versions": 3},
    "nearly_used": [],
}


DELETED = {"path": "main/py", "package_count": 1, "usage_bytes": 10}


class _Pages:
    """A server whose list has two pages, the last of which says that more is to come."""

    url = "http://127.0.0.1"

    async def pages(self, *_: str, **__: Any) -> AsyncIterator[dict[str, Any]]:
        for name, behind in (("one", False), ("two", True)):
            need = {"name": name, "repository": "main/node", "latest": "1.0.0", "text": "left ^1", "kind": "runtime"}
            yield {"items": [need], "behind": behind}


class _Recording:
    url = "http://127.0.0.1"

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.calls: list[tuple[Any, ...]] = []

    async def get(self, *segments: str, **query: Any) -> Any:
        self.calls.append(("GET", *segments, query))
        return self.answer

    async def change(self, method: str, *segments: str, body: Any = None, **query: Any) -> Any:
        self.calls.append((method, *segments, body, query))
        return self.answer


def test_what_pages_say_besides_their_items_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    def remote(command: Any) -> Any:
        def run(**given: Any) -> None:
            asyncio.run(command(Session(_Pages(), Printer(as_json=False), None), **given))  # type: ignore[arg-type]

        return run

    monkeypatch.setattr(generated, "remote", remote)
    found = CliRunner().invoke(generated.command_of("package dependents"), ["main/node", "left"])
    assert found.exit_code == 0, (found.output, found.exception)
    assert [line.split()[0] for line in found.stdout.splitlines()[1:]] == ["one", "two"]
    assert "the latest changes are not in it yet" in found.stderr


def _called(monkeypatch: pytest.MonkeyPatch, words: str, *arguments: str, answer: Any) -> tuple[Any, ...]:
    """The call that a command makes. :raises Invalid: it makes none"""
    client = _Recording(answer)

    def remote(command: Any) -> Any:
        def run(**given: Any) -> None:
            asyncio.run(command(Session(client, Printer(as_json=True), None), **given))  # type: ignore[arg-type]

        return run

    monkeypatch.setattr(generated, "remote", remote)
    result = CliRunner().invoke(generated.command_of(words), arguments)
    if isinstance(result.exception, Invalid):
        raise result.exception
    assert result.exit_code == 0, (result.output, result.exception)
    return client.calls[0]


@pytest.mark.parametrize(
    ("words", "arguments", "segments"),
    [
        ("quota show", ["server"], ("system", "quota")),
        ("quota show", ["main"], ("storage", "main", "quota")),
        ("quota show", ["main/py"], ("repository", "main/py", "quota")),
        ("quota show", ["project:a"], ("project", "a", "quota")),
        ("quota show", ["user:a/b"], ("users", "a/b", "quota")),
        ("quota show", ["user:"], ("storage", "user:", "quota")),
    ],
)
def test_the_call_is_that_of_the_place(
    monkeypatch: pytest.MonkeyPatch, words: str, arguments: list[str], segments: tuple[str, ...]
) -> None:
    assert _called(monkeypatch, words, *arguments, answer=QUOTA) == ("GET", *segments, {})


@pytest.mark.parametrize(
    ("arguments", "segments"),
    [
        ([], ("system", "webhooks")),
        (["--repository", "main/py"], ("repository", "main/py", "webhooks")),
        (["--project", "a"], ("project", "a", "webhooks")),
    ],
)
def test_a_place_is_an_option(monkeypatch: pytest.MonkeyPatch, arguments: list[str], segments: tuple[str, ...]) -> None:
    assert _called(monkeypatch, "webhook list", *arguments, answer=[]) == ("GET", *segments, {})


def test_places_that_exclude_each_other_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Invalid, match="not both"):
        _called(monkeypatch, "webhook list", "--repository", "main/py", "--project", "a", answer=[])
    with pytest.raises(Invalid, match="no publishers of single packages"):
        _called(monkeypatch, "publisher add", "project:a", "demo", "--issuer", "github", answer={})


def test_sizes_and_nested_fields_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = _called(monkeypatch, "quota set", "main/py", "--bytes", "1KiB", "--packages", "none", answer=QUOTA)
    assert sent == ("PATCH", "repository", "main/py", "quota", {"bytes": 1024, "packages": None}, {})
    sent = _called(monkeypatch, "user edit", "svc", "--owner", "ann", answer={"username": "svc"})
    assert sent == ("PATCH", "users", "svc", {"owner": {"user": "ann"}}, {})
    with pytest.raises(Invalid, match="--versions takes a number or none"):
        _called(monkeypatch, "quota set", "main/py", "--versions", "1.5", answer=QUOTA)
    with pytest.raises(Invalid, match="say what to limit"):
        _called(monkeypatch, "quota set", "main/py", answer=QUOTA)


def test_flags_and_texts_choose_the_field_that_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    path = ("project", "a", "members")
    sent = _called(monkeypatch, "project member", "a", "ann", answer={})
    assert sent == ("POST", *path, {"user": "ann", "role": "developer"}, {})
    sent = _called(monkeypatch, "project member", "a", "crew", "--group", "--role", "guest", answer={})
    assert sent == ("POST", *path, {"group": "crew", "role": "guest"}, {})
    sent = _called(monkeypatch, "project remove-member", "a", "crew", "--group", answer=None)
    assert sent == ("DELETE", *path, None, {"group": "crew"})
    hosts = ("PATCH", "system", "hosts")
    sent = _called(monkeypatch, "host set", "npm.example:8443", "main/npm", answer={})
    assert sent == (*hosts, {"hosts": {"npm.example:8443": "main/npm"}}, {})
    assert _called(monkeypatch, "host remove", "/v2/all/", answer={}) == (*hosts, {"aliases": {"/v2/all/": None}}, {})


def test_a_flag_chooses_another_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    path = ("repository", "main/py", "replication")
    known = {"lag_seconds": 7.4, "lag_events": 2, "failed_tasks": 1, "state": "failing", "source": "there", "error": ""}
    assert _called(monkeypatch, "repo replication", "main/py", answer=known) == ("GET", *path, {})
    sent = _called(monkeypatch, "repo replication", "main/py", "--compare", answer=known)
    assert sent == ("POST", *path, "compare", None, {})
    sentence = generated.fill("{:replicated}", known | {"repository": "main/py"})
    assert sentence == "main/py is failing: there; it has 2 things to do, of which 1 task failed, 7 s behind"


def test_words_are_one_text_and_an_option_of_another_call_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = _called(monkeypatch, "search", "http", "client", answer={"items": [], "truncated": False, "behind": False})
    assert sent == ("GET", "search", "packages", {"q": "http client", "limit": 50})
    sent = _called(monkeypatch, "stats", "--days", "3", answer={"days": []})
    assert sent == ("GET", "statistics", {"days": 3})
    with pytest.raises(Invalid, match="--days is for the whole server"):
        _called(monkeypatch, "stats", "main/py", "--days", "3", answer={})


def test_the_question_is_that_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = {"deleted": ["demo-1.0.whl"], "trash": "abc", "dry_run": False}
    sent = _called(monkeypatch, "repo delete", "main/py", "--yes", answer=gone | DELETED)
    assert sent == ("DELETE", "repository", "main/py", None, {"confirm": "main/py"})
    asked = []
    monkeypatch.setattr(click, "confirm", lambda text, **_rest: asked.append(text))
    _called(monkeypatch, "package delete", "main/py", "demo", answer=gone)
    _called(monkeypatch, "package delete", "main/py", "demo==1.0", answer=gone)
    assert asked == ["Delete demo from main/py, all of it?", "Delete demo 1.0 from main/py?"]


def test_every_call_has_the_arguments_of_its_path() -> None:
    for words, calls in operations().items():
        for each in calls:
            bound = [name for argument in each["arguments"] for name in argument.get("path", ())]
            assert [f"{{{name}}}" for name in bound] == [
                part for part in each["call"].split("/") if part.startswith("{")
            ], words
        assert isinstance(generated.command_of(words), click.Command)
