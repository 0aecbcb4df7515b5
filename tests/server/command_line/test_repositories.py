"""Repositories and storages are listed, made, changed, applied from a file and deleted by the program."""

import json

import pytest

from tests.server.command_line.conftest import DECLARED, REPOSITORIES
from tests.support.command_line import Program
from tests.support.python_packages import make_wheel
from tests.support.s3_servers import BUCKET, KEY, s3_server
from tests.support.server_process import running

pytestmark = pytest.mark.server

FILE = """
[[repositories]]
name = "joined"
format = "npm"
visibility = "public"
config = { type = "Virtual", members = ["main/team"], publish_to = "main/team" }

[[repositories]]
name = "team"
format = "npm"
description = "ours"
config = { type = "Hosted" }

[[repositories]]
name = "mirror"
format = "npm"
[repositories.config]
type = "Proxy"
[[repositories.config.proxy.routes]]
url = "https://up.example/"
auth = { username = "ci", password = "s3cret-s3cret" }
"""


def test_a_repository_is_made_shown_changed_and_deleted(admin):
    made = admin("repo", "create", "main/wheels", "--format", "python", "--visibility", "public", "--description", "x")
    assert made == f"created main/wheels at {admin.url}/repositories/main/wheels\n"
    head, *rows = admin("repo", "list", "--storage", "main", "-q", "wheels").splitlines()
    assert head.split() == ["REPOSITORY", "FORMAT", "TYPE", "VISIBILITY", "PACKAGES", "SIZE", "CHANGED", "STATE"]
    assert [row.split()[:4] for row in rows] == [["main/wheels", "python", "Hosted", "public"]]
    admin("repo", "edit", "main/wheels", "--visibility", "hidden", "--set", "policy.reuse_deleted_names=true")
    shown = admin.json("repo", "show", "main/wheels")
    assert (shown["visibility"], shown["config"]["policy"]["reuse_deleted_names"]) == ("hidden", True)
    assert "reuse_deleted_names" in admin("repo", "show", "main/wheels")
    admin("repo", "edit", "main/wheels", "--inactive")
    assert admin.json("repo", "show", "main/wheels")["active"] is False
    assert "would delete main/wheels" in admin("repo", "delete", "main/wheels", "--dry-run")
    asked = admin.run("repo", "delete", "main/wheels", told="n\n")
    assert asked.returncode == 1
    assert "Delete main/wheels with all its packages? [y/N]" in asked.stderr
    assert "deleted main/wheels" in admin("repo", "delete", "main/wheels", told="y\n")
    assert "'main/wheels' does not exist" in admin.refused(3, "repo", "show", "main/wheels")


def test_refusals_have_a_sentence_and_an_exit_code(admin, stranger):
    assert "already exists" in admin.refused(5, "repo", "create", "main/py", "--format", "python")
    assert "there is no format 'x'" in admin.refused(2, "repo", "create", "main/x", "--format", "x")
    assert "STORAGE/REPOSITORY" in admin.refused(2, "repo", "create", "bare", "--format", "python")
    assert "there is no storage" in admin.refused(2, "repo", "create", "none/x", "--format", "python")
    assert "say what to change" in admin.refused(2, "repo", "edit", "main/py")
    assert "unknown field `nonsense`" in admin.refused(2, "repo", "edit", "main/py", "--set", "nonsense=1")
    assert "exclude each other" in admin.refused(
        2, "repo", "create", "main/x", "--format", "npm", "--upstream", "https://a.example", "--member", "main/node"
    )
    refused = stranger.refused(4, "repo", "create", "main/x", "--format", "npm", "--url", stranger.url)
    page = "(see /ui/docs/permissions#access-tokens there)"
    assert refused == f'pkgrepo: authentication required; "pkgrepo login" gets a token {page}'
    assert admin.run("repo", "nonsense").returncode == 2


