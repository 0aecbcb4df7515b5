"""What was changed is kept for its owner alone, and by one program at a time."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pkgrepo.client.locks import locked
from pkgrepo.client.setup.state import TAKEN, KeptToken, State, hunks_of, read_state, undone, write_state
from pkgrepo.errors import Conflict, Invalid
from tests.support.timeouts import TIMEOUT_S

HOLD = """
import sys
from pathlib import Path
from pkgrepo.client.locks import locked
with locked(Path(sys.argv[1]), "taken"):
    print("held", flush=True)
    sys.stdin.read()
"""


def token(left: timedelta) -> KeptToken:
    return KeptToken(server="s", repository="r", id="1", text="t", expires_at=datetime.now(UTC) + left)


def test_a_token_that_ends_soon_is_not_used_again() -> None:
    assert State(tokens=[token(timedelta(hours=1))]).token("s", "r") is None
    assert State(tokens=[token(timedelta(days=3))]).token("s", "r") is not None
    assert State(tokens=[token(timedelta(days=3))]).token("s", "other") is None


def test_the_file_is_for_its_owner_and_damage_is_told(tmp_path: Path) -> None:
    path = tmp_path / "new" / "setup.json"
    assert read_state(path) == State()
    state = State(tokens=[token(timedelta(days=3))])
    write_state(path, state)
    assert path.stat().st_mode & 0o077 == 0
    assert read_state(path) == state
    path.write_text("{")
    with pytest.raises(Invalid, match="cannot be read"):
        read_state(path)


def test_another_program_waits_for_nothing_and_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "setup.json"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(Conflict, match="another pkgrepo setup"), locked(path, TAKEN):
        pass
    holder.communicate(timeout=TIMEOUT_S)
    with locked(path, TAKEN):
        pass


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "a\nb\n"),
        ("a", "a\nb\n"),
        ("a\nold\nc\n", "a\nnew\nc\nd\n"),
        ("x\n\ny\n", "x\n\nz\n\ny\n"),
        ("a\r\n", "b\r\n"),
    ],
)
def test_a_change_is_undone(before: str, after: str) -> None:
    assert undone(after, hunks_of(before, after)) == before


def test_a_change_is_found_where_it_has_moved_to_and_not_guessed() -> None:
    hunks = hunks_of("a\n", "a\nours\n")
    assert undone("first\na\nours\nlast\n", hunks) == "first\na\nlast\n"
    assert undone("ours\nours\n", hunks) == "ours\n"  # where it was
    with pytest.raises(Conflict):
        undone("ours\na\nb\nours\n", hunks)
    with pytest.raises(Conflict):
        undone("a\n", hunks)
