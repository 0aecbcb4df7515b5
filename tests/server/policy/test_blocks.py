"""Blocks and rules in documents and for files, hosted, proxied and through virtual repositories, in each format."""

from __future__ import annotations

import gzip
import hashlib
from typing import Any

import pytest

from pkgrepo.formats.rubygems.legacy import read_rows
from tests.support.format_cases import CASES
from tests.support.format_repositories import AUTH, KINDS, World, settings
from tests.support.http_client import HttpClient
from tests.support.npm_packages import make_publish
from tests.support.python_packages import make_wheel
from tests.support.timeouts import polled
from tests.support.upload_forms import twine

pytestmark = pytest.mark.server


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("format", CASES)
def test_a_block_holds_at_once_in_documents_and_on_files(world: World, format: str, kind: str) -> None:
    case, client = CASES[format], world.at(f"{format}-{kind}")
    document = case.documents[0]
    before = client.get(document)
    assert case.shown in before.body
    for path in (case.files[0], *case.beside):
        assert client.get(path).status == 200, path  # also kept, and in the cache of responses
        client.get(path)
    etag = before.headers["etag"]
    uid = world.block(f"{format}-{kind}", case.name, versions=case.version)
    try:
        after = client.get(document, If_None_Match=etag)
        assert (after.status, case.shown in after.body) == (200, False)
        assert after.headers["etag"] != etag
        for path in (case.files[0], *case.beside):
            for method, fields in (("GET", {}), ("HEAD", {}), ("GET", {"Range": "bytes=0-1"})):
                refused = client.ask(method, path, headers=fields)
                assert refused.status == 403, (method, path)
            assert b"malware" in client.get(path).body, path
        assert client.get(case.older).status == 200
    finally:
        world.unblock(uid)
    assert case.shown in client.get(document).body
    assert client.get(case.files[0]).status == 200


@pytest.mark.parametrize("format", CASES)
def test_a_block_of_a_member_holds_through_virtual_repositories(world: World, format: str) -> None:
    case = CASES[format]
    uid = world.block(f"{format}-mirror", f"{case.name}@{case.version}")
    try:
        client = world.at(f"{format}-all")
        assert case.shown not in client.get(case.documents[0]).body
        refused = client.get(case.files[0])
        assert (refused.status, f"main/{format}-mirror" in refused.text) == (403, False)
        assert case.shown in world.at(f"{format}-own").get(case.documents[0]).body
    finally:
        world.unblock(uid)


@pytest.mark.parametrize("kind", ["own", "mirror"])
@pytest.mark.parametrize("format", CASES)
def test_a_digest_is_blocked(world: World, format: str, kind: str) -> None:
    path = CASES[format].files[0]
    digest = hashlib.sha256(world.at(f"{format}-own").get(path).body).hexdigest()
    uid = world.block(f"{format}-{kind}", "", digests=[f"sha256:{digest}"])
    try:
        client = world.at(f"{format}-{kind}")
        assert client.get(path).status == 403
        assert client.get(CASES[format].older).status == 200
    finally:
        world.unblock(uid)