def test_proxies_and_virtual_repositories_are_made_by_options(admin):
    admin(
        "repo",
        "create",
        "main/up",
        "--format",
        "npm",
        "--upstream",
        "https://a.example/",
        "--upstream",
        "https://b.example/",
    )
    routes = admin.json("repo", "show", "main/up")["config"]["proxy"]["routes"]
    assert [each["url"] for each in routes] == ["https://a.example/", "https://b.example/"]
    admin(
        "repo", "create", "main/front", "--format", "npm",
        "--member", "main/node", "--member", "main/up", "--publish-to", "main/node",
    )  # fmt: skip
    config = admin.json("repo", "show", "main/front")["config"]
    assert admin("repo", "purge", "main/up", "--dry-run").startswith(
        "would remove 0 files of 0 packages and 0 documents"
    )
    assert admin("repo", "purge", "main/up", "--pattern", "@x/*", "--yes").startswith("removed 0 files")
    assert "proxy repository 'main/node' does not exist" in admin.refused(3, "repo", "purge", "main/node", "--yes")
    assert (config["members"], config["publish_to"]) == (["main/node", "main/up"], "main/node")
    assert "member" in admin.refused(5, "repo", "delete", "main/up", "--yes")
    assert "main/front is virtual, and has no rules" in admin.refused(
        2, "retention", "set", "main/front", "--last", "2"
    )
    admin("repo", "delete", "main/front", "--yes")
    admin("trash", "restore", "main/front")
    admin("repo", "delete", "main/front", "--yes")
    admin("repo", "delete", "main/up", "--yes", "--purge")


def test_a_file_is_applied_and_applied_again_changes_nothing(admin):
    path = admin.folder / "repositories.toml"
    path.write_text(FILE)
    planned = admin("repo", "apply", "-f", path, "--dry-run")
    assert [line for line in planned.splitlines() if not line.startswith(" ")] == [
        "main/team: create",
        "main/mirror: create",
        "main/joined: create",
        "3 to create, 0 to change, 0 unchanged",
    ]
    assert '  + /visibility: "public"' in planned
    assert "s3cret" not in planned
    assert admin.json("repo", "list", "-q", "main/team") == []
    assert admin("repo", "apply", "-f", path).splitlines()[-1] == "3 created, 0 changed, 0 unchanged"

    again = admin.json("repo", "apply", "-f", path, "--dry-run")
    assert [each["action"] for each in again] == ["unchanged", "change", "unchanged"]
    # a stored secret cannot be compared
    assert list(again[1]["differences"]) == ["/config/proxy/routes/0/auth/password"]
    assert "s3cret" not in json.dumps(again)

    path.write_text(
        FILE.replace('"ours"', '"theirs"').replace('members = ["main/team"]', 'members = ["main/team", "main/mirror"]')
    )
    changed = admin("repo", "apply", "-f", path, "--dry-run").splitlines()
    assert changed[:3] == ["main/team: change", '  - /description: "ours"', '  + /description: "theirs"']
    assert '  + /config/members: ["main/team","main/mirror"]' in changed
    assert admin.json("repo", "show", "main/team")["description"] == "ours"
    admin("repo", "apply", "-f", path)
    assert admin.json("repo", "show", "main/team")["description"] == "theirs"
    assert admin.json("repo", "show", "main/joined")["config"]["members"] == ["main/team", "main/mirror"]
    for name in ("joined", "mirror", "team"):
        admin("repo", "delete", f"main/{name}", "--yes", "--purge")


