"""The documents of a channel: all of one state, in every form, with validators and ranges."""

import bz2
import hashlib
import json
import time

import msgspec
import pytest
import zstandard

from pkgrepo.formats.conda.names import SUBDIRS
from tests.support.conda_packages import make_conda, make_tar_bz2
from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER

pytestmark = pytest.mark.server

DOCUMENTS = ["repodata.json", "repodata_from_packages.json", "run_exports.json"]


def unpacked(reply):
    """The body, decompressed; zstd frames must have a size, as conda needs it."""
    return zstandard.ZstdDecompressor().decompress(reply.body)


def files(document):
    return {**document["packages"], **document["packages.conda"]}


@pytest.fixture(scope="module")
def filled(format_server):
    """A channel with two packages, one of them in two folders."""
    client = HttpClient(f"{format_server.url}/repositories/main/fresh", (USER, PASSWORD))
    about = {"about.json": {"summary": "A pair"}, "run_exports.json": {"weak": ["pair >=1"]}}
    for path, data in {
        "linux-64/pair-1.0-0.conda": make_conda("pair", "1.0", "0", subdir="linux-64", documents=about),
        "noarch/pair-1.0-py_0.tar.bz2": make_tar_bz2("pair", "1.0"),
        "noarch/pair-1.10-py_0.conda": make_conda("pair", "1.10", documents=about),
        "noarch/single-2.0-py_0.conda": make_conda("single", "2.0"),
    }.items():
        assert client.put(f"/{path}", data).status == 201
    return client


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_document_says_the_same_in_every_form(filled, document):
    plain = filled.get(f"/noarch/{document}")
    assert plain.headers["content-type"] == "application/json"
    assert set(files(plain.json)) == {"pair-1.0-py_0.tar.bz2", "pair-1.10-py_0.conda", "single-2.0-py_0.conda"}
    assert unpacked(filled.get(f"/noarch/{document}.zst")) == plain.body
    assert bz2.decompress(filled.get(f"/noarch/{document}.bz2").body) == plain.body
    coded = filled.get(f"/noarch/{document}", Accept_Encoding="zstd")
    assert (coded.headers["content-encoding"], unpacked(coded)) == ("zstd", plain.body)
    assert len({plain.headers["etag"], coded.headers["etag"]}) == 2


@pytest.mark.parametrize("document", [*DOCUMENTS, "current_repodata.json"])
def test_a_copy_in_another_coding_is_current(filled, document):
    kept = {
        coding: filled.get(f"/noarch/{document}", Accept_Encoding=coding) for coding in ("identity", "gzip", "zstd")
    }
    for reply in kept.values():
        etag = reply.headers["etag"]
        again = filled.get(f"/noarch/{document}", If_None_Match=etag, Accept_Encoding="zstd, gzip")
        assert (again.status, again.headers["etag"]) == (304, etag)
    packed = kept["gzip"].headers["etag"]
    assert filled.get(f"/noarch/{document}", If_None_Match=packed, Accept_Encoding="identity").status == 200


def test_a_record_says_when_its_file_was_published(ch):
    before_ms = round(time.time() * 1000)
    index = {"timestamp": 1_600_000_000_000, "indexed_timestamp": 1}
    assert ch.put("/noarch/dated-1.0-py_0.conda", make_conda("dated", **index)).status == 201
    record = files(ch.get("/noarch/repodata.json").json)["dated-1.0-py_0.conda"]
    assert record["timestamp"] == index["timestamp"]
    assert before_ms - 1 <= record["indexed_timestamp"] <= round(time.time() * 1000)


def test_the_current_repodata_has_the_newest_versions(filled):
    current = filled.get("/noarch/current_repodata.json.zst")
    assert set(files(json.loads(unpacked(current)))) == {"pair-1.10-py_0.conda", "single-2.0-py_0.conda"}


def test_every_known_folder_has_documents_without_packages(filled):
    for subdir in SUBDIRS[1:6]:
        document = filled.get(f"/{subdir}/repodata.json").json
        assert document["info"] == {"subdir": subdir}
        assert set(files(document)) == ({"pair-1.0-0.conda"} if subdir == "linux-64" else set())
    assert filled.get("/linux-128/repodata.json").status == 404
    assert filled.get("/noarch/other.json").status == 404


