"""Commands that are made of operations: their description in the client is that of the table of routes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
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


# The other commands of the client, by the reason why they are written by hand.
BY_HAND = {
    "several calls, of which one needs what another returns": """
        repo show, repo edit, repo apply, package tag, package untag, snapshot, user show, user logout, group show,
        group add, group remove, token show, token revoke, stage approve, import people, login, logout""",
    "bytes, or what comes while it runs": """
        upload, download, deploy, mirror, bundle write, export, twin verify, events, audit, top""",
    "a job that is waited for": """
        repo gc, repo purge, repo rebuild, repo verify, repo promote-replica, twin run, jobs show, retention run,
        advisories refresh, rehearse, drill""",
    "a secret is asked for, or shown once": """
        storage create, storage edit, user create, user password, user password-link, token create, token canary,
        token rotate""",
    "no call, but the profiles of the client": "profile list, profile use",
    "a file or options of which the client makes a configuration, or a configuration that is shown as a file": """
        repo create, retention preview, retention set, retention show, rules set, rules show,
        rules suggest, advisories add""",
    "some of the list are left out, by rules of the client": "token list",
    "the query is made of the form of a text, and pages are put together": "recall",
    "an option may have a version too, and what is not found is an exit code without an error": "explain, setup",
    "what does not work is an error, but not with --json": "storage check",
}


def test_every_other_command_of_the_client_has_a_reason() -> None:
    reasons = [words.strip() for each in BY_HAND.values() for words in each.split(",")]
    assert len(reasons) == len(set(reasons))
    assert set(reasons) == {words for words in _commands(main) if words not in described()}


def _commands(group: click.Group, *words: str) -> Iterator[str]:
    """The words of the commands in a group that talk to a server by its API."""
    context = click.Context(group, info_name=words[-1] if words else "", parent=(words and click.Context(main)) or None)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from _commands(found, *words, name)
        elif found is not None and found.callback.__module__.startswith("pkgrepo.client."):
            yield " ".join((*words, name))
