"""What every format has, written once: published, read, kept, found, refused, taken in and shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from pkgrepo.composition.core import make_formats
from pkgrepo.config import Config
from tests.support.forked_programs import run_pkgrepo
from tests.support.format_cases.case import Case
from tests.support.format_repositories import AUTH, KINDS, World
from tests.support.http_client import HttpClient
from tests.support.imports import counts, take, write
from tests.support.server_process import clean_environment
from tests.support.timeouts import polled

pytestmark = pytest.mark.server


@pytest.mark.parametrize("kind", KINDS)
def test_clients_read_what_was_published(world: World, case: Case, kind: str) -> None:
    client, own = world.at(f"{case.format}-{kind}"), world.at(f"{case.format}-own")
    document = client.get(case.documents[0])
    assert (document.status, case.shown in document.body) == (200, True)
    for path in (*case.files, case.older):
        assert client.get(path).body == own.get(path).body
        assert client.get(path, Range="bytes=1-2").body == own.get(path).body[1:3]
    assert client.get(case.file_of("demo", "9.9.9")).status == 404
    assert client.get(case.file_of("absent", "1.0.0")).status == 404


def test_a_publish_through_a_virtual_repository_goes_to_its_target(world: World, case: Case) -> None:
    own, through = f"{case.format}-target", f"{case.format}-through"
    world.add(case.format, own, {"type": "Hosted"})
    world.add(case.format, through, {"type": "Virtual", "members": [f"main/{own}"], "publish_to": f"main/{own}"})
    case.put_by(world.at(through), "demo", case.version)
    for name in (own, through):
        assert world.at(name).get(case.files[0]).status == 200, name
    assert case.replies(world.at(f"{case.format}-around"), "demo", "3.0.0")[-1].status == 405


def test_a_token_for_one_package_opens_no_other_one(world: World, case: Case) -> None:
    name = f"{case.format}-closed"
    world.add(case.format, name, {"type": "Hosted"}, visibility="private")
    admin = world.at(name)
    for each in ("demo", "other"):
        case.put_by(admin, each, case.versions[0])
    opened = [{"repository": f"main/{name}", "actions": ["read", "write"], "packages": [case.name]}]
    token = world.ok("POST", "/user/token", {"name": name, "scopes": [], "repositories": opened}, 201)["token"]
    client = admin.as_user("__token__", token)
    assert client.get(case.older).status == 200
    assert client.get(case.file_of("other", case.versions[0])).status in (401, 403, 404)
    assert admin.as_user().get(case.older).status == 401
    assert case.replies(client, "demo", case.version)[-1].status in (200, 201)
    assert case.replies(client, "other", case.version)[-1].status in (401, 403)
    assert admin.get(case.file_of("other", case.version)).status == 404


def test_retention_keeps_the_newest_and_the_trash_has_the_rest(world: World, case: Case) -> None:
    name = f"{case.format}-kept"
    world.add(case.format, name, {"type": "Hosted", "retention": {"rules": [{"name": "few", "keep": {"last": 1}}]}})
    client = world.at(name)
    for version in case.versions:
        case.put_by(client, "demo", version)
    world.ok("POST", f"/repository/main%2F{name}/retention?wait=true&confirm=true", {})
    assert client.get(case.older).status in (404, 410)
    assert client.get(case.files[0]).status == 200
    (entry,) = [each for each in world.ok("GET", "/trash")["items"] if each["repository"] == f"main/{name}"]
    world.ok("POST", f"/trash/{entry['id']}/restore", {})
    assert client.get(case.older).status == 200


def test_a_quota_refuses_what_is_more(world: World, case: Case) -> None:
    name = f"{case.format}-small"
    world.add(case.format, name, {"type": "Hosted"})
    client = world.at(name)
    world.ok("PATCH", f"/repository/main%2F{name}/quota", {"packages": 1})
    case.put_by(client, "demo", case.versions[0])
    refused = case.replies(client, "other", case.versions[0])[-1]
    assert (refused.status in (403, 507), "quota" in refused.text) == (True, True), refused
    case.put_by(client, "demo", case.version)


@pytest.mark.parametrize("kind", ["own", "mirror"])
def test_what_is_younger_than_a_rule_allows_is_not_there(world: World, case: Case, kind: str) -> None:
    name = f"{case.format}-{kind}"
    client = world.at(name)
    world.set_rules(name, {"name": "young", "reason": "wait", "match": {"age_days": 7}})
    try:
        assert case.shown not in client.get(case.documents[0]).body
        refused = client.get(case.files[0])
        assert (refused.status, "young" in refused.text) == (403, True)
    finally:
        world.set_rules(name)
    assert case.shown in client.get(case.documents[0]).body


def test_a_lock_file_is_mirrored(world: World, case: Case) -> None:
    name = f"{case.format}-locked"
    world.add(case.format, name, {"type": "Proxy", "proxy": {"routes": [world.route(case.format)]}})
    data = world.at(f"{case.format}-own").get(case.files[0]).body
    file, text = case.lock("demo", case.version, data)
    path = f"/repository/main%2F{name}/mirror?wait=300"
    first = world.ok("POST", path, {"locks": [{"name": file, "text": text}]})
    assert (first["problems"], first["present"], first["fetched"] > 0) == ([], 0, True)
    again = world.ok("POST", path, {"locks": [{"name": file, "text": text}]})
    assert (again["problems"], again["fetched"], again["present"]) == ([], 0, first["fetched"])
    other = world.ok(
        "POST", path, {"locks": [dict(zip(("name", "text"), case.lock("demo", "9.9.9", data), strict=True))]}
    )
    assert [each["kind"] for each in other["problems"]] == ["not_found"]


def test_an_import_takes_a_folder_and_an_address(world: World, case: Case) -> None:
    own, kind = world.at(f"{case.format}-own"), make_formats(Config())[case.format].imported.kind
    files = {path[1:]: own.get(path).body for path in (case.older, *case.files)}
    folder = write(world.imports / case.format, files)
    more: dict[str, Any] = {"names": [case.name]}
    for source, options in ((folder, {}), (world.route(case.format)["url"].rstrip("/"), more)):
        name = f"{case.format}-from-{'folder' if source is folder else 'address'}"
        world.add(case.format, name, {"type": "Hosted"})
        result = take(HttpClient(world.url, AUTH), kind, source, f"main/{name}", **options)
        assert (result["left_out"], result["files"] >= len(files)) == ([], True)
        client = world.at(name)
        for path, data in files.items():
            assert client.get(f"/{path}").body == data
        assert case.shown in client.get(case.documents[0]).body
        again = take(HttpClient(world.url, AUTH), kind, source, f"main/{name}", **options)
        assert counts(again)[0] == 0


def test_it_is_found_explained_and_shown_by_a_badge(world: World, case: Case) -> None:
    own = f"{case.format}-own"
    found = world.ok("GET", f"/search/packages?q=demo&repository=main/{own}")["items"]
    assert case.name in [each["name"] for each in found]
    for kind in KINDS:
        query = f"repository=main/{case.format}-{kind}&package={quote(case.name)}&version={case.version}"
        assert world.ok("GET", f"/explain?{query}")["outcome"] == "served", kind
    badge = HttpClient(world.url).get(f"/badge/main/{own}/{quote(case.name)}.svg")
    assert (badge.status, (case.newest or case.version) in badge.text) == (200, True)


def test_a_recall_names_who_fetched_it(world: World, case: Case) -> None:
    name = f"{case.format}-fetched"
    world.add(case.format, name, {"type": "Hosted"})
    client = world.at(name)
    case.put_by(client, "demo", case.version)
    client.get(case.files[0])
    query = f"repository=main/{name}&package={quote(case.name)}&version={case.version}"
    items = polled(lambda: world.ok("GET", f"/recall?{query}")["items"])
    assert [each["user"] for each in items] == ["admin"]


def test_set_up_lines_have_its_address(world: World, case: Case) -> None:
    lines = world.ok("GET", f"/repository/main%2F{case.format}-own/setup")
    assert any(f"/repositories/main/{case.format}-own" in each["text"] for each in lines)
    query = f"package={quote(case.name)}&version={case.version}"
    assert world.ok("GET", f"/repository/main%2F{case.format}-own/setup?{query}")


def test_the_console_has_its_pages(world: World, case: Case) -> None:
    console = HttpClient(f"{world.url}/ui/repositories/main/{case.format}-own", AUTH)
    package = f"/packages/{quote(case.name, safe='')}"
    for path in ("", package, f"{package}/versions", f"{package}/versions/{case.version}"):
        page = console.get(path)
        assert (page.status, case.name in page.text, f"#f-{case.format}" in page.text) == (200, True, True), path
    assert console.get(f"{package}/versions/{case.version}/files").status == 200


def test_a_form_and_the_command_publish_a_file(world: World, case: Case, tmp_path: Path) -> None:
    name = f"{case.format}-sent"
    world.add(case.format, name, {"type": "Hosted"})
    client = world.at(name)
    file, data, fields = case.sent("demo", case.versions[0])
    sent = world.api.post_form(f"/repository/main%2F{name}/upload", [*fields.items(), ("file", file, data)])
    assert sent.status in (200, 201), sent.text
    assert client.get(case.older).body == data
    file, data, fields = case.sent("demo", case.version)
    (tmp_path / file).write_bytes(data)
    opened = [{"repository": f"main/{name}", "actions": ["read", "write"]}]
    made = world.ok("POST", "/user/token", {"name": name, "scopes": [], "repositories": opened}, 201)
    (tmp_path / "token").write_text(made["token"])
    options = ["--path", fields["path"]] if "path" in fields else []
    command = ["upload", f"main/{name}", file, *options, "--url", world.url, "--token-file", "token", "--json"]
    done = run_pkgrepo(*command, environ=clean_environment(), folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [each["verified"] for each in json.loads(done.stdout)] == [True]
    assert client.get(case.files[0]).body == data