def test_shards_have_the_records_of_the_repodata(filled):
    index = msgspec.msgpack.decode(unpacked(filled.get("/noarch/repodata_shards.msgpack.zst")))
    assert (index["version"], index["info"]["subdir"]) == (1, "noarch")
    assert sorted(index["shards"]) == ["pair", "single"]
    found = {}
    for digest in index["shards"].values():
        shard = filled.get(f"/noarch/shards/{digest.hex()}.msgpack.zst")
        assert hashlib.sha256(shard.body).digest() == digest
        assert "immutable" in shard.headers["cache-control"]
        found |= files(msgspec.msgpack.decode(unpacked(shard)))
    for record in found.values():
        record |= {name: record[name].hex() for name in ("md5", "sha256")}
    assert found == files(filled.get("/noarch/repodata.json").json)
    assert filled.get(f"/noarch/shards/{'0' * 64}.msgpack.zst").status == 404


def test_run_exports_are_those_of_each_file(filled):
    found = files(filled.get("/noarch/run_exports.json").json)
    assert found["pair-1.10-py_0.conda"] == {"run_exports": {"weak": ["pair >=1"]}}
    assert found["single-2.0-py_0.conda"] == {"run_exports": {}}


def test_channeldata_describes_packages_by_their_highest_version(filled):
    document = filled.get("/channeldata.json").json
    assert document["subdirs"] == ["noarch", "linux-64"]
    pair = {"summary": "A pair", "license": "MIT", "version": "1.10", "subdirs": ["linux-64", "noarch"]}
    assert document["packages"]["pair"] == pair
    assert filled.get("/notices.json").json == {"notices": []}


@pytest.mark.parametrize("document", ["repodata.json", "repodata.json.zst", "repodata_shards.msgpack.zst"])
def test_a_document_is_revalidated_sliced_and_asked_for_its_head(filled, document):
    whole = filled.get(f"/noarch/{document}")
    assert filled.get(f"/noarch/{document}", If_None_Match=whole.headers["etag"]).status == 304
    assert filled.get(f"/noarch/{document}", If_None_Match=f"W/{whole.headers['etag']}").status == 304
    part = filled.get(f"/noarch/{document}", Range="bytes=-10")
    assert (part.status, part.body) == (206, whole.body[-10:])
    head = filled.head(f"/noarch/{document}")
    assert (head.status, head.headers["content-length"], head.body) == (200, str(len(whole.body)), b"")


def test_a_change_of_one_folder_leaves_the_validators_of_others(filled):
    before = filled.get("/linux-64/repodata.json").headers["etag"]
    assert filled.put("/noarch/later-1.0-py_0.conda", make_conda("later")).status == 201
    assert filled.get("/linux-64/repodata.json", If_None_Match=before).status == 304
    assert "later-1.0-py_0.conda" in files(filled.get("/noarch/repodata.json").json)


def test_a_removed_package_leaves_every_document(filled, api):
    assert filled.put("/noarch/brief-1.0-py_0.conda", make_conda("brief")).status == 201
    shards = "/noarch/repodata_shards.msgpack.zst"
    digest = msgspec.msgpack.decode(unpacked(filled.get(shards)))["shards"]["brief"].hex()
    assert api.delete("/package/main%2Ffresh/brief").status in (200, 204)
    assert b"brief" not in filled.get("/noarch/repodata.json").body
    assert b"brief" not in unpacked(filled.get("/noarch/repodata.json.zst"))
    assert "brief" not in msgspec.msgpack.decode(unpacked(filled.get(shards)))["shards"]
    assert b"brief" not in filled.get("/channeldata.json").body
    assert filled.get("/noarch/brief-1.0-py_0.conda").status == 404
    assert filled.get(f"/noarch/shards/{digest}.msgpack.zst").status == 200  # for clients with the index of before


def test_a_long_document_is_sent_from_a_file(ch):
    depends = [f"needed-{number} >=1.0,<2.0" for number in range(1200)]
    assert ch.put("/noarch/long-1.0-py_0.conda", make_conda("long", depends=depends)).status == 201
    reply = ch.get("/noarch/repodata.json")
    assert json.loads(reply.body)["packages.conda"]["long-1.0-py_0.conda"]["depends"] == depends
    assert ch.get("/noarch/repodata.json", Range="bytes=20000-20009").body == reply.body[20000:20010]
