"""The JSON metadata of projects of upstreams."""

from __future__ import annotations

import pytest

from tests.support.python_packages import make_metadata, make_wheel
from tests.support.upstreams.faults import failing
from tests.support.upstreams.python import PUBLISHED

pytestmark = pytest.mark.server


def test_document_has_the_files_of_the_page_and_the_metadata_of_the_newest_version(mirror, upstream):
    upstream.add("documented", "1.0", yanked="bad")
    wheel, data = upstream.add("documented", "2.0", requires=["left"], requires_python=">=3.8")
    upstream.add("documented", "2.0", sdist=True)
    upstream.add("documented", "3.0rc1")
    for path in ("/pypi/documented/json", "/pkgindex/Documented/json"):
        document = mirror.get(path).json
        assert document["info"]["version"] == "2.0"
        assert document["info"]["requires_dist"] == ["left"]
        assert document["info"]["requires_python"] == ">=3.8"
        assert list(document["releases"]) == ["1.0", "2.0", "3.0rc1"]
        assert document["releases"]["1.0"][0]["yanked_reason"] == "bad"
        (file, sdist) = document["urls"]
        assert file["url"] == f"{mirror.url}/packages/documented/2.0/{wheel}"
        assert (file["size"], file["packagetype"], sdist["packagetype"]) == (len(data), "bdist_wheel", "sdist")
        assert file["upload_time_iso_8601"] == PUBLISHED
        assert "files" not in document
    assert mirror.get(document["urls"][0]["url"].removeprefix(mirror.url)).body == data


def test_document_of_a_version_and_of_one_that_does_not_exist(mirror, upstream):
    upstream.add("versioned", "1.0", requires=["one"])
    upstream.add("versioned", "2.0", requires=["two"])
    assert mirror.get("/pypi/versioned/1.0.0/json").json["info"]["requires_dist"] == ["one"]
    reply = mirror.get("/pypi/versioned/3.0/json")
    assert (reply.status, reply.json) == (404, {"message": "Not Found"})
    assert mirror.get("/pypi/nowhere-at-all/json").status == 404


def test_document_with_the_files_of_the_simple_page(mirror, upstream):
    wheel, _ = upstream.add("doubled")
    document = mirror.get("/pypi-data/doubled/json").json
    assert [file["filename"] for file in document["files"]] == [wheel]
    assert document["files"][0]["url"] == f"../../packages/doubled/1.0/{wheel}"


def test_document_without_metadata_has_what_the_page_says(at, mirror, upstream, old_upstream):
    name, _ = upstream.add("unmetadated", requires_python=">=3.8")
    upstream.misbehave(f"{upstream.file_path(name)}.metadata", failing(500), repeat=True)
    info = mirror.get("/pypi/unmetadated/json").json["info"]
    assert (info["name"], info["version"], info["requires_python"]) == ("unmetadated", "1.0", ">=3.8")
    old_upstream.add("unmetadated", metadata=False)
    (file,) = at("old").get("/pypi/unmetadated/json").json["urls"]
    assert (file["digests"], file["size"]) == ({}, None)


def test_failing_upstream_is_no_missing_document(mirror, upstream):
    upstream.add("broken-document")
    upstream.misbehave("/simple/broken-document/", failing(500), repeat=True)
    assert mirror.get("/pypi/broken-document/json").status == 502


def test_document_of_a_hosted_member(at, publish):
    publish("in-member", "1.0")
    document = at("all").get("/pypi/in-member/json").json
    assert document["info"]["version"] == "1.0"
    assert document["urls"][0]["url"].startswith(f"{at('all').url}/packages/in-member/1.0/")


def test_document_of_a_hosted_member_has_no_metadata_of_an_upstream(at, mirror, upstream, publish, keep):
    name, _ = upstream.add("two-owners", "1.0", requires=["evil"])
    keep(mirror, f"/packages/two-owners/1.0/{name}")
    publish("two-owners", "1.0")
    assert mirror.get("/pypi/two-owners/json").json["info"]["requires_dist"] == ["evil"]
    assert at("readable").get("/pypi/two-owners/json").json["info"]["requires_dist"] is None


def test_document_has_no_metadata_of_another_release(at, mirror, upstream, old_upstream, keep):
    name, _ = upstream.add("liar")
    strange = make_metadata("stranger", "7.0", fields=[("Requires-Dist", "wrong")])
    upstream.projects["liar"][0]["core-metadata"] = True  # without a digest
    upstream.serve(f"{upstream.file_path(name)}.metadata", strange)
    old_upstream.add("liar", metadata=False)
    old_upstream.serve(old_upstream.file_path(name), make_wheel("liar", "1.0", metadata=strange)[1])
    keep(at("old"), f"/packages/liar/1.0/{name}")
    for where in (mirror, at("old")):
        info = where.get("/pypi/liar/json").json["info"]
        assert (info["name"], info["version"], info["requires_dist"]) == ("liar", "1.0", None)
