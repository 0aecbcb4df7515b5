"""Whose files a command on the machine writes."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pkgrepo.commands.offline import check_owner

SERVICE = 54321  # a user id that the machine gives to no account

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can continue as another user")


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as outer:  # every user may enter it
        os.chmod(outer, 0o755)
        inner = Path(outer, "data")
        inner.mkdir()
        os.chown(inner, SERVICE, SERVICE)
        yield inner


def in_a_child(folder: Path, user: int = 0) -> int:
    """Check the owner and write a file, in a process of its own, of this user. Returns its exit status."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            check_owner(folder)
            (folder / "made").write_text("")
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        finally:
            sys.stderr.flush()
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_root_writes_as_the_owner_of_the_folder(folder: Path) -> None:
    assert in_a_child(folder) == 0
    made = (folder / "made").stat()
    assert (made.st_uid, made.st_gid) == (SERVICE, SERVICE)


def test_a_folder_that_its_owner_cannot_reach_is_refused_with_the_command_that_can(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder.parent.chmod(0o700)
    assert in_a_child(folder) == 4
    assert "systemd-run" in capfd.readouterr().err


def test_a_folder_of_root_that_a_server_uses_by_its_group_is_for_the_user_of_the_server(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    os.chown(folder, 0, SERVICE)
    folder.chmod(0o2770)
    assert in_a_child(folder, SERVICE) == 0  # before the first start
    (folder / "in-use").touch()
    os.chown(folder / "in-use", SERVICE, SERVICE)
    (folder / "made").unlink()
    assert in_a_child(folder) == 0
    assert (folder / "made").stat().st_uid == SERVICE
    assert in_a_child(folder, SERVICE) == 0
    folder.chmod(0o2777)
    assert in_a_child(folder, SERVICE + 1) == 4
    assert f"belongs to the user with id {SERVICE}" in capfd.readouterr().err