@pytest.mark.parametrize("algorithm", ["sha512", "md5"])
@pytest.mark.parametrize("kind", ["hosted", "around", "cold", "kept", "joined"])
@pytest.mark.parametrize("format", CASES)
def test_a_digest_that_nothing_tells_is_blocked(world: World, format: str, kind: str, algorithm: str) -> None:
    case, hosted, name = CASES[format], f"{format}-{kind}-{algorithm}", f"demo{kind}{algorithm}"
    versions = ("1.0.0", "1.1.0")
    world.add(format, hosted, {"type": "Hosted"})
    for each in versions:
        case.put_by(world.at(hosted), name, each)  # a package of its own, of whose files nothing was read yet
    asked = hosted
    if kind in ("cold", "kept", "joined"):
        asked = f"{hosted}-mirror"
        route = {"url": f"{world.url}/repositories/main/{hosted}{case.upstream}", "name": "up"}
        world.add(format, asked, {"type": "Proxy", "proxy": {"routes": [route]}, "cache_ttl": "1d"})
    if kind in ("around", "joined"):
        world.add(format, f"{hosted}-all", {"type": "Virtual", "members": [f"main/{asked}"]})
        asked = f"{hosted}-all"
    older, path = (case.file_of(name, each) for each in versions)
    client, document, listed = world.at(asked), case.document_of(name), case.listing(name, versions[1])
    if kind != "cold":
        assert client.get(path).status == 200
        assert listed in client.get(document).body
    digest = hashlib.new(algorithm, world.at(hosted).get(path).body).hexdigest()
    uid = world.block(asked, "", digests=[f"{algorithm}:{digest}"])
    for method, fields in (("HEAD", {}), ("GET", {"Range": "bytes=0-1"}), ("GET", {}), ("GET", {})):
        assert client.ask(method, path, headers=fields).status == 403, (method, fields)
    assert client.get(older).status == 200
    if format != "maven":  # whose documents list versions, which have further files
        assert listed not in client.get(document).body
    world.unblock(uid)
    assert client.get(path).status == 200
    assert listed in client.get(document).body


@pytest.mark.parametrize("kind", KINDS)
def test_the_latest_version_of_npm_is_the_highest_that_is_left(world: World, kind: str) -> None:
    client = world.at(f"npm-{kind}")
    uid = world.block(f"npm-{kind}", "demo", versions=">=1.1,<1.2")
    try:
        assert client.get("/demo").json["dist-tags"] == {"latest": "1.0.0", "next": "2.0.0-rc.1"}
        assert client.get("/demo/latest").json["version"] == "1.0.0"
        assert client.get("/demo/1.1.0").status == 403
    finally:
        world.unblock(uid)


def rule(**fields: Any) -> dict[str, Any]:
    return {"name": "no", "reason": "because", **fields}


@pytest.mark.parametrize("kind", ["own", "mirror", "all"])
@pytest.mark.parametrize("format", CASES)
def test_rules_of_a_repository_hold_and_are_explained(world: World, format: str, kind: str) -> None:
    case, name = CASES[format], f"{format}-{kind}"
    world.set_rules(name, rule(match={"packages": [case.name], "versions": f"=={case.version}"}))
    try:
        client = world.at(name)
        assert case.shown not in client.get(case.documents[0]).body
        assert f"'no' of main/{name}" in client.get(case.files[0]).text
        query = f"/explain?repository=main/{name}&package={case.name}&version={case.version}"
        found = world.ok("GET", query)
        assert found["outcome"] == "blocked"
        assert "'no'" in found["sentence"]
    finally:
        world.set_rules(name)
    assert client.get(case.files[0]).status == 200


def test_the_server_has_rules_too(world: World) -> None:
    for each in CASES:  # whose upstream is a hosted repository of this server
        assert world.at(f"{each}-mirror").get(CASES[each].older).status == 200, each
    rules = [rule(match={"packages": ["demo", "com.example:*", "example.com/*"], "source": "hosted"})]
    world.ok("PUT", "/policy/rules", {"rules": rules})
    try:
        for each in CASES:
            refused = world.at(f"{each}-own").get(CASES[each].files[0])
            assert (refused.status, "a system manager can lift" in refused.text) == (403, True), each
            assert world.at(f"{each}-all").get(CASES[each].older).status == 200, each
        counts = world.ok("GET", "/policy/rules")["counts"]
        assert [each["rule"] for each in counts] == ["no"]
    finally:
        world.ok("PUT", "/policy/rules", {"rules": []})


@pytest.mark.parametrize("format", CASES)
def test_what_is_in_quarantine_is_served_when_it_was_approved(world: World, format: str) -> None:
    case, name = CASES[format], f"{format}-mirror"
    world.set_rules(name, rule(action="quarantine", match={"packages": [case.name], "versions": case.version}))
    try:
        client = world.at(name)
        assert client.get(case.files[0]).status == 403
        assert case.shown not in client.get(case.documents[0]).body
        waiting = until_listed(world, case.name, name)
        path = f"/policy/quarantine/{waiting['id']}"
        assert world.ok("POST", f"{path}/approve", {"reason": "looked at"})["state"] == "approved"
        assert client.get(case.files[0]).status == 200
        assert case.shown in client.get(case.documents[0]).body
        world.ok("POST", f"{path}/deny", {"reason": "bad"})
        assert "denied after a quarantine: bad" in client.get(case.files[0]).text
        world.ok("POST", f"{path}/approve", {})
    finally:
        world.set_rules(name)


