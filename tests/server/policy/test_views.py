"""Views of the past, ``/repositories/main/npm@2026-09-01/...``: documents, files, tags, refusals and explanations."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support import dated
from tests.support.dated import NAME, VERSIONS, now_exactly
from tests.support.format_cases import CASES
from tests.support.format_repositories import AUTH, World, settings
from tests.support.http_client import HttpClient
from tests.support.maven_files import make_pom
from tests.support.timeouts import polled

pytestmark = pytest.mark.server

KINDS = (*dated.KINDS, "around")
# Formats whose documents have the address of the view, or an ETag of it.
ADDRESSED = ("npm", "python")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("format", CASES)
def test_documents_show_what_was_there(world: World, times: Mapping[str, str], format: str, kind: str) -> None:
    case = CASES[format]
    path, (old, new) = case.document_of(NAME), [case.listing(NAME, each) for each in VERSIONS]
    live = world.at(f"{format}-{kind}").get(path)
    assert (old in live.body, new in live.body) == (True, True)
    for name, expected in (("between", (True, False)), ("after", (True, True))):
        client = world.at(f"{format}-{kind}@{times[name]}")
        found = client.get(path)
        assert (found.status, old in found.body, new in found.body) == (200, *expected), name
        # That of gems has to be the MD5 of the text, for Bundler, and that of metadata the SHA-1, for Maven.
        assert found.headers["etag"] != live.headers["etag"] or format not in ADDRESSED
        assert "immutable" not in found.headers["cache-control"]  # the day is not over
        again = client.get(path, If_None_Match=found.headers["etag"])
        assert again.status == 304
        assert client.get(CASES[format].file_of(NAME, "1.1.0")).status == 200  # as a lock file may ask
    nothing = 404 if "{name}" in case.document else 200
    for before in (times["before"], "2020-02-29"):
        empty = world.at(f"{format}-{kind}@{before}").get(path)
        assert (empty.status, old in empty.body, new in empty.body) == (nothing, False, False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("format", CASES)
def test_a_block_is_a_block_in_the_past_too(world: World, times: Mapping[str, str], format: str, kind: str) -> None:
    client = world.at(f"{format}-{kind}@{times['after']}")
    case = CASES[format]
    document, newer = case.document_of(NAME), case.listing(NAME, "1.1.0")
    assert newer in client.get(document).body
    uid = world.block(f"{format}-{kind}", case.named(NAME), versions="1.1.0")
    try:
        assert newer not in client.get(document).body
        assert client.get(CASES[format].file_of(NAME, "1.1.0")).status == 403
    finally:
        world.unblock(uid)
    assert newer in client.get(document).body


@pytest.mark.parametrize(
    "text", ["yesterday", "2026-13-01", "2026-02-30T10:00Z", "", "2026-01-01@2026-01-01", "9999-12-31"]
)
def test_what_is_no_date_of_the_past_is_refused_with_a_sentence(world: World, text: str) -> None:
    for name in ("npm-own", "nothing"):
        for auth in (AUTH, None):
            found = HttpClient(f"{world.url}/repositories/main/{name}@{text}", auth).get("/demo")
            assert found.status == 400
            assert "no date such as 2026-09-01" in found.text or "in the future" in found.text


def test_views_are_as_private_as_their_repository(world: World) -> None:
    world.ok("POST", "/repository", {**settings("npm", "secret", {"type": "Hosted"}), "visibility": "private"}, 201)
    CASES["npm"].put_by(world.at("secret"), "hidden", "1.0.0")
    for name in ("secret@2026-09-01", "nothing@2026-09-01", "nothing"):
        refused = HttpClient(f"{world.url}/repositories/main/{name}", None).get("/hidden")
        assert refused.status == 401
    today = now_exactly()[:10]
    found = world.at(f"secret@{today}").get("/hidden")
    assert (found.status, found.headers["cache-control"]) == (200, "private, no-cache")


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_published_or_changed_at_the_address_of_a_view(
    world: World, times: Mapping[str, str], kind: str
) -> None:
    npm, python = (world.at(f"{each}-{kind}@{times['after']}") for each in ("npm", "python"))
    sent = [
        npm.ask("PUT", "/more", b"{}", {"Content-Type": "application/json"}),
        npm.ask("PUT", f"/-/package/{NAME}/dist-tags/beta", b'"1.0.0"', {"Content-Type": "application/json"}),
        npm.ask("DELETE", f"/-/package/{NAME}/dist-tags/latest"),
        npm.ask("DELETE", f"/{NAME}/-rev/1-x"),
        python.ask("POST", "/", b"x", {"Content-Type": "multipart/form-data; boundary=x"}),
        python.ask("PUT", f"/{NAME}/1.2/{NAME}-1.2-py3-none-any.whl", b"x"),
        python.ask("DELETE", f"/pypi/{NAME}/1.1.0/"),
        python.ask("POST", f"/pypi/{NAME}/1.1.0/yank"),
    ]
    assert [each.status for each in sent] == [405] * len(sent), [each.text for each in sent]
    assert [each.text for each in sent if "use the address of main/" not in each.text] == []


def test_tags_and_states_are_those_of_then(world: World) -> None:
    npm, python = world.at("npm-own"), world.at("python-own")
    CASES["npm"].put_by(npm, "@scope/tagged", "1.0.0")
    CASES["npm"].put_by(npm, "@scope/tagged", "2.0.0-rc.1")
    CASES["python"].put_by(python, "pulled", "1.0")
    first = now_exactly()
    json = {"Content-Type": "application/json"}
    CASES["npm"].put_by(npm, "@scope/tagged", "1.1.0")
    assert npm.ask("PUT", "/-/package/@scope%2ftagged/dist-tags/old", b'"1.0.0"', json).status == 201
    document = npm.get("/@scope%2ftagged?write=true").json
    document["versions"]["1.0.0"]["deprecated"] = "use 1.1.0"
    assert npm.post_json("/@scope%2ftagged", document, "PUT").status == 201
    assert python.ask("POST", "/pypi/pulled/1.0/yank?reason=broken").status == 200
    second = now_exactly()
    for tag in ("old", "next"):
        assert npm.ask("DELETE", f"/-/package/@scope%2ftagged/dist-tags/{tag}").status == 200
    document = npm.get("/@scope%2ftagged?write=true").json
    document["versions"]["1.0.0"]["deprecated"] = ""
    assert npm.post_json("/@scope%2ftagged", document, "PUT").status == 201
    assert python.ask("POST", "/pypi/pulled/1.0/unyank").status == 200

    def seen(name: str) -> tuple[object, object, bool]:
        found = world.at(f"npm-own{name}").get("/@scope/tagged").json
        page = world.at(f"python-own{name}").get("/simple/pulled/").text
        return found["dist-tags"], found["versions"]["1.0.0"].get("deprecated"), "data-yanked" in page

    assert seen(f"@{first}") == ({"latest": "1.0.0", "next": "2.0.0-rc.1"}, None, False)
    then = {"latest": "1.1.0", "next": "2.0.0-rc.1", "old": "1.0.0"}
    assert seen(f"@{second}") == (then, "use 1.1.0", True)
    assert seen("") == ({"latest": "1.1.0"}, None, False)
    view = world.at(f"npm-own@{first}")
    assert view.get("/-/package/@scope%2ftagged/dist-tags").json["latest"] == "1.0.0"
    assert view.get("/@scope%2ftagged/latest").json["version"] == "1.0.0"
    assert view.get("/@scope%2ftagged/1.1.0").status == 404
    tarball = view.get("/@scope/tagged").json["versions"]["1.0.0"]["dist"]["tarball"]
    assert tarball == f"{view.url}/@scope/tagged/-/tagged-1.0.0.tgz"
    listed = world.at(f"python-own@{first}").get("/simple/").text
    assert ("pulled" in listed, "later" in listed) == (True, False)


@pytest.mark.parametrize("accept", ["application/json", "application/vnd.npm.install-v1+json"])
def test_a_document_of_npm_was_modified_by_the_last_change_until_then(
    world: World, times: Mapping[str, str], accept: str
) -> None:
    for kind in KINDS:
        found = world.at(f"npm-{kind}@{times['between']}").get(f"/{NAME}", Accept=accept).json
        assert found["time"].get("modified", found.get("modified")) == found["time"]["1.0.0"], kind
        assert "1.1.0" not in found["time"]


def test_explanations_tell_what_is_hidden_and_what_is_not_known(world: World, times: Mapping[str, str]) -> None:
    query = f"/explain?repository=main/npm-own@{times['between']}&package={NAME}"
    found = world.ok("GET", query)
    assert (found["outcome"], found["latest"]["version"]) == ("served", "1.0.0")
    later = next(each for each in found["steps"] if each["step"] == "later")
    assert [each["version"] for each in later["hidden"]] == ["1.1.0"]
    hidden = world.ok("GET", f"/explain?repository=main/npm-fresh&at={times['between']}&package={NAME}&version=1.1.0")
    assert (hidden["outcome"], hidden["version"]["hidden"]) == ("later", True)
    assert f"was published after {times['between']}" in hidden["sentence"]
    assert "unknown" in [each["step"] for each in hidden["steps"]]
    CASES["npm"].put_by(world.at("npm-own"), "shrunk", "1.0.0")
    CASES["npm"].put_by(world.at("npm-own"), "shrunk", "1.1.0")
    then = now_exactly()
    document = world.at("npm-own").get("/shrunk?write=true").json
    del document["versions"]["1.1.0"]
    assert world.at("npm-own").post_json(f"/shrunk/-rev/{document['_rev']}", document, "PUT").status == 200
    said = world.ok("GET", f"/explain?repository=main/npm-own@{then}&package=shrunk")
    assert "removed since, as their bytes are gone: 1.1.0" in " ".join(each["sentence"] for each in said["steps"])
    assert world.api.get(f"/explain?repository=main/npm-own&package={NAME}&at=soon").status == 422


def test_a_gem_that_was_yanked_then_is_hidden_then(world: World) -> None:
    own = world.at("ruby-own")
    for version in ("1.0.0", "2.0.0"):
        CASES["ruby"].put_by(own, "pulled", version)
    assert own.ask("DELETE", "/api/v1/gems/yank?gem_name=pulled&version=2.0.0").status == 200
    then = now_exactly()
    assert own.ask("PUT", "/api/v1/gems/unyank?gem_name=pulled&version=2.0.0").status == 200
    CASES["ruby"].put_by(own, "pulled", "3.0.0")
    CASES["ruby"].put_by(own, "latecomer", "3.0.0")
    for kind in ("own", "around"):
        view = world.at(f"ruby-{kind}@{then}")
        lines = view.get("/info/pulled").text.splitlines()
        assert [each.split()[0] for each in lines] == ["---", "1.0.0"]
        listed = [each for each in view.get("/versions").text.splitlines() if each.startswith("pulled ")]
        digest = hashlib.md5(view.get("/info/pulled").body).hexdigest()
        assert listed == [f"pulled 1.0.0 {digest}"]
        assert "latecomer" not in view.get("/names").text
        rows = gzip.decompress(view.get("/specs.4.8.gz").body)
        assert (b"pulled" in rows, b"latecomer" in rows, b"2.0.0" in rows) == (True, False, False)
        numbers = [each["number"] for each in view.get("/api/v1/versions/pulled.json").json]
        assert "3.0.0" not in numbers
        assert view.ask("DELETE", "/api/v1/gems/yank?gem_name=pulled&version=1.0.0").status == 405
        assert own.get("/versions").text.count("latecomer") == 1


def test_a_snapshot_tells_what_was_changed_since(world: World) -> None:
    config = {"type": "Hosted", "policy": {"reuse_deleted_names": True}}
    for name, each in (("npm-moving", config), ("npm-over", {"type": "Virtual", "members": ["main/npm-moving"]})):
        world.ok("POST", "/repository", settings("npm", name, each), 201)
    npm = world.at("npm-moving")
    for name, version in (("left", "1.0.0"), ("left", "1.1.0"), ("right", "1.0.0"), ("same", "1.0.0")):
        CASES["npm"].put_by(npm, name, version)
    then = now_exactly()
    path = f"/repository/main%2Fnpm-moving/snapshot?at={then}"
    assert world.ok("GET", path)["items"] == []
    CASES["npm"].put_by(npm, "left", "2.0.0")
    CASES["npm"].put_by(npm, "new", "1.0.0")
    document = npm.get("/left?write=true").json
    del document["versions"]["1.1.0"]
    assert npm.post_json(f"/left/-rev/{document['_rev']}", document, "PUT").status == 200
    document = npm.get("/left?write=true").json
    document["versions"]["1.0.0"]["deprecated"] = "old"
    assert npm.post_json("/left", document, "PUT").status == 201
    document = npm.get("/right?write=true").json
    assert npm.ask("DELETE", f"/right/-rev/{document['_rev']}").status == 200
    found = world.ok("GET", path)
    assert found["settled"] is False
    assert found["url"] == f"{npm.url}@{then}/"
    rows = {each["package"]: each for each in found["items"]}
    assert list(rows) == ["left", "new", "right"]
    left = rows["left"]
    assert (left["added"], left["removed"], left["unknown_count"]) == (["2.0.0"], ["1.1.0"], 0)
    assert left["tags"] == [{"tag": "latest", "then": "1.1.0", "now": "2.0.0"}]
    assert left["states"] == [{"version": "1.0.0", "then": "live", "now": "deprecated"}]
    assert (rows["new"]["added"], rows["new"]["tags"]) == (
        ["1.0.0"],
        [{"tag": "latest", "then": None, "now": "1.0.0"}],
    )
    assert (rows["right"]["gone"], rows["right"]["removed"]) == (True, ["1.0.0"])
    pages, cursor = [], ""
    while cursor is not None:
        page = world.ok("GET", f"{path}&limit=1{f'&cursor={cursor}' if cursor else ''}")
        pages += [each["package"] for each in page["items"]]
        cursor = page["next"]
    assert pages == list(rows)
    over = world.ok("GET", f"/repository/main%2Fnpm-over/snapshot?at={then}")
    assert [(each["package"], each["repository"]) for each in over["items"]] == [
        (each, "main/npm-moving") for each in rows
    ]
    for wrong in ("", "at=", "at=soon", "at=9999-01-01", f"at={then}&limit=0", f"at={then}&cursor=x"):
        assert world.api.get(f"/repository/main%2Fnpm-moving/snapshot?{wrong}").status == 422, wrong
    world.ok("POST", "/repository", settings("docker", "images", {"type": "Hosted"}), 201)
    assert "no views of the past" in world.api.get(f"/repository/main%2Fimages/snapshot?at={then}").text


@pytest.mark.parametrize("format", CASES)
def test_a_snapshot_of_a_proxy_tells_what_is_kept(world: World, times: Mapping[str, str], format: str) -> None:
    world.at(f"{format}-fresh").get(CASES[format].file_of(NAME, "1.1.0"))

    def kept() -> tuple[Any, list[Any]] | None:  # a moment after it was sent
        found = world.ok("GET", f"/repository/main%2F{format}-fresh/snapshot?at={times['between']}")
        rows = [each for each in found["items"] if each["package"].endswith(NAME)]
        return (found, rows) if rows else None

    found, rows = polled(kept)
    assert [each["added"] for each in rows] in ([[CASES[format].spelled("1.1.0")]], [["1.1.0-py_0"]]), rows
    assert any("upstreams" in each for each in found["limits"])


def test_an_alias_and_a_percent_sign_stand_for_a_view(world: World, times: Mapping[str, str]) -> None:
    path = f"main/npm-own@{times['between']}"
    for wrong in ("main/npm-own@soon", f"main/nothing@{times['between']}", "main/npm-own@9999-01-01"):
        assert world.api.post_json("/system/hosts", {"aliases": {"/frozen": wrong}}, "PATCH").status == 422
    server = world.url.partition("//")[2]
    assert world.api.post_json("/system/hosts", {"hosts": {server: path}}, "PATCH").status == 409
    world.ok("PATCH", "/system/hosts", {"aliases": {"/frozen": path}})
    try:
        frozen = HttpClient(f"{world.url}/frozen", AUTH)
        document = frozen.get(f"/{NAME}").json
        assert document["dist-tags"] == {"latest": "1.0.0"}
        assert document["versions"]["1.0.0"]["dist"]["tarball"].startswith(f"{world.url}/frozen/")
        assert frozen.ask("PUT", "/more", b"{}", {"Content-Type": "application/json"}).status == 405
        assert world.ok("GET", "/system/hosts")["missing"] == []
    finally:
        world.ok("PATCH", "/system/hosts", {"aliases": {"/frozen": None}})
    quoted = world.at(f"npm-own%40{times['between'].replace(':', '%3A')}").get(f"/{NAME}")
    assert quoted.json["dist-tags"] == {"latest": "1.0.0"}
    setup = world.ok("GET", f"/repository/main%2Fconda-own/setup?at={times['between']}")
    assert any(f"conda-own%40{times['between']}" in each["text"] for each in setup)
    assert not any("Publish" in each["title"] for each in setup)


def test_a_build_of_a_snapshot_is_shown_from_its_time_on(world: World, times: Mapping[str, str]) -> None:
    own = world.at("maven-own")
    metadata = "/com/example/built/1.0-SNAPSHOT/maven-metadata.xml"
    before = now_exactly()
    found = []
    for build in ("20260101.000000-1", "20260102.000000-2"):
        pom = make_pom("com.example", "built", "1.0-SNAPSHOT")
        assert own.ask("PUT", f"/com/example/built/1.0-SNAPSHOT/built-1.0-{build}.pom", pom).status == 201
        found.append(now_exactly())
    assert own.get(metadata).text.count("<value>1.0-20260102.000000-2<") == 1
    assert world.at(f"maven-own@{before}").get(metadata).status == 404
    for then, build in zip(found, ("20260101.000000-1", "20260102.000000-2"), strict=True):
        assert f"<value>1.0-{build}<" in world.at(f"maven-around@{then}").get(metadata).text


def test_a_package_of_one_folder_of_a_channel_is_explained(world: World, times: Mapping[str, str]) -> None:
    found = world.ok("GET", f"/explain?repository=main/conda-own@{times['between']}&package={NAME}&version=1.1.0")
    assert (found["outcome"], found["version"]["hidden"]) == ("later", True)
    found = world.ok("GET", f"/explain?repository=main/conda-fresh@{times['between']}&package={NAME}&version=1.0.0")
    assert (found["outcome"], found["latest"]["version"]) == ("served", "1.0.0")
