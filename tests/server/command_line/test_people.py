"""Users, grants, tokens and projects are managed by the program."""

import json

import pytest

from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD

pytestmark = pytest.mark.server


def test_users_are_made_changed_and_removed(admin):
    assert admin("user", "create", "ann", "--name", "Ann", "--password-file", "-", told=PASSWORD) == "added user ann\n"
    admin("user", "create", "robot", "--service", "--default-action", "read")
    rows = admin("user", "list", "-q", "ann").splitlines()
    assert rows[0].startswith("USER")
    assert rows[1].split()[:3] == ["ann", "Ann", "person"]
    admin("user", "edit", "ann", "--email", "ann@team.example", "--user-manager", "--default-action", "none")
    shown = admin.json("user", "show", "ann")
    assert (shown["email"], shown["user_manager"], shown["default_repository_actions"]) == (
        "ann@team.example",
        True,
        [],
    )
    admin("user", "password", "ann", "--password-file", "-", told="another long pass phrase")
    admin("user", "unlock", "ann")
    assert "nobody is logged in as ann" in admin.run("user", "sessions", "ann").stderr
    assert admin("user", "logout", "ann") == "ended 0 logins of ann\n"
    assert "'17' does not exist" in admin.refused(3, "user", "logout", "ann", "17")
    assert "12 characters" in admin.refused(2, "user", "password", "ann", "--password-file", "-", told="short")
    assert "already exists" in admin.refused(5, "user", "create", "ann")
    assert "say what to change" in admin.refused(2, "user", "edit", "ann")
    assert admin("user", "delete", "ann", "--yes") == "removed user ann\n"
    assert "'ann' does not exist" in admin.refused(3, "user", "show", "ann")
    assert "nobody removes their own account" in admin.refused(5, "user", "delete", "admin", "--yes")


def test_an_invited_person_chooses_a_password_by_a_link(admin, api, stranger):
    link = admin("user", "create", "ida", "--invite").strip()
    assert link.startswith(f"{admin.url}/ui/password-link#")
    body = {"secret": link.partition("#")[2], "password": PASSWORD}
    assert api.post_json("/user/password-link", body).json == {"username": "ida"}
    stranger.log_in(user="ida")
    assert admin("user", "password-link", "ida", "--hours", "1").startswith(admin.url)
    assert admin("user", "end-password-link", "ida") == "the link of ida has ended\n"
    assert "does not exist" in admin.refused(3, "user", "end-password-link", "ida")
    assert "ida" not in admin("user", "list", "--inactive-days", "1")
    admin("user", "delete", "ida", "--yes")


def test_grants_are_set_one_by_one(admin, stranger):
    admin("user", "create", "bob", "--password-file", "-", told=PASSWORD)
    admin("user", "grant", "bob", "main/py", "read", "write")
    admin("user", "grant", "bob", "main/node", "none")
    rows = [line.split()[:3] for line in admin("user", "grant", "bob", "main/py", "read").splitlines()[1:]]
    assert sorted(rows) == [["main/node", "none", "user"], ["main/py", "read", "user"]]
    admin("user", "revoke", "bob", "main/node")
    assert [each["repository"] for each in admin.json("user", "show", "bob")["permissions"]["repositories"]] == [
        "main/py"
    ]
    assert admin.run("user", "grant", "bob", "main/py", "fly").returncode == 2
    rows = admin("user", "grant", "bob", "MAIN/n?d[ei]*", "read", "write").splitlines()
    assert ["main/n?d[ei]*", "read,", "write", "user"] in [line.split() for line in rows]
    assert "matches no repository" in admin.refused(2, "user", "grant", "bob", "../*", "read")
    assert [each["name"] for each in admin.json("repo", "list", "--pattern", "main/n?d[ei]*")] == ["node"]
    because = [each["sources"] for each in admin.json("user", "rights", "bob") if each["repository"] == "main/node"]
    assert [each["source"] for each in because[0]] == ["the user's grant for main/n?d[ei]*"]
    admin("user", "revoke", "bob", "main/n?d[ei]*")
    stranger.log_in(user="bob")
    assert "user managers only" in stranger.refused(4, "user", "list")
    assert "admins only" in stranger.refused(4, "audit")
    assert stranger.refused(4, "repo", "create", "main/bobs", "--format", "npm").startswith("pkgrepo: ")
    assert stranger("repo", "list").splitlines()[1:]
    admin("user", "delete", "bob", "--yes")


