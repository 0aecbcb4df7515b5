"""Commands that are made of operations: their description in the client is that of the table of routes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec
import pytest

import pkgrepo
from pkgrepo.cli import main
from pkgrepo.client.groups import operations as described
from pkgrepo.management.api.operations import operations
from pkgrepo.management.app import EVERY_TABLE

FILE = Path(pkgrepo.__file__).parent / "client/operations.json"


def test_the_description_in_the_client_is_current() -> None:
    made = operations(route for table in EVERY_TABLE for route in table.routes)
    text = msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n"
    if FILE.read_bytes() != text:
        place = Path(tempfile.gettempdir(), FILE.name)
        place.write_bytes(text)
        pytest.fail(f"pkgrepo/client/operations.json is old: cp {place} pkgrepo/client/")


@pytest.mark.parametrize("words", described())
def test_each_described_command_can_be_called(words: str) -> None:
    command, context = main, main.make_context("pkgrepo", ["--help"], resilient_parsing=True)
    for word in words.split():
        found = command.get_command(context, word)  # type: ignore[attr-defined]
        assert found is not None, words
        command, context = found, found.make_context(word, [], parent=context, resilient_parsing=True)
    assert command.help.startswith(described()[words][0]["help"])