def test_what_a_file_does_not_name_is_pruned_with_yes(admin, tmp_path):
    path = admin.folder / "pruned.json"
    admin("storage", "create", "apart", "--path", tmp_path / "apart")
    for name in ("kept", "gone"):
        admin("repo", "create", f"apart/{name}", "--format", "python")
    admin("repo", "create", "apart/joined", "--format", "python", "--member", "apart/gone")
    path.write_text(json.dumps({"repositories": [{"name": "kept", "storage": "apart", "format": "python"}]}))
    planned = admin("repo", "apply", "-f", path, "--prune", "--dry-run").splitlines()
    assert planned == [
        "apart/kept: unchanged",
        "apart/joined: delete, with 0 packages (0 bytes)",
        "apart/gone: delete, with 0 packages (0 bytes)",
        "0 to create, 0 to change, 1 unchanged, 2 to delete",
    ]
    assert "--prune deletes apart/joined, apart/gone: add --yes" in admin.refused(
        2, "repo", "apply", "-f", path, "--prune"
    )
    assert admin("repo", "apply", "-f", path).splitlines()[-1] == "0 created, 0 changed, 1 unchanged"
    assert len(admin.json("repo", "list", "-q", "apart/")) == 3
    found = admin.json("repo", "apply", "-f", path, "--prune", "--yes")
    assert [each["action"] for each in found] == ["unchanged", "delete", "delete"]
    assert [each["name"] for each in admin.json("repo", "list", "-q", "apart/")] == ["kept"]
    assert admin.json("repo", "list", "-q", "main/py") != []
    admin("repo", "delete", "apart/kept", "--yes", "--purge")


RIGHTS = """
[[repositories]]
name = "shared"
format = "python"
quota = 1000000

[[groups]]
name = "crew"
description = "all"
members = ["Una"]
grants = [{repository = "main/shared", actions = ["write", "read"]}]

[[users]]
username = "una"
grants = [{repository = "main/shared", actions = []}]
default_actions = ["read"]

[[groups]]
name = "makers"
grants = [{repository = "Main/*", actions = ["read"]}, {repository = "main/secret-*", actions = []}]

[[projects]]
key = "acme"
members = [{group = "crew", role = "owner"}]
bindings = [{repository = "main/shared", pattern = "acme-*"}]
"""


def test_groups_rights_and_projects_are_applied_and_pruned(admin):
    admin("user", "create", "una")
    path = admin.folder / "rights.toml"
    path.write_text(RIGHTS)
    planned = admin("repo", "apply", "-f", path, "--dry-run").splitlines()
    assert [line for line in planned if not line.startswith(" ")] == [
        "main/shared: create",
        "group crew: create",
        "group makers: create",
        "user una: change",
        "project acme: create",
        "4 to create, 1 to change, 0 unchanged",
    ]
    assert '  + /grants: {"main/shared":["read","write"]}' in planned
    assert admin.json("group", "list") == []
    assert admin("repo", "apply", "-f", path).splitlines()[-1] == "4 created, 1 changed, 0 unchanged"
    assert admin("repo", "apply", "-f", path).splitlines()[-1] == "0 created, 0 changed, 5 unchanged"
    assert admin.json("quota", "show", "main/shared")["limits"]["bytes"] == 1000000
    makers = admin.json("group", "show", "makers")["repositories"]
    assert {each["repository"]: each["actions"] for each in makers} == {"main/*": ["read"], "main/secret-*": []}
    shown = admin.json("group", "show", "crew")
    assert [each["username"] for each in shown["members"]] == ["una"]
    assert [each["role"] for each in shown["projects"]] == ["owner"]
    # the one who made the project is no member, since the file does not name them
    assert [each["name"] for each in admin.json("project", "show", "acme")["members"]] == ["crew"]

    path.write_text(RIGHTS.replace('["Una"]', "[]").replace('"acme-*"', '"acme"').replace('"write", "read"', '"read"'))
    planned = admin("repo", "apply", "-f", path, "--dry-run").splitlines()
    assert '  - /members/una: "member"' in planned
    assert '  + /bindings/main~1shared acme: "bound"' in planned
    admin("repo", "apply", "-f", path)
    assert admin.json("group", "show", "crew")["members"] == []

    path.write_text('[[groups]]\nname = "other"\n')
    assert "--prune deletes group crew" in admin.refused(2, "repo", "apply", "-f", path, "--prune")
    pruned = admin.json("repo", "apply", "-f", path, "--prune", "--yes")
    actions = [("other", "create"), ("crew", "delete"), ("makers", "delete")]
    assert [(each["group"], each["action"]) for each in pruned] == actions
    assert [each["name"] for each in admin.json("group", "list")] == ["other"]
    for wrong, sentence in (
        ('[[groups]]\nname = "x"\nmembers = ["nobody"]', "there is no user 'nobody'"),
        ('[[users]]\nusername = "una"\ngrants = [{repository = "main/no", actions = []}]', "no repository 'main/no'"),
        ('[[users]]\nusername = "una"\ndefault_actions = ["fly"]', "no action 'fly'"),
    ):
        path.write_text(wrong)
        assert sentence in admin.refused(2, "repo", "apply", "-f", path)
    admin("group", "delete", "other", "--yes")
    admin("project", "delete", "acme", "--yes")
    admin("user", "delete", "una", "--yes")
    admin("repo", "delete", "main/shared", "--yes", "--purge")