def test_groups_have_members_grants_and_service_accounts(admin, stranger):
    admin("user", "create", "gil", "--password-file", "-", told=PASSWORD)
    assert admin("group", "create", "crew", "--description", "all of us") == "added group crew\n"
    assert admin("group", "add", "crew", "gil") == "gil is in crew\n"
    assert admin("group", "list").splitlines()[1].split() == ["crew", "all", "of", "us"]
    rows = admin("group", "grant", "crew", "main/py", "read", "write").splitlines()
    assert rows[1].split() == ["main/py", "read,", "write"]
    shown = admin.json("group", "show", "crew")
    assert [each["username"] for each in shown["members"]] == ["gil"]
    admin("user", "create", "builder", "--service", "--owner-group", "crew")
    stranger.log_in(user="gil")
    assert stranger("user", "services").splitlines()[1].split() == ["builder", "-", "group", "crew", "active"]
    made = stranger.run("token", "create", "ci", "--service", "builder", "-r", "main/*")
    assert made.stdout.startswith("pkgr_s_"), made.stderr
    assert stranger("token", "list", "--service", "builder").splitlines()[1].split()[0] == "ci"
    assert stranger("token", "revoke", "ci", "--service", "builder", "--yes") == "revoked token ci\n"
    assert "user managers only" in stranger.refused(4, "group", "list")
    assert "builder" in admin.refused(5, "group", "delete", "crew", "--yes")
    admin("user", "delete", "builder", "--yes")
    admin("group", "revoke", "crew", "main/py")
    assert admin.json("group", "show", "crew")["repositories"] == []
    assert admin("group", "remove", "crew", "gil") == "gil is not in crew any more\n"
    assert "gil is not in crew" in admin.refused(3, "group", "remove", "crew", "gil")
    admin("group", "edit", "crew", "--rename", "team")
    assert "say what to change" in admin.refused(2, "group", "edit", "team")
    assert admin("group", "delete", "team", "--yes") == "removed group team\n"
    assert "'team' does not exist" in admin.refused(3, "group", "show", "team")
    admin("user", "delete", "gil", "--yes")


def test_tokens_are_made_rotated_and_revoked(admin):
    result = admin.run(
        "token", "create", "ci", "--kind", "ci", "-r", "main/*=read,write", "--package", "team-*", "--days", "5"
    )
    text = result.stdout.strip()
    assert text.startswith("pkgr_c_")
    assert text not in result.stderr
    assert "in 4 days" in result.stderr
    shown = admin.json("token", "show", "ci")
    assert (shown["repositories"][0]["repository"], shown["packages"]) == ("main/*", ["team-*"])
    assert text not in admin("token", "show", "ci")
    rotated = admin("token", "rotate", "ci").strip()
    assert rotated.startswith("pkgr_c_")
    assert rotated != text
    assert [row.split()[0] for row in admin("token", "list").splitlines() if row.startswith("ci ")] == ["ci"]
    assert len([row for row in admin("token", "list", "--all").splitlines() if row.startswith("ci ")]) == 2
    assert admin("token", "revoke", shown["id"], "--yes") == "revoked token ci\n"
    admin("token", "create", "ci", "-r", "main/*", "--action", "read", "--action", "write")
    live = [each for each in admin.json("token", "list") if each["name"] == "ci"]
    several = admin.refused(2, "token", "show", "ci")
    assert "'ci' means 2 of them, name one by its id: " in several
    assert all(f"{each['id']} (ci {each['shown']})" in several for each in live)
    for each in live:
        assert admin("token", "revoke", each["id"][:8], "--yes") == "revoked token ci\n"
    assert admin.json("token", "show", shown["id"][:8].upper())["revoked_at"] is not None
    assert "nothing there has the name 'ci'" in admin.refused(3, "token", "revoke", "ci", "--yes")
    assert "PATTERN=ACTIONS" in admin.refused(2, "token", "create", "x", "-r", "=read")