def until_listed(world: World, package: str, repository: str) -> Any:
    """Wait until a version is listed: it is noted with the next batch."""

    def listed() -> Any:
        for each in world.ok("GET", "/policy/quarantine")["items"]:
            if (each["package"], each["repository"]) == (package, f"main/{repository}"):
                return each
        return None

    return polled(listed)


def test_who_may_block(world: World) -> None:
    api = world.api
    assert api.post_json("/policy/blocks", {"repository": "main/nothing", "package": "x"}).status == 404
    assert api.post_json("/policy/blocks", {"repository": "main/npm-own"}).status == 422
    assert api.post_json("/policy/blocks", {"repository": "main/npm-own", "package": "x@>=1 y"}).status == 422
    assert api.delete("/policy/blocks/none").status == 404
    anyone = world.at("npm-own")
    assert anyone.get("/demo").status == 200


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("format", "path", "hidden"),
    [
        ("npm", "/-/package/demo/dist-tags", "1.1.0"),
        ("python", "/pypi/demo/json", "demo-1.1-"),
        ("ruby", "/api/v1/versions/demo.json", "1.1.0"),
        ("conda", "/noarch/current_repodata.json", "demo-1.1-"),
        ("conda", "/noarch/run_exports.json", "demo-1.1-"),
        ("conda", "/channeldata.json", '"version":"1.1"'),
    ],
)
def test_other_documents_show_nothing_of_it(world: World, format: str, path: str, hidden: str, kind: str) -> None:
    case, client = CASES[format], world.at(f"{format}-{kind}")
    assert hidden in client.get(path).text
    uid = world.block(f"{format}-{kind}", case.name, versions=case.version)
    try:
        found = client.get(path)
        assert (found.status, hidden in found.text) == (200, False)
    finally:
        world.unblock(uid)


@pytest.mark.parametrize("kind", KINDS)
def test_npm_is_told_which_rule_hides_all_versions(world: World, kind: str) -> None:
    """Else it prints that there are none, and others that the package may be unpublished."""
    client = world.at(f"npm-{kind}")
    uid = world.block(f"npm-{kind}", "demo")
    try:
        for path in ("/demo", "/demo", "/demo/1.1.0", "/demo?write=true", "/demo"):
            found = client.get(path)
            if "write" in path:  # npm can still unpublish what is stored, of which a publisher sees all
                assert (found.status, "1.1.0" in found.json["versions"]) == (200, kind == "own")
            else:
                assert found.status == 403
                of = "demo 1.1.0" if "1.1" in path else "every version of demo is hidden: 2.0.0-rc.1"
                assert f"{of} is blocked by a block" in found.json["error"]
                assert found.reason == found.json["error"]  # which pnpm and yarn 4 print; npm prints both
                assert client.get(path, User_Agent="npm/11.0.0 node/v22").reason == "Forbidden"
    finally:
        world.unblock(uid)
    assert "1.1.0" in client.get("/demo").json["versions"]


@pytest.mark.parametrize("kind", KINDS)
def test_folders_of_java_show_nothing_of_a_hidden_version(world: World, kind: str) -> None:
    client = world.at(f"maven-{kind}")
    for version in ("1.0", "1.1"):
        assert client.get(f"/com/example/demo/{version}/demo-{version}.jar").status == 200
        while f"demo-{version}.jar" not in client.get(f"/com/example/demo/{version}/").text:
            pass  # a proxy lists what it has kept
    uid = world.block(f"maven-{kind}", "com.example:demo", versions="1.1")
    try:
        names = [each["name"] for each in client.get("/com/example/demo/", accept="application/json").json["entries"]]
        assert ("1.0" in names, "1.1" in names) == (True, False)
        found = client.get("/com/example/demo/1.1/")
        assert (found.status, "malware" in found.text) == (403, True)
        assert "demo-1.0.jar" in client.get("/com/example/demo/1.0/").text
    finally:
        world.unblock(uid)


