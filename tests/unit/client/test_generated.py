"""Commands that are made of operations: which of their calls fits what is written, and what is sent."""

from __future__ import annotations

import asyncio
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


class _Recording:
    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.calls: list[tuple[Any, ...]] = []

    async def get(self, *segments: str, **query: Any) -> Any:
        self.calls.append(("GET", *segments, query))
        return self.answer

    async def change(self, method: str, *segments: str, body: Any = None, **query: Any) -> Any:
        self.calls.append((method, *segments, body, query))
        return self.answer


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


def test_every_call_has_the_arguments_of_its_path() -> None:
    for words, calls in operations().items():
        for each in calls:
            bound = [name for argument in each["arguments"] for name in argument.get("path", ())]
            assert [f"{{{name}}}" for name in bound] == [
                part for part in each["call"].split("/") if part.startswith("{")
            ], words
        assert isinstance(generated.command_of(words), click.Command)