UPKEEP = """
[[repositories]]
name = "kept"
format = "python"

[[projects]]
key = "kept"

[[quotas]]
place = "main/kept"
bytes = "10MiB"
packages = 5

[[quotas]]
place = "project:kept"
versions = 7

[[quotas]]
place = "user:admin"
file_size = 1000000

[retention]
rules = [{name = "old", keep = {last = 2}}]

[[webhooks]]
name = "chat"
url = "https://chat.example/in"
events = ["package.*"]

[[webhooks]]
name = "build"
url = "https://build.example/in"
events = ["package.published"]
repository = "main/kept"
secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
"""
PINS = '[[pins]]\nrepository = "main/kept"\npackage = "demo"\nversion = "1.0"\nreason = "stays"\n'


def test_quotas_retention_webhooks_and_pins_are_applied_and_pruned(admin):
    path = admin.folder / "upkeep.toml"
    path.write_text(UPKEEP)
    planned = admin("repo", "apply", "-f", path, "--dry-run").splitlines()
    assert [line for line in planned if not line.startswith(" ")] == [
        "main/kept: create",
        "project kept: create",
        "quota main/kept: change",
        "quota project:kept: change",
        "quota user:admin: change",
        "retention of the server: create",
        "webhook chat: create",
        "webhook build of repository main/kept: create",
        "5 to create, 3 to change, 0 unchanged",
    ]
    assert admin.json("retention", "show", "server") is None
    applied = admin.run("repo", "apply", "-f", path)
    assert applied.stdout.splitlines()[-1] == "5 created, 3 changed, 0 unchanged"
    assert "the secret of webhook chat, which is shown once: whsec_" in applied.stderr
    assert "whsec_MDEy" not in applied.stdout + applied.stderr
    assert admin("repo", "apply", "-f", path).splitlines()[-1] == "0 created, 0 changed, 8 unchanged"
    limits = admin.json("quota", "show", "main/kept")["limits"]
    assert (limits["bytes"], limits["packages"]) == (10 * 1024**2, 5)
    assert admin.json("quota", "show", "user:admin")["limits"]["file_size"] == 1000000
    assert admin.json("retention", "show", "server")["rules"][0]["keep"]["last"] == 2

    path.write_text(PINS)
    assert "no version main/kept demo 1.0" in admin.refused(2, "repo", "apply", "-f", path)
    for version in ("1.0", "1.1"):
        filename, wheel = make_wheel("demo", version)
        (admin.folder / filename).write_bytes(wheel)
        admin("upload", "main/kept", admin.folder / filename)
    admin("package", "pin", "main/kept", "demo==1.1")
    assert admin("repo", "apply", "-f", path).splitlines()[0] == "pin main/kept demo 1.0: create"
    pruned = admin.json("repo", "apply", "-f", path, "--prune", "--yes")
    assert [each["pin"] for each in pruned if each.get("action") == "delete"] == ["main/kept demo 1.1"]
    assert [each["version"] for each in admin.json("package", "pins", "main/kept")] == ["1.0"]

    # without repositories and projects, of which pruning would remove all others of this server
    changed = (
        UPKEEP[UPKEEP.index("[[quotas]]") :]
        .replace("packages = 5\n", "")
        .replace("last = 2", "last = 3")
        .replace("chat.example/in", "chat.example/out")
    )
    changed = changed.replace('name = "build"', 'name = "other"').replace(
        '[[quotas]]\nplace = "user:admin"\nfile_size = 1000000\n', ""
    )
    path.write_text(changed)
    found = admin.json("repo", "apply", "-f", path, "--prune", "--yes")
    done = [
        (kind, each[kind], each["action"])
        for each in found
        for kind in ("quota", "webhook", "retention")
        if kind in each
    ]
    assert done == [
        ("quota", "main/kept", "change"),
        ("quota", "project:kept", "unchanged"),
        ("retention", "of the server", "change"),
        ("webhook", "chat", "change"),
        ("webhook", "other of repository main/kept", "create"),
        ("quota", "user:admin", "delete"),
        ("webhook", "build of repository main/kept", "delete"),
    ]
    assert admin.json("quota", "show", "user:admin")["limits"]["file_size"] is None
    path.write_text('[[quotas]]\nplace = "main/nowhere"\n')
    assert "there is no 'main/nowhere'" in admin.refused(2, "repo", "apply", "-f", path)
    admin("retention", "set", "server", "--off")
    path.write_text("webhooks = []\nquotas = []\n")
    admin("repo", "apply", "-f", path, "--prune", "--yes")
    assert admin.json("webhook", "list") == []
    admin("project", "delete", "kept", "--yes")
    admin("repo", "delete", "main/kept", "--yes", "--purge")


