"""Channels of upstreams: their documents, and their files, fetched once, verified and kept."""

from __future__ import annotations

import bz2
import hashlib
import time

import msgspec
import pytest
import zstandard

from tests.support.data_folder import wait_for
from tests.support.proxied import answered
from tests.support.upstreams.faults import corrupted, failing
from tests.support.upstreams.messages import Answer

pytestmark = pytest.mark.server

SHARDS = "repodata_shards.msgpack.zst"


def unpacked(reply):
    """The body, decompressed; zstd frames must have a size, as conda needs it."""
    return zstandard.ZstdDecompressor().decompress(reply.body)


def files(document):
    return {**document["packages"], **document["packages.conda"]}


def shown(client, subdir="noarch", document="repodata.json"):
    """The files in a document of a folder."""
    reply = client.get(f"/{subdir}/{document}")
    assert reply.status == 200, reply.body
    return files(reply.json)


def shards(client, subdir="noarch"):
    """The records in the shards of a folder by file, each shard as its digest says."""
    index = msgspec.msgpack.decode(unpacked(client.get(f"/{subdir}/{SHARDS}")))
    found = {}
    for digest in index["shards"].values():
        body = client.get(f"/{subdir}/shards/{digest.hex()}.msgpack.zst")
        assert (body.status, hashlib.sha256(body.body).digest()) == (200, digest)
        found |= files(msgspec.msgpack.decode(unpacked(body)))
    for record in found.values():
        record |= {name: record[name].hex() for name in ("md5", "sha256") if name in record}
    return found


def test_documents_have_the_records_of_the_upstream_in_every_form(mirror, upstream):
    upstream.add("plain", "1.0", depends=["other >=1"])
    upstream.add("plain", "1.0", ending=".tar.bz2")
    upstream.add("plain-more", "2.0", subdir="linux-64", noarch=None)
    records = upstream.records["noarch"]
    found = shown(mirror)
    assert {key: found[key] for key in records} == records
    plain = mirror.get("/noarch/repodata.json")
    assert unpacked(mirror.get("/noarch/repodata.json.zst")) == plain.body
    assert bz2.decompress(mirror.get("/noarch/repodata.json.bz2").body) == plain.body
    assert unpacked(mirror.get("/noarch/repodata.json", Accept_Encoding="zstd")) == plain.body
    assert shards(mirror) == found
    assert shown(mirror, "linux-64") == upstream.records["linux-64"]
    assert shown(mirror, "win-64") == {}
    assert mirror.get("/linux-128/repodata.json").status == 404


@pytest.mark.parametrize("document", ["repodata.json", "repodata.json.zst", SHARDS])
def test_a_document_is_revalidated_with_the_upstream(mirror, upstream, document):
    upstream.add("steady")
    path = f"/noarch/{document}"
    first = mirror.get(path)
    upstream.forget()
    assert mirror.get(path, If_None_Match=first.headers["etag"]).status == 304
    assert [each.status for each in upstream.exchanges_of("/noarch/repodata.json.zst")] == [304]
    upstream.add(f"fresh-{document[:9].replace('.', '-')}-{len(document)}")
    changed = mirror.get(path, If_None_Match=first.headers["etag"])
    assert (changed.status, changed.headers["etag"] != first.headers["etag"]) == (200, True)


def test_a_fresh_document_is_answered_without_the_upstream(at, upstream):
    upstream.add("cached")
    slow = at("slow")
    first = slow.get("/noarch/repodata.json")
    upstream.forget()
    for path in ("/noarch/repodata.json", "/noarch/repodata.json.zst", f"/noarch/{SHARDS}"):
        assert slow.get(path).status == 200
    assert slow.get("/noarch/repodata.json", If_None_Match=first.headers["etag"]).status == 304
    assert upstream.count() == 0


@pytest.mark.parametrize(("proxy", "ending"), [("small", ".conda"), ("old", ".tar.bz2")])
def test_a_file_is_fetched_once_and_served_without_the_upstream(at, upstream, proxy, ending):
    mirror, name = at(proxy), f"kept-{proxy}"
    data = upstream.add(name, ending=ending)
    path = f"/noarch/{name}-1.0-py_0{ending}"
    head = mirror.head(path)
    assert (head.status, head.headers["content-length"]) == (200, str(len(data)))
    for _ in range(2):
        reply = mirror.get(path)
        assert (reply.status, reply.body) == (200, data)
    assert upstream.count(path) == 1
    for each in (path, "/noarch/repodata.json.zst"):
        upstream.misbehave(each, failing(503), repeat=True)
    assert mirror.get(path).body == data
    assert f"{name}-1.0-py_0{ending}" in shown(mirror)  # as the upstream last said
    assert mirror.get("/noarch/absent-1.0-0.conda").status == 503  # it is not known


