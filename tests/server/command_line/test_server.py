"""The audit log, the live view, and what happens to output on terminals and in pipes."""

import json
import os
import pty
import subprocess

import pytest

from tests.support.command_line import PROGRAM
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server


def on_terminal(program, *arguments, columns="60", **variables):
    """The output of the program on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [PROGRAM, *arguments],
        env={**program.environ(**variables), "COLUMNS": columns, "TERM": "xterm"},
        cwd=program.folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 65536):
            parts.append(part)
    except OSError:
        pass  # Linux: the other side has closed
    finally:
        os.close(ours)
    assert process.wait(TIMEOUT_S) == 0, b"".join(parts)
    return b"".join(parts).decode().replace("\r\n", "\n")


def test_the_audit_log_is_filtered(admin):
    admin("user", "create", "audited")
    admin("user", "delete", "audited", "--yes")
    rows = admin.json("audit", "--object", "audited")
    assert [row["action"] for row in rows] == ["user.create", "user.delete"]
    assert [row["action"] for row in admin.json("audit", "--object", "audited", "--limit", "1")] == ["user.delete"]
    assert admin.json("audit", "--object", "audited", "--outcome", "refused") == []
    assert admin.json("audit", "--object", "audited", "--to", "2020-01-01T00:00:00Z") == []
    assert "user.create" in admin("audit", "--action", "user.")
    assert "from is a time such as 2026-01-31T12:00:00Z" in admin.refused(2, "audit", "--from", "yesterday")


def test_the_audit_log_is_followed(admin):
    process = subprocess.Popen(
        [PROGRAM, "audit", "--follow", "--interval", "0.2", "--action", "user.create", "--json"],
        env=admin.environ(),
        cwd=admin.folder,
        stdout=subprocess.PIPE,
    )
    try:
        admin("user", "create", "followed")
        lines = (json.loads(line) for line in process.stdout)
        assert next(row for row in lines if row["object"] == "followed")["outcome"] == "ok"
    finally:
        process.kill()
        process.communicate()
    admin("user", "delete", "followed", "--yes")


def test_the_live_view_shows_what_happens(admin):
    lines = admin("top", "--interval", "0.5", "--count", "2").splitlines()
    assert lines[0].startswith(f"{admin.url}  pkgrepo ")
    assert any(line.startswith("metrics ") for line in lines)  # the program's own requests
    figures = admin.json("top", "--interval", "0.5", "--count", "1")
    assert figures["total"]["per_second"] > 0
    assert "--json needs --count" in admin.refused(2, "top", "--json")


@pytest.mark.folder("a bucket has no free space")
def test_the_live_view_shows_free_space(admin):
    assert "main" in admin.json("top", "--interval", "0.5", "--count", "1")["disk_free"]


def test_the_live_view_draws_over_itself_on_a_terminal(admin):
    shown = on_terminal(admin, "top", "--interval", "0.3", "--count", "2", columns="70")
    assert shown.count("\x1b[2J") == 1
    assert shown.count("\x1b[H") == 2
    assert (
        max(len(line.replace("\x1b[K", "").replace("\x1b[2J", "").replace("\x1b[H", "")) for line in shown.split("\n"))
        <= 73
    )


def test_tables_fit_the_terminal_and_only_there_have_colours(admin):
    admin("repo", "edit", "main/py", "--description", "x")
    shown = on_terminal(admin, "repo", "list")
    assert "\x1b[1m" in shown
    assert max(len(line) for line in shown.replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()) <= 60
    assert "\x1b" not in on_terminal(admin, "repo", "list", NO_COLOR="1")
    assert "\x1b" not in admin("repo", "list")


def test_a_reader_that_leaves_is_no_error(admin):
    process = subprocess.Popen(
        [PROGRAM, "audit", "--follow", "--interval", "0.2"],
        env=admin.environ(),
        cwd=admin.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.readline()
    process.stdout.close()
    admin("user", "create", "unread")
    admin("user", "delete", "unread", "--yes")
    assert process.wait(TIMEOUT_S) == 1
    assert process.stderr.read() == b""


def test_what_follows_ends_with_ctrl_c(admin):
    assert admin.interrupted("top", "--interval", "0.2") == (130, "")


def test_unfinished_uploads_are_listed_and_cancelled(admin):
    admin("repo", "create", "main/layers", "--format", "docker")
    assert admin.json("repo", "uploads", "list", "main/layers") == []
    assert "does not exist" in admin.refused(3, "repo", "uploads", "cancel", "main/layers", "none", "--yes")
    assert "0 unfinished uploads" in admin("repo", "gc", "main/layers", "--uploads-idle", "60")
    admin("repo", "delete", "main/layers", "--yes", "--purge")


def test_quotas_are_set_and_what_exceeds_them_is_refused(admin):
    admin("repo", "create", "main/small", "--format", "python")
    shown = admin.json("quota", "set", "main/small", "--bytes", "1KiB", "--packages", "3")
    assert (shown["limits"]["bytes"], shown["limits"]["packages"]) == (1024, 3)
    rows = admin("quota", "list").splitlines()
    assert rows[1].split()[0] == "server"
    assert any(row.startswith("main/small") and "of 1" in row for row in rows)
    wheel = admin.folder / "big-1.0.tar.gz"
    wheel.write_bytes(bytes(200_000))
    refused = admin.run("upload", "main/small", wheel)
    assert refused.returncode != 0
    assert "quota of repository main/small is exceeded" in refused.stderr
    assert admin.json("quota", "set", "main/small", "--bytes", "none")["limits"]["bytes"] is None
    assert "takes a number or none" in admin.refused(2, "quota", "set", "server", "--versions", "many")
    assert "say what to limit" in admin.refused(2, "quota", "set", "server")
    assert admin.json("quota", "show", "main")["kind"] == "storage"
    assert "'main/none' does not exist" in admin.refused(3, "quota", "show", "main/none")
    admin("repo", "delete", "main/small", "--yes", "--purge")