def test_what_the_settings_have_declared_is_unchanged_by_applying_it(tmp_path):
    path = tmp_path / "declared.toml"
    path.write_text(DECLARED.replace("[[bootstrap.repositories]]", "[[repositories]]"))
    folder = tmp_path / "server"
    folder.mkdir()
    with running(folder, DECLARED) as process:
        admin = Program(tmp_path, process.url)
        admin.log_in()
        lines = admin("repo", "apply", "-f", path, "--dry-run").splitlines()
    assert lines[-1] == f"0 to create, 0 to change, {1 + len(REPOSITORIES)} unchanged"


def test_applying_warns_of_a_route_that_cannot_be_used(admin):
    path = admin.folder / "private.json"
    config = {"type": "Proxy", "proxy": {"routes": ["http://10.0.0.1"]}}
    path.write_text(json.dumps({"repositories": [{"name": "private", "format": "python", "config": config}]}))
    result = admin.run("repo", "apply", "-f", path)
    assert result.returncode == 0
    assert "warning: Upstream '10.0.0.1' cannot be used: it leads to an address that is not public" in result.stderr


def virtual(name, *members):
    """A virtual repository as a file describes it."""
    return {"name": name, "format": "python", "config": {"type": "Virtual", "members": [*members]}}


def test_a_run_that_fails_half_way_says_what_is_done(admin):
    path = admin.folder / "half.json"
    made, wrong = {"name": "half", "format": "python"}, {"name": "no name", "format": "python"}
    path.write_text(json.dumps({"repositories": [virtual("halves", "main/half"), made, wrong]}))
    result = admin.run("repo", "apply", "-f", path)
    assert [line for line in result.stdout.splitlines() if not line.startswith(" ")] == ["main/half: create"]
    assert "1 of 3 done: main/half; not, or not wholly: main/no name" in result.stderr
    again = admin.run("repo", "apply", "-f", path, "--json")
    assert [(each["repository"], each["action"]) for each in json.loads(again.stdout)] == [("main/half", "unchanged")]
    assert "0 of 2 done; not, or not wholly: main/no name" in again.stderr
    assert again.returncode == result.returncode == 2
    admin("repo", "delete", "main/half", "--yes", "--purge")


def test_rules_of_the_server_for_caches_are_applied(admin):
    path = admin.folder / "cached.json"
    rule = {"name": "old", "match": {"cached": True}, "keep": {"newer_than_days": 30}}
    path.write_text(json.dumps({"retention": {"rules": [rule]}}))
    assert admin("repo", "apply", "-f", path).splitlines()[-1] == "1 created, 0 changed, 0 unchanged"
    admin("retention", "set", "server", "--off")