def test_a_folder_that_the_channel_lacks_is_empty_also_while_it_fails(at, upstream):
    mirror, path = at("small"), "/linux-ppc64le/repodata.json"
    assert mirror.get(path).json["packages.conda"] == {}
    for each in ("linux-ppc64le", "linux-s390x"):
        upstream.misbehave(f"/{each}/repodata.json.zst", failing(503), repeat=True)
    reply = answered(mirror, path, lambda reply: reply.status == 200)
    assert reply.json["packages.conda"] == {}
    assert mirror.get("/linux-s390x/repodata.json").status == 503, "it is not known"


@pytest.mark.parametrize("known", ["sha256", "md5"])
def test_a_file_that_is_not_what_its_record_says_is_not_kept(at, upstream, known):
    mirror = at("broken")
    left_out = {"sha256": "md5", "md5": "sha256"}[known]
    data = upstream.add(f"wrong-{known}", record={left_out: None})
    path = f"/noarch/wrong-{known}-1.0-py_0.conda"
    upstream.misbehave(path, corrupted, repeat=True)
    reply = mirror.get(path)
    assert reply.status == 502
    upstream.behave()
    assert mirror.get(path).body == data


def test_records_that_cannot_be_served_are_left_out_and_addresses_are_not_passed_on(mirror, upstream):
    upstream.add("odd-none", record={"md5": None, "sha256": None})
    upstream.add("odd-digest", record={"sha256": "xyz"})
    upstream.add("odd-name", record={"name": "another"})
    upstream.add("odd-type", record={"depends": "text"})
    upstream.add("odd-url", record={"url": "http://elsewhere.example/x", "channel": "x", "fn": "x"})
    upstream.records["noarch"]["../up-1.0-0.conda"] = upstream.records["noarch"]["odd-url-1.0-py_0.conda"]
    upstream.publish("noarch")
    del upstream.records["noarch"]["../up-1.0-0.conda"]
    found = {key: each for key, each in shown(mirror).items() if "odd" in key or "up" in key}
    assert list(found) == ["odd-url-1.0-py_0.conda"]
    assert not {"url", "channel", "fn"} & found["odd-url-1.0-py_0.conda"].keys()
    upstream.publish("noarch")


def test_files_are_where_base_url_says(at, upstream, second):
    second.info = {"base_url": f"{upstream.url}/elsewhere/"}
    data = second.add("moved")
    upstream.serve("/elsewhere/moved-1.0-py_0.conda", data)
    second.documents.pop("/noarch/moved-1.0-py_0.conda")
    assert at("other").get("/noarch/moved-1.0-py_0.conda").body == data
    assert "base_url" not in at("other").get("/noarch/repodata.json").json["info"]
    second.info = {}
    second.publish("noarch")


@pytest.mark.parametrize(
    "body",
    [b"[]", b"{", b'{"info": {"subdir": "linux-64"}}', b"\x28\xb5\x2f\xfdxx", b'{"packages": []}'],
    ids=["list", "cut", "other-folder", "broken-zstd", "wrong-type"],
)
def test_a_document_that_cannot_be_used_is_a_failure_of_the_upstream(at, upstream, body):
    upstream.serve("/osx-64/repodata.json.zst", Answer(body=body))
    reply = at("broken").get("/osx-64/repodata.json")
    assert (reply.status, "error" in reply.json) == (502, True)
    upstream.documents.pop("/osx-64/repodata.json.zst")


def test_a_bomb_is_refused(at, upstream):
    packer = zstandard.ZstdCompressor(level=1).compressobj()
    packed = b"".join([packer.compress(bytes(1024 * 1024)) for _ in range(600)]) + packer.flush()
    upstream.serve("/osx-arm64/repodata.json.zst", packed)
    assert at("broken").get("/osx-arm64/repodata.json").status == 502
    upstream.documents.pop("/osx-arm64/repodata.json.zst")


