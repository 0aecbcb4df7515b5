"""Mirrors by lock files, and bundles that carry what they fetched to a server without a network."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

import pytest

from tests.support.first_publishes import MODULE, NAME, Publisher
from tests.support.go_modules import h1_of_zip
from tests.support.http_client import HttpClient
from tests.support.imports import static, write
from tests.support.mirrored_sites import FORMATS, Sites, mirrored_sites
from tests.support.npm_packages import make_publish
from tests.support.python_index import PASSWORD, USER
from tests.support.python_packages import make_wheel
from tests.support.timeouts import polled

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    with mirrored_sites(tmp_path_factory.mktemp("sites")) as found:
        yield found


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_named_is_fetched_once(sites: Sites, name: str) -> None:
    first = sites.mirror(name, sites.lock(name))
    assert (first["problems"], first["present"]) == ([], 0)
    assert first["fetched"] > 0
    assert first["fetched_bytes"] >= len(sites.published[name].data)
    second = sites.mirror(name, sites.lock(name))
    assert (second["problems"], second["fetched"], second["present"]) == ([], 0, first["fetched"])


def test_a_lock_may_be_ahead_of_the_document_that_is_kept(sites: Sites) -> None:
    """A version that came after the document was kept is found long before that has expired."""
    source = Publisher(sites.upstream.url, (USER, PASSWORD))
    for version in ("1.0.0", "1.0.1"):
        source.publish("python", "fresh", version)
        polled(lambda lock=f"fresh=={version}\n": sites.mirror("py", ("requirements.txt", lock))["problems"] == [])


def test_what_is_missing_is_told_and_the_rest_is_fetched(sites: Sites) -> None:
    packages = {
        f"node_modules/{NAME}": {"version": "1.0.0", "integrity": f"sha512-{'qqqq' * 21}qg=="},
        "node_modules/absent": {"version": "1.0.0"},
        f"node_modules/x/node_modules/{NAME}": {"version": "9.0.0"},
        "node_modules/g": {"version": "1.0.0", "resolved": "git+ssh://h.example/g.git"},
        "node_modules/..": {"version": "1.0.0"},
    }
    lock = ("package-lock.json", json.dumps({"packages": packages}))
    found = sites.mirror("both", lock)
    assert found["fetched"] + found["present"] == 1
    kinds = sorted((each["kind"], each["package"], each["item"]) for each in found["problems"])
    assert kinds == [
        ("digest_differs", NAME, "1.0.0"),
        ("left_out", "", "g 1.0.0"),
        ("not_found", "..", "1.0.0"),
        ("not_found", "absent", "1.0.0"),
        ("not_found", NAME, "9.0.0"),
    ]
    assert found["problems_count"] == 5


def test_hashes_that_only_a_format_has_are_compared(sites: Sites) -> None:
    data, wrong = sites.published["modules"].data, f"h1:{'A' * 43}="
    _, _, good = h1_of_zip(data).partition("h1:")
    lines = f"{MODULE} v1.0.0 {wrong}\n{MODULE} v1.0.0/go.mod {wrong}\n{MODULE} v1.0.0 h1:{good}\n"
    for _ in range(2):  # also of what is kept already
        problems = sites.mirror("modules", ("go.sum", lines))["problems"]
        assert [(each["kind"], each["package"], each["item"]) for each in problems] == [
            ("digest_differs", MODULE, "v1.0.0"),
            ("digest_differs", MODULE, "v1.0.0.mod"),
        ]
        assert f"the lock names {wrong}, and what the repository has is h1:{good}" in problems[0]["reason"]


def test_what_a_rule_refuses_stays_refused(sites: Sites) -> None:
    found = sites.mirror("strict", sites.lock("node"))
    assert [each["kind"] for each in found["problems"]] == ["refused"]
    assert sites.site.get("/api/repository/main%2Fstrict/packages").json["items"] == []


def test_a_hosted_repository_is_compared(sites: Sites) -> None:
    npm = HttpClient(f"{sites.site.url}/repositories/main/own", (USER, PASSWORD))
    assert npm.put("/mine", make_publish("mine", "1.0.0")).status == 201
    packages = {"node_modules/mine": {"version": "1.0.0"}, "node_modules/other": {"version": "1.0.0"}}
    found = sites.mirror("own", ("package-lock.json", json.dumps({"packages": packages})))
    assert (found["present"], found["fetched"], found["not_found"]) == (1, 0, 1)


@pytest.mark.parametrize(
    ("locks", "status"),
    [
        ([], 422),
        ([("pom.xml", "<project>")], 422),
        ([("yarn.lock", "x")], 422),
        ([("bun.lock", "{}" * 9_000_000)], 422),
    ],
    ids=["none", "pom", "yarn", "large"],
)
def test_bad_lock_files_are_refused(sites: Sites, locks: list[tuple[str, str]], status: int) -> None:
    assert "locks" in sites.mirror("node", *locks, status=status)["errors"][0]["pointer"]


def test_who_may_only_read_starts_no_mirror(sites: Sites) -> None:
    reply = sites.site.as_user().post_json("/api/repository/main%2Fnode/mirror", {"locks": []})
    assert reply.status == 401


def test_a_bundle_is_carried_to_a_server_without_a_network(sites: Sites) -> None:
    bundle = sites.folder / "bundles" / "first.tar"
    locks = []
    for name in FORMATS:
        file, text = sites.lock(name)
        (sites.folder / name).mkdir(exist_ok=True)
        (sites.folder / name / file).write_text(text)
        locks += ["--lock", f"main/{name}={sites.folder / name / file}"]
    repositories = [f"main/{name}" for name in FORMATS]
    sites.pkgrepo(sites.site.url, "bundle", "write", str(bundle), *repositories, *locks)
    sites.pkgrepo(sites.site.url, "bundle", "write", str(bundle), *repositories, status=5)  # it is there already
    for name in FORMATS:
        taken = sites.take(bundle, name)
        assert taken["left_out"] == [], name
        assert taken["files"] > 0, name
        again = sites.take(bundle, name)
        assert (again["files"], again["left_out"]) == (0, []), name
        each = sites.published[name]
        assert sites.far.get(f"/{each.file}").body == each.data
        assert each.listed in sites.far.get(f"/{each.index}").text


def test_a_bundle_since_the_last_one_has_what_is_new(sites: Sites) -> None:
    first, second = (sites.folder / "bundles" / f"{each}.tar" for each in ("one", "two"))
    npm = HttpClient(f"{sites.upstream.url}/repositories/main/node", (USER, PASSWORD))
    for version in ("1.0.0", "2.0.0"):
        assert npm.put("/grows", make_publish("grows", version)).status == 201

    def lock(version: str) -> list[str]:
        path = sites.folder / "package-lock.json"
        path.write_text(json.dumps({"packages": {"node_modules/grows": {"version": version}}}))
        return ["--lock", str(path)]

    sites.pkgrepo(sites.site.url, "bundle", "write", str(first), "main/node", *lock("1.0.0"))
    told = sites.pkgrepo(
        sites.site.url, "bundle", "write", str(second), "main/node", *lock("2.0.0"), "--since", str(first)
    )
    assert "main/node: 2 files" in told  # a tarball and a document
    told = sites.pkgrepo(
        sites.site.url, "bundle", "write", str(first), "main/node", *lock("3.0.0"), "--force", status=1
    )
    assert "grows 3.0.0" in told

    taken = sites.take(second, "node")
    assert taken["files"] == 1
    sites.take(second, "node", keys=[sites.site.get("/api/system/twin-key").json["key"]])
    other = sites.far.get("/api/system/twin-key").json["key"]
    assert "none of the trusted keys" in sites.take(second, "node", 503, keys=[other])["detail"]
    document = sites.far.get("/repositories/main/node/grows").json
    assert list(document["versions"]) == ["2.0.0"]
    assert document["time"]["2.0.0"] == npm.get("/grows").json["time"]["2.0.0"]


def test_a_changed_bundle_publishes_nothing(sites: Sites) -> None:
    bundle = sites.folder / "bundles" / "bad.tar"
    npm = HttpClient(f"{sites.upstream.url}/repositories/main/node", (USER, PASSWORD))
    assert npm.put("/bad", make_publish("bad", "1.0.0")).status == 201
    lock = ("package-lock.json", json.dumps({"packages": {"node_modules/bad": {"version": "1.0.0"}}}))
    sites.mirror("node", lock)
    sites.pkgrepo(sites.site.url, "bundle", "write", str(bundle), "main/node")
    data = bytearray(bundle.read_bytes())
    data[len(data) // 2] ^= 1
    bundle.write_bytes(data)
    assert sites.take(bundle, "node", 503)["detail"]
    assert sites.far.get("/repositories/main/node/bad").status == 404


def test_patterns_are_followed_by_the_server_and_when_asked(sites: Sites) -> None:
    npm = HttpClient(f"{sites.upstream.url}/repositories/main/node", (USER, PASSWORD))
    for version in ("1.0.0", "2.0.0", "3.0.0", "4.0.0-rc.1"):
        assert npm.put("/trends", make_publish("trends", version)).status == 201
    packages = ["trends", "absent", "kept-*"]
    patterns = [{"packages": packages, "versions": "newest 2", "every": "1d"}]
    place = "/api/repository/main%2Fnode/config"
    config = sites.site.get(place).json
    bad = {**config, "mirror": {"patterns": [{"packages": ["x"], "every": "1s"}]}}
    assert sites.site.post_json(place, bad, "PUT").status == 422
    reply = sites.site.post_json(place, {**config, "mirror": {"patterns": patterns}}, "PUT")
    assert reply.status == 200, reply.text
    found = sites.mirror("node")
    assert (found["fetched"], [each["item"] for each in found["problems"]]) == (2, ["absent"])
    kept = sites.site.get("/api/package/main%2Fnode/trends/versions").json["items"]
    assert sorted(each["version"] for each in kept) == ["2.0.0", "3.0.0"]


def test_metadata_that_only_the_wheels_have_are_kept_with_them(sites: Sites) -> None:
    filename, data = make_wheel("small", "1.0")
    page = (
        f'<a href="../../{filename}#sha256={hashlib.sha256(data).hexdigest()}" data-core-metadata="true">{filename}</a>'
    )
    files = {"simple/small/index.html": f"<!DOCTYPE html><html><body>{page}</body></html>".encode(), filename: data}
    with static(write(sites.folder / "index", files)) as url:
        config = {"type": "Proxy", "proxy": {"routes": [{"url": url}]}}
        value = {"name": "index", "storage": "main", "format": "python", "config": config}
        assert sites.site.post_json("/api/repository", value).status == 201
        found = sites.mirror("index", ("requirements.txt", "small==1.0\n"))
        assert found["problems"] == []
    reply = sites.site.get(f"/repositories/main/index/packages/small/1.0/{filename}.metadata")
    assert reply.status == 200, reply.text
