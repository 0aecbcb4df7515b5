"""Blocks, rules and versions in quarantine by commands."""

import json

import pytest

from tests.support.python_packages import make_wheel

pytestmark = pytest.mark.server


def test_versions_are_blocked_and_approved(admin, write):
    filename, data = make_wheel("held", "1.0")
    admin("upload", "main/py", write(filename, data))

    def download(number):
        return admin.run(
            "download", "main/py", "held", "1.0", "--file", filename, "--to", admin.folder / f"held{number}"
        )

    assert "held 1.0 is blocked in main/py" in admin("block", "main/py", "held@1.0", "--reason", "malware")
    refused = download(1)
    assert (refused.returncode, "malware" in refused.stderr) == (4, True)
    assert "malware" in admin("blocks")
    (block,) = [each for each in admin.json("blocks") if each["package"] == "held"]
    admin("unblock", block["id"])
    assert download(2).returncode == 0
    rule = {"name": "look", "action": "quarantine", "match": {"packages": ["held"]}}
    rules = write("rules.json", json.dumps([rule]).encode())
    admin("rules", "set", "main/py", rules)
    try:
        assert admin.json("rules", "show", "main/py")["rules"][0]["name"] == "look"
        assert download(3).returncode == 4
        while not (waiting := admin.json("quarantine", "list")):
            pass
        assert "held" in admin("quarantine", "list")
        admin("quarantine", "approve", waiting[0]["id"], "--reason", "read it")
        assert download(4).returncode == 0
        admin("quarantine", "deny", waiting[0]["id"])
        assert "denied" in download(5).stderr
        assert "look" in admin("rules", "counts")
    finally:
        admin("rules", "set", "main/py", write("no-rules.toml", b"rules = []"))
    assert admin.json("rules", "show", "server") == {"rules": []}


def test_objects_are_named_by_what_they_are_called_or_by_the_beginning_of_their_id(admin):
    for place, name in (
        *(("main/py", each) for each in ("left-pad@1.0", "left-pad@2.0", "is-odd")),
        ("main/node", "@acme/tool"),
    ):
        admin("block", place, name)
    many = admin.refused(2, "unblock", "left-pad")
    assert "'left-pad' means 2 of them, name one by its id: " in many
    assert all(f"(left-pad {each} main/py)" in many for each in ("1.0", "2.0"))
    admin("unblock", "left-pad==2.0")
    admin("unblock", "LEFT-PAD")
    assert "nothing there has the name 'left-pad'" in admin.refused(3, "unblock", "left-pad")
    admin("unblock", "@acme/tool")
    (left,) = [each for each in admin.json("blocks") if each["package"] == "is-odd"]
    assert "nothing there" in admin.refused(3, "unblock", left["id"][:3])
    admin("unblock", left["id"][:8])
    assert admin.json("blocks") == []
    hook = admin.json("webhook", "create", "ci", "https://a.example/")
    assert admin.json("webhook", "show", "ci")["id"] == hook["id"]
    assert admin.json("webhook", "deliveries", "ci") == []
    admin("webhook", "delete", "ci", told="y\n")


def test_actions_are_written_with_spaces_or_commas(admin):
    admin("user", "create", "eve", "--service")
    for words in (["read,write"], ["read", "write"]):
        admin("user", "grant", "eve", "main/py", *words)
        assert "main/py: read, write" in admin("user", "show", "eve")
        admin("user", "grant", "eve", "main/py", "read")


def test_a_version_is_blocked_until_a_date(admin):
    admin("block", "main/py", "dated", "1.0", "--until", "2999-12-31")
    (block,) = admin.json("blocks")
    assert (block["package"], block["versions"], block["until"]) == ("dated", "1.0", "2999-12-31T23:59:59Z")
    admin("unblock", "dated")
    admin("block", "main/py", "dated", "--until", "2999-12-31T12:00Z")
    assert admin.json("blocks")[0]["until"] == "2999-12-31T12:00:00Z"
    admin("unblock", "dated")
    wrong = admin.refused(2, "block", "main/py", "dated", "--until", "tomorrow")
    assert "--until takes a date such as 2026-12-31 (its end), or a time such as 2026-12-31T12:00Z" in wrong


def test_a_repository_is_frozen_and_thawed_by_name_and_whole(admin, api):
    assert admin.run("freeze", "main/py").returncode != 0  # which is hosted
    body = {"type": "Virtual", "members": ["main/py"]}
    made = {"name": "frozen", "storage": "main", "format": "python", "visibility": "public", "config": body}
    assert api.post_json("/repository", made).status == 201
    said = admin("freeze", "main/frozen", "--at", "2020-01-01T00:00:00Z", "--reason", "a worm is out", "--except", "a")
    (frozen,) = admin.json("freezes")
    assert frozen["id"] in said
    assert (frozen["except"], frozen["at"]) == (["a"], "2020-01-01T00:00:00Z")
    assert "a worm is out" in admin("freezes")
    assert frozen["id"] in admin("thaw", frozen["id"], "held", "other@1.0")
    assert admin.json("freezes")[0]["except"] == ["a", "held", "other@1.0"]
    assert "nothing there has the name" in admin.refused(3, "thaw", "main/other")
    assert "is lifted" in admin("thaw", "main/frozen")
    assert admin.json("freezes") == []
    assert admin.run("thaw", frozen["id"]).returncode == 3


def test_incidents_are_played_with_the_rules_that_are_suggested(admin):
    target = admin.folder / "suggested.json"
    assert admin("rules", "suggest", "--format", "npm", "--exempt", "@acme/*", "--write", target).endswith(
        f"{target}\n"
    )
    assert "File exists" in admin.refused(2, "rules", "suggest", "--write", target)
    written = json.loads(target.read_text())
    assert written["rules"][0]["exempt"] == ["@acme/*"]
    assert admin.json("rules", "suggest", "--format", "npm", "--exempt", "@acme/*") == written
    assert "there is no format" in admin.refused(2, "rules", "suggest", "--format", "cobol")
    shown = admin("drill", "chalk-debug", "--rules", target)
    assert "What differed: one long line of obfuscated code." in shown
    assert "chalk@5.6.1" in shown
    assert shown.splitlines()[-1].startswith("chalk-debug")
    played = admin.json("drill", "-f", target)
    assert played["held"] > 10
    assert played["served"] == 0
    assert "heartbleed" in admin.refused(3, "drill", "heartbleed")