def test_other_documents_are_those_of_the_upstream(mirror, upstream):
    upstream.add("many", "1.0", subdir="linux-aarch64", noarch=None)
    upstream.add("many", "2.0", subdir="linux-aarch64", noarch=None)
    assert set(shown(mirror, "linux-aarch64", "current_repodata.json")) == {
        "many-1.0-py_0.conda",
        "many-2.0-py_0.conda",
    }
    newest = {"many-2.0-py_0.conda": upstream.records["linux-aarch64"]["many-2.0-py_0.conda"]}
    upstream.serve_document("/linux-aarch64/current_repodata.json", {"packages.conda": newest})
    exports = {"packages.conda": {key: {"run_exports": {"weak": ["many"]}} for key in newest}}
    upstream.serve_document("/linux-aarch64/run_exports.json", exports)
    upstream.serve_document(
        "/channeldata.json", {"packages": {"many": {"summary": "x"}}, "subdirs": ["noarch", "linux-aarch64"]}
    )
    assert shown(mirror, "linux-aarch64", "current_repodata.json") == newest
    assert shown(mirror, "linux-aarch64", "run_exports.json") == exports["packages.conda"]
    channel = mirror.get("/channeldata.json").json
    assert channel["packages"] == {"many": {"summary": "x"}}
    assert channel["subdirs"] == ["noarch", "linux-aarch64"]


def test_young_files_are_hidden_until_they_are_old_enough(at, upstream):
    now_ms = round(time.time() * 1000)
    upstream.add("aging", "1.0", record={"timestamp": now_ms - 8 * 86_400_000})
    upstream.add("aging", "2.0", record={"timestamp": now_ms - 86_400_000})
    upstream.add("aging", "3.0", record={"timestamp": 1_600_000_000_000, "indexed_timestamp": now_ms})
    upstream.add("undated", record={"timestamp": None})
    aged = at("aged")
    found = {each for each in shown(aged) if each.startswith(("aging", "undated"))}
    assert found == {"aging-1.0-py_0.conda"}
    assert {each for each in shards(aged) if each.startswith(("aging", "undated"))} == found
    assert aged.get("/noarch/aging-1.0-py_0.conda").status == 200
    refused = aged.get("/noarch/aging-2.0-py_0.conda")
    assert (refused.status, "younger" in refused.json["error"]) == (403, True)


def test_nothing_is_uploaded_to_a_proxy(mirror):
    assert mirror.put("/noarch/new-1.0-py_0.conda", b"x").status == 405


def test_the_api_describes_lists_explains_checks_and_purges(format_server, api, mirror, upstream):
    data = upstream.add("shown-here", "1.5", documents={"about.json": {"summary": "Shown"}})
    assert mirror.get("/noarch/shown-here-1.5-py_0.conda").body == data
    wait_for(lambda: api.get("/package/main%2Fmirror/shown-here").status == 200, format_server)  # it is kept
    where = {"repository": "main/mirror", "package": "shown-here"}
    query = "&".join(f"{key}={each.replace('/', '%2F')}" for key, each in where.items())
    found = api.get(f"/explain?{query}&version=1.5").json
    assert (found["outcome"], found["latest"]["version"], found["version"]["version"]) == ("served", "1.5", "1.5")
    found = api.get(f"/explain?{query}&file=noarch%2Fshown-here-1.5-py_0.conda").json
    assert found["file"]["kept"]
    assert api.get("/explain?repository=main%2Fmirror&package=nobody").json["outcome"] == "not_found"
    below = "/repository/main%2Fmirror"
    assert "shown-here" in api.get(f"{below}/packages").text
    assert api.get("/package/main%2Fmirror/shown-here/versions/1.5").json["metadata"]["summary"] == "Shown"
    assert all(each["ok"] for each in api.post_json(f"{below}/upstream/check", {}).json["routes"])
    assert api.post_json(f"{below}/cache/purge", {"package": "shown-here"}).status < 300
    upstream.forget()
    assert mirror.get("/noarch/shown-here-1.5-py_0.conda").body == data
    assert upstream.count("/noarch/shown-here-1.5-py_0.conda") == 1


def test_a_name_that_is_not_in_the_channel_costs_no_further_request(at, upstream):
    slow = at("slow")
    slow.get("/noarch/repodata.json")
    upstream.forget()
    for number in range(5):
        assert slow.get(f"/noarch/made-up-{number}.0-0.conda").status == 404
    assert upstream.count() <= 1