@pytest.mark.parametrize("kind", KINDS)
def test_data_of_a_channel_name_the_highest_version_that_is_left(world: World, kind: str) -> None:
    """Of what an upstream has they name none: its own data tell only of the highest one."""
    client = world.at(f"conda-{kind}")
    uid = world.block(f"conda-{kind}", "demo", versions="1.1")
    try:
        found = client.get("/channeldata.json").json["packages"]["demo"]
        assert (found.get("version"), found["subdirs"]) == ("1.0" if kind in ("own", "around") else None, ["noarch"])
    finally:
        world.unblock(uid)


def test_aliases_stages_and_promotion_are_no_way_around(world: World) -> None:
    world.ok("PUT", "/system/hosts", {"hosts": {}, "aliases": {"/py": "main/python-own"}})
    world.ok("POST", "/repository", settings("python", "released", {"type": "Hosted"}), 201)
    stage = world.ok("POST", "/repository/main%2Fpython-own/stages", {"description": ""}, 201)
    file = CASES["python"].files[0]
    alias, staged = HttpClient(f"{world.url}/py", AUTH), HttpClient(stage["url"], AUTH)
    assert [each.get(file).status for each in (alias, staged)] == [200, 200]
    uid = world.block("python-own", "demo", versions="1.1")
    try:
        assert [each.get(file).status for each in (alias, staged)] == [403, 403]
        assert b"demo-1.1-" not in alias.get("/simple/demo/").body + staged.get("/simple/demo/").body
        path = "/package/main%2Fpython-own/demo/versions/1.1/promote"
        refused = world.api.post_json(path, {"to": "main/released"})
        assert (refused.status, "malware" in refused.text) == (403, True)
        found = world.at("python-own").get("/demo/1.1/")
        assert found.status in (403, 404)
    finally:
        world.unblock(uid)
        world.ok("PUT", "/system/hosts", {"hosts": {}, "aliases": {}})
    assert staged.get(file).status == 200


def test_matches_are_counted_and_warned_of(world: World) -> None:
    world.set_rules("npm-around", rule(name="look at it", action="warn", match={"packages": ["demo"]}))
    try:
        client = world.at("npm-around")
        for _ in range(3):
            assert client.get(CASES["npm"].older).status == 200
        assert CASES["npm"].shown in client.get("/demo").body
        counts = polled(
            lambda: [
                each["count"]
                for each in world.ok("GET", "/policy/counts")
                if each["rule"] == "look at it" and each["count"] >= 3
            ]
        )
        assert counts == [3]
        text = HttpClient(world.url, AUTH).get("/metrics").text
        assert 'pkgrepo_policy_matches_total{owner="main/npm-around",rule="look at it"} 3.0' in text
    finally:
        world.set_rules("npm-around")


@pytest.mark.parametrize("format", ["npm", "python", "maven"])
def test_a_digest_that_no_document_announces_is_refused_at_the_first_request(world: World, format: str) -> None:
    own, mirror = world.at(f"{format}-own"), world.at(f"{format}-mirror")
    if format == "npm":
        path = "/fresh/-/fresh-1.0.0.tgz"
        sent = own.put("/fresh", make_publish("fresh", "1.0.0"), Content_Type="application/json")
    elif format == "python":
        filename, data = make_wheel("fresh", "1.0")
        path = f"/packages/fresh/1.0/{filename}"
        sent = own.post_form("/", twine("fresh", "1.0", filename, data))
    else:
        path = "/com/example/fresh/1.0/fresh-1.0.jar"
        sent = own.put(path, b"PK fresh")
    assert sent.status in (200, 201), sent.text
    digest = hashlib.sha512(own.get(path).body).hexdigest()
    uid = world.block(f"{format}-mirror", "", digests=[f"sha512:{digest}"])
    other = hashlib.sha256(own.get(path).body).hexdigest()
    second = world.block(f"{format}-mirror", "", digests=[f"sha256:{other}"])
    try:
        for method in ("GET", "HEAD"):
            assert mirror.ask(method, path).status == 403
    finally:
        world.unblock(uid)
        world.unblock(second)
    assert mirror.get(path).status == 200