def test_a_mistake_anywhere_in_a_file_changes_nothing(admin):
    path = admin.folder / "wrong.json"
    good = {"name": "good", "format": "python"}
    for wrong, code, sentence in (
        ({"name": "bad", "format": "python", "config": {"type": "Hosted", "nonsense": 1}}, 2, "main/bad is not valid"),
        ({"name": "py", "format": "npm"}, 5, "main/py has the format python"),
        (
            {"name": "py", "format": "pypi", "config": {"type": "Virtual", "members": ["main/x"]}},
            5,
            "of the type Hosted",
        ),
        ({"name": "GOOD", "format": "python"}, 2, "is there twice"),
        ({"name": "bad", "format": "pyton"}, 2, "there is no format 'pyton', which main/bad has; there are "),
        ({"name": "bad", "format": "python", "visibility": "pubic"}, 2, "visibility is one of public, private, hidden"),
        ({"name": "bad", "format": "python", "storage": "nowhere"}, 2, "there is no storage 'nowhere'"),
        (virtual("bad", "main/good", "main/nope"), 2, "there is no repository 'main/nope', on the server or before"),
        (virtual("bad", "main/bad"), 2, "there is no repository 'main/bad'"),
    ):
        path.write_text(json.dumps({"repositories": [good, wrong]}))
        for more in ((), ("--dry-run",)):
            result = admin.run("repo", "apply", "-f", path, *more)
            assert result.returncode == code, result
            assert sentence in result.stderr
            assert result.stdout == ""
    hook = {"name": "chat", "url": "https://chat.example/in", "events": ["*"]}
    for more, sentence in (
        ({"retention": {"rules": [{"name": "old", "keep": {"lastt": 2}}]}}, "unknown field `lastt`"),
        ({"retention": {"schedule": "often"}}, "the retention of the server is not valid: /schedule"),
        ({"webhooks": [{**hook, "url": "notaurl"}]}, "address of webhook chat cannot be used: it does not begin with"),
        ({"webhooks": [{**hook, "events": ["nope"]}]}, "there is no event 'nope'"),
        ({"webhooks": [{**hook, "events": []}]}, "length >= 1"),
        ({"webhooks": [{**hook, "format": "xml"}]}, "Invalid enum value 'xml'"),
    ):
        path.write_text(json.dumps({"repositories": [good], **more}))
        assert sentence in admin.refused(2, "repo", "apply", "-f", path, "--dry-run")
    assert admin.json("repo", "list", "-q", "main/good") == []
    assert "No such file" in admin.refused(1, "repo", "apply", "-f", admin.folder / "none.toml")


def test_storages_are_managed(admin, tmp_path):
    admin("storage", "create", "second", "--path", tmp_path / "second", "--no-readable-layout")
    rows = admin("storage", "list").splitlines()
    assert rows[0].split()[:2] == ["STORAGE", "BLOBS"]
    assert {"main", "second"} <= {row.split()[0] for row in rows[1:]}
    assert admin.json("storage", "show", "second")["settings"]["path"] == str(tmp_path / "second")
    admin("storage", "edit", "second", "--rename", "third", "--inactive")
    assert "active" in admin("storage", "show", "third")
    admin("storage", "edit", "third", "--active")
    assert admin("storage", "check", "third").startswith("third works: ")
    assert "is used by" in admin.refused(5, "storage", "delete", "main", "--yes")
    assert admin("storage", "delete", "third", "--yes") == "removed storage third\n"
    assert "does not exist" in admin.refused(3, "storage", "show", "third")


