"""
What ``pkgrepo setup`` has changed on this machine, so that it can be undone: ``setup.json`` beside the profiles.

Like the profiles it holds tokens, and only its owner can read it. One program at a time changes it and the files of
tools, under a lock that ends with the program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from pkgrepo.client.profiles import find_profiles_file
from pkgrepo.errors import Conflict, Invalid
from pkgrepo.small_files import replace_private_json

TAKEN: Final = "another pkgrepo setup is at work on this machine"
LEFT: Final = timedelta(days=1)  # a token that ends sooner is replaced


class Hunk(msgspec.Struct):
    """Lines of a file before a change, from line ``at`` on, and after it; with their ends."""

    at: int
    before: list[str]
    after: list[str]


class Change(msgspec.Struct, kw_only=True):
    """
    One change of a file for a repository.

    Without ``existed`` the file was made. ``mode`` is the one that it had, None if that was not changed.
    """

    server: str
    repository: str
    tools: list[str]
    path: str
    existed: bool
    hunks: list[Hunk]
    mode: int | None = None


class KeptToken(msgspec.Struct, kw_only=True):
    """A token that stands in files of tools."""

    server: str
    repository: str
    id: str
    text: str
    expires_at: datetime | None

    def is_live(self, now: datetime) -> bool:
        """Whether it need not be replaced yet."""
        return self.expires_at is None or self.expires_at - now > LEFT


class State(msgspec.Struct, kw_only=True):
    """The changes in the order in which they were made, and the tokens in them."""

    changes: list[Change] = []
    tokens: list[KeptToken] = []

    def of(self, server: str, repository: str) -> list[Change]:
        """The changes for a repository, the oldest first."""
        return [each for each in self.changes if (each.server, each.repository) == (server, repository)]

    def token(self, server: str, repository: str) -> KeptToken | None:
        """The newest token for a repository, if it is live."""
        found = reversed(self.tokens_of(server, repository))
        return next((each for each in found if each.is_live(datetime.now(UTC))), None)

    def tokens_of(self, server: str, repository: str) -> list[KeptToken]:
        """The tokens for a repository, the oldest first; several only if a program was ended while it wrote."""
        return [each for each in self.tokens if (each.server, each.repository) == (server, repository)]


def state_file(environ: Mapping[str, str]) -> Path:
    """Where the state is, whether the file exists or not."""
    return find_profiles_file(environ).with_name("setup.json")


def read_state(path: Path) -> State:
    """The state in the file; an empty one if there is none. :raises Invalid: it is damaged"""
    try:
        return msgspec.json.decode(path.read_bytes(), type=State)
    except FileNotFoundError:
        return State()
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Invalid(f"{path} cannot be read, which says what pkgrepo setup has changed") from None


def write_state(path: Path, state: State) -> None:
    """Replace the file. :raises OSError: it cannot be written, and is unchanged"""
    replace_private_json(path, state)


def hunks_of(before: str, after: str) -> list[Hunk]:
    """What changed between two texts."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [
        Hunk(at=start, before=old[first:last], after=new[start:end])
        for kind, first, last, start, end in codes
        if kind != "equal"
    ]


def undone(text: str, hunks: Sequence[Hunk]) -> str:
    """
    The text without a change, wherever its lines are now.

    :raises Conflict: the lines of the change are not there any more
    """
    lines = text.splitlines(keepends=True)
    for hunk in reversed(hunks):
        size = len(hunk.after)
        found = [at for at in range(len(lines) - size + 1) if size and lines[at : at + size] == hunk.after]
        if not size and hunk.at <= len(lines):
            found = [hunk.at]
        if not found or (len(found) > 1 and hunk.at not in found):
            raise Conflict("it was changed since")
        at = hunk.at if hunk.at in found else found[0]
        lines[at : at + size] = hunk.before
    return "".join(lines)


def is_gone(text: str, change: Change) -> bool:
    """Whether nothing of a change is left in a text that names the server: somebody has taken it out."""
    host = urlsplit(change.server).netloc
    lines = {each.strip() for each in text.splitlines()}
    new = {each.strip() for hunk in change.hunks for each in hunk.after if each not in hunk.before}
    named = {each for each in new if host in each}
    return not lines & (named or new - {""})
