"""Packages that a channel replaces under their names: what is served fits the records that clients have."""

from __future__ import annotations

import hashlib

import pytest

pytestmark = pytest.mark.server

ENDINGS = [".conda", ".tar.bz2"]


def digests_in(client, file, document="repodata.json"):
    reply = client.get(f"/noarch/{document}")
    assert reply.status == 200, reply.body
    record = {**reply.json["packages"], **reply.json["packages.conda"]}[file]
    return {each: record[each] for each in ("md5", "sha256") if each in record}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("record", [{}, {"sha256": None}, {"md5": None}])
def test_replaced_package_is_fetched_again(mirror, upstream, ending, record):
    name = "-".join(("replaced", ending[1:3], *record))
    file = f"{name}-1.0-py_0{ending}"
    old = upstream.add(name, ending=ending, record=record)
    assert mirror.get("/noarch/repodata.json").status == 200
    for _ in range(2):
        assert mirror.get(f"/noarch/{file}").body == old
    new = upstream.add(name, ending=ending, record=record, depends=["other"])
    assert mirror.get("/noarch/repodata.json").status == 200
    for _ in range(2):
        assert mirror.get(f"/noarch/{file}").body == new
    assert upstream.count(f"/noarch/{file}") == 2


def test_records_are_asked_for_again_when_fewer_of_them_are_newer(at, upstream):
    slow, file = at("slow"), "skewed-1.0-py_0.conda"
    upstream.add("skewed")
    assert slow.get("/noarch/repodata.json").status == 200
    new = upstream.add("skewed", depends=["other"])
    records = {"info": {"subdir": "noarch"}, "packages": {}, "packages.conda": upstream.records["noarch"]}
    upstream.serve_document("/noarch/current_repodata.json", records)
    digest = hashlib.sha256(new).hexdigest()
    assert digests_in(slow, file, "current_repodata.json")["sha256"] == digest
    assert digests_in(slow, file)["sha256"] == digest
    assert slow.get(f"/noarch/{file}").body == new