def test_projects_have_members_and_names(admin):
    admin("user", "create", "carol")
    assert admin("project", "create", "team", "--name", "The team") == "added project team\n"
    admin("project", "edit", "team", "--visibility", "public", "--quota", "5GiB")
    assert admin.json("project", "show", "team")["quota"] == 5 * 1024**3
    assert admin("project", "member", "team", "carol", "--role", "maintainer") == "carol is maintainer in team\n"
    admin("project", "bind", "team", "main/node", "@team")
    shown = admin("project", "show", "team")
    assert "carol: maintainer" in shown
    assert "main/node: @team" in shown
    assert admin.json("project", "owner", "main/node", "@team/left")["key"] == "team"
    assert [row.split()[0] for row in admin("project", "list").splitlines()[1:]] == ["team"]
    assert "there is no group 'carol'" in admin.refused(2, "project", "member", "team", "carol", "--group")
    admin("project", "remove-member", "team", "carol")
    admin("project", "unbind", "team", "main/node", "@team")
    assert "does not exist" in admin.refused(3, "project", "unbind", "team", "main/node", "@team")
    admin("project", "delete", "team", "--yes")
    assert "does not exist" in admin.refused(3, "project", "show", "team")
    admin("user", "delete", "carol", "--yes")


def test_people_of_a_server_are_previewed_as_a_file_that_can_be_applied(admin, write):
    admin("user", "create", "mia", "--email", "mia@team.example", "--password-file", "-", told=PASSWORD)
    admin("user", "grant", "mia", "main/py", "read", "write")
    admin("group", "create", "movers", "--description", "Who moves")
    admin("group", "add", "movers", "mia")
    admin("project", "create", "moved", "--name", "Moved")
    shown = admin.run("import", "people")
    assert "pkgrepo user create mia --email mia@team.example" in shown.stderr
    again = write("people.json", shown.stdout.encode())
    changes = admin.json("repo", "apply", "-f", str(again), "--dry-run")
    assert {each["action"] for each in changes if "mia" in str(each) or "mov" in str(each)} == {"unchanged"}
    for what in (("user", "mia"), ("group", "movers"), ("project", "moved")):
        admin(what[0], "delete", what[1], "--yes")


def test_patterns_that_would_hold_elsewhere_under_new_paths_are_no_part_of_a_preview(admin):
    admin("user", "create", "mia", "--password-file", "-", told=PASSWORD)
    for pattern, action in (("*", "read"), ("main/secret-*", "none")):
        admin("user", "grant", "mia", pattern, action)
    rename = ("import", "people", "--map", "main/secret-a=team/a")
    assert "the grant for main/secret-* would not hold" in admin.refused(2, *rename)
    admin.refused(2, "import", "people", "--map", "main/open=main/secret-b")
    shown = json.loads(admin.run(*rename, "--map", "main/secret-*=team/*").stdout)
    [mia] = [each for each in shown["users"] if each["username"] == "mia"]
    assert {each["repository"]: each["actions"] for each in mia["grants"]} == {"*": ["read"], "team/*": []}
    admin("user", "delete", "mia", "--yes")


def test_a_canary_is_made_and_its_uses_are_listed(admin):
    made = admin.json("token", "canary", "left in a wiki")
    assert (made["canary"], made["expires_at"]) == (True, None)
    assert "no canary token was used" in admin.run("token", "rings").stderr
    thief = HttpClient(admin.url, ("admin", made["token"]))
    assert thief.get("/api/user/me").status == 401
    assert "left in a wiki" in admin("token", "rings")
    assert any(each["name"] == "left in a wiki" for each in admin.json("token", "list"))
    assert admin("token", "revoke", "left in a wiki", "--yes") == "revoked token left in a wiki\n"


def test_without_an_export_no_record_is_taken_and_no_recall_is_open(admin, write):
    record = write("record.json", b'{"id":"MAL-2026-1","modified":"2026-01-01T00:00:00Z"}')
    assert "have not been loaded yet" in admin.refused(5, "advisories", "add", str(record))
    assert "no known malware is, or was, here" in admin.run("recalls").stderr
    assert "'MAL-2026-1' does not exist" in admin.refused(3, "recall", "report", "MAL-2026-1")