def gems_in(world: World, name: str, file: str) -> list[tuple[str, str]]:
    """The gems in a list of the legacy index."""
    return list(read_rows(gzip.decompress(world.at(name).get(f"/{file}.4.8.gz").body)))


@pytest.mark.parametrize("kind", KINDS)
def test_lists_of_all_gems_name_nothing_that_is_hidden(world: World, kind: str) -> None:
    name, client = f"ruby-{kind}", world.at(f"ruby-{kind}")
    both = [("demo", "1.0.0"), ("demo", "1.1.0")]
    before, whole = client.get("/versions").body, hashlib.md5(client.get("/info/demo").body).hexdigest()
    assert (b"1.1.0" in before, gems_in(world, name, "specs"), gems_in(world, name, "latest_specs")) == (
        *(True, both),
        both[1:],
    )
    uid = world.block(name, "demo", versions=">=1.1")
    try:
        for _ in range(2):
            versions = client.get("/versions")
            assert b"1.1.0" not in versions.body
            assert gems_in(world, name, "specs") == gems_in(world, name, "latest_specs") == both[:1]
            assert client.get("/names").body == b"---\ndemo\n"
            assert client.get("/api/v1/search.json?query=demo").status in (200, 404)
        [line] = [each for each in versions.body.splitlines() if each.startswith(b"demo ")]
        md5 = line.rpartition(b" ")[2].decode()
        if kind in ("own", "around"):
            assert md5 == hashlib.md5(client.get("/info/demo").body).hexdigest()
        assert md5 != whole
    finally:
        world.unblock(uid)
    assert client.get("/versions").body == before
    uid = world.block(name, "d*")
    try:
        assert b"demo" not in client.get("/versions").body
        assert client.get("/names").body.strip() == b"---"
        assert gems_in(world, name, "specs") == []
    finally:
        world.unblock(uid)


@pytest.mark.parametrize("kind", KINDS)
def test_searches_show_the_version_of_a_package_that_is_left(world: World, kind: str) -> None:
    client = world.at(f"npm-{kind}")

    def found() -> list[str]:
        results = client.get("/-/v1/search?text=demo").json
        shown = [each["package"]["version"] for each in results["objects"] if each["package"]["name"] == "demo"]
        assert results["total"] >= len(shown)
        return shown

    client.get("/demo/-/demo-1.0.0.tgz")
    client.get("/demo/-/demo-1.1.0.tgz")  # what a proxy has kept
    assert found() == ["1.1.0"]
    uid = world.block(f"npm-{kind}", "demo", versions="1.1.0")
    try:
        assert found() == ["1.0.0"]
    finally:
        world.unblock(uid)
    uid = world.block(f"npm-{kind}", "demo")
    try:
        assert found() == []
    finally:
        world.unblock(uid)


def test_the_list_of_all_packages_of_npm_shows_the_version_that_is_left(world: World) -> None:
    client = world.at("npm-own")
    assert list(client.get("/-/all").json["demo"]["versions"]) == ["1.1.0"]
    uid = world.block("npm-own", "demo", versions="1.1.0")
    try:
        assert list(client.get("/-/all").json["demo"]["versions"]) == ["1.0.0"]
    finally:
        world.unblock(uid)
    uid = world.block("npm-own", "demo")
    try:
        assert "demo" not in client.get("/-/all").json
    finally:
        world.unblock(uid)


def test_searches_for_gems_show_the_version_that_is_left(world: World) -> None:
    def found() -> list[str]:
        return [each["version"] for each in world.at("ruby-own").get("/api/v1/search.json?query=demo").json]

    assert found() == ["1.1.0"]
    for versions, left in ((">=1.1", ["1.0.0"]), ("", [])):
        uid = world.block("ruby-own", "demo", versions=versions)
        try:
            assert found() == left
        finally:
            world.unblock(uid)