def test_a_storage_in_a_bucket_is_managed_and_its_secret_is_typed(admin, tmp_path):
    with s3_server() as s3:
        place = ["--endpoint", s3.endpoint, "--bucket", BUCKET, "--access-key-id", KEY.id]
        assert "--type S3" in admin.refused(
            2, "storage", "create", "cloud", *place, "--secret-file", "-", told=KEY.secret
        )
        wrong = admin.refused(
            2, "storage", "create", "cloud", "--type", "S3", *place, "--secret-file", "-", told="wrong"
        )
        assert "SignatureDoesNotMatch" in wrong
        assert "holds no secret" in admin.refused(2, "storage", "create", "cloud", *place, "--secret-file", "-")
        typed = admin.run(
            "storage", "create", "cloud", "--type", "S3", *place, "--prefix", "cli", told=f"{KEY.secret}\n"
        )
        assert typed.returncode == 0, typed
        assert f"storage cloud is at {s3.endpoint}/{BUCKET}/cli/" in typed.stdout
        assert KEY.secret not in typed.stdout + typed.stderr
        missing = admin.refused(2, "storage", "edit", "cloud", "--bucket-ca-file", tmp_path / "missing.pem")
        assert "no readable file of certificates" in missing
        assert admin("storage", "check", "cloud").startswith("cloud works: ")
        secret = tmp_path / "secret"
        secret.write_text("wrong\n")
        refused = admin.refused(2, "storage", "edit", "cloud", "--access-key-id", KEY.id, "--secret-file", secret)
        assert "SignatureDoesNotMatch" in refused
        secret.write_text(KEY.secret)
        admin("storage", "edit", "cloud", "--access-key-id", KEY.id, "--secret-file", secret)
        assert "cannot change" in admin.refused(5, "storage", "edit", "cloud", "--bucket", "another")
        admin("storage", "delete", "cloud", "--yes")


def test_the_commands_on_the_data_folder_are_still_there(admin):
    assert "there is no catalog" in admin.refused(3, "--set", "data.dir=none", "storage", "adopt", "main")
    assert "there is no catalog" in admin.refused(3, "--set", "data.dir=none", "gc", "--dry-run")
    assert "Remove stored bytes" in admin("gc", "--help")


def test_stored_bytes_are_verified_by_the_server(admin):
    assert "0 missing, 0 damaged" in admin("repo", "verify", "main/py")
    found = admin.json("repo", "verify", "main/images")
    assert (found["missing"], found["damaged"], found["errors"]) == (0, 0, [])
    assert admin.json("jobs", "list", "--kind", "verify", "--limit", "1")[0]["repository"] == "main/images"


def test_garbage_is_collected_by_the_server(admin):
    assert admin("repo", "gc", "main/images", "--dry-run").startswith("would remove 0 of ")
    assert admin.json("repo", "gc", "main/images", "--grace", "0")["state"] == "done"
    job = admin.json("repo", "gc", "main/images")["job_id"]
    assert admin.json("jobs", "show", job, "--wait")["state"] == "done"
    assert admin.json("jobs", "list", "--kind", "gc", "--limit", "1")[0]["id"] == job
    assert job in admin("jobs", "list")
    assert admin.refused(5, "jobs", "cancel", job).startswith("pkgrepo: ")
    assert "nothing there has the name" in admin.refused(3, "jobs", "show", "nothing")
    assert "does not exist" in admin.refused(3, "repo", "gc", "main/none")


def test_rules_of_retention_are_set_when_what_would_go_was_seen(admin):
    admin("repo", "create", "main/old", "--format", "raw")
    for version in ("1.0", "1.1", "1.2"):
        file = admin.folder / f"tool-{version}.txt"
        file.write_text(version)
        admin("upload", "main/old", file, "--path", f"tool/{version}/tool.txt")
    assert "1.0" in admin("retention", "preview", "main/old", "--last", "2")
    asked = admin.run("retention", "set", "main/old", "--last", "2", told="n\n")
    assert asked.returncode == 1
    assert "1 of 3 would go" in asked.stderr
    assert admin.json("retention", "show", "main/old") is None
    assert "nothing would go" in admin.run("retention", "preview", "main/old", "--last", "3").stderr
    assert "has 1 rule" in admin("retention", "set", "main/old", "--last", "3")
    assert "has 1 rule" in admin("retention", "set", "main/old", "--last", "2", told="y\n")
    assert "has 1 rule" in admin("retention", "set", "main/old", "--last", "1", "--yes")
    assert "give a file" in admin.refused(2, "retention", "set", "main/old")
    assert "give a file" in admin.refused(2, "retention", "set", "main/old", "--last", "1", "--off")
    admin("repo", "delete", "main/old", "--yes", "--purge")
