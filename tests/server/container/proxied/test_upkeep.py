"""What is kept of upstreams: counted, checked, and not collected."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.container_proxy import ONE, TWO, Make
from tests.support.data_folder import DataFolder, wait_for
from tests.support.images import digest_of, make_index
from tests.support.upstreams.container import ContainerUpstream
from tests.support.upstreams.messages import Answer


@pytest.mark.one_process("each worker has a memory of its own")
def test_pulls_of_kept_images_are_answered_from_memory(make: Make) -> None:
    scene = make()
    scene.upstream.push("app", ONE, "1")
    data = DataFolder(scene.server.folder / "data")
    for _ in range(3):
        scene.pull("app", ONE)
        wait_for(lambda: data.rows("SELECT COUNT(*) FROM package_blob") == [(len(ONE.blobs),)], scene.server)
        assert scene.get("app/tags/list").json["tags"] == ["1"]
    for path in ("manifests/1", *(f"blobs/{digest_of(blob)}" for blob in ONE.blobs), "tags/list"):
        lines = scene.server.lines(f"GET /v2/main/images/app/{path} 200", 3)
        assert lines[2].rstrip().endswith("hot"), lines


def test_use_of_the_cache_is_counted(make: Make) -> None:
    scene = make(cache_ttl="0")
    data = DataFolder(scene.server.folder / "data")
    scene.upstream.push("app", ONE, "1")
    scene.pull("app", ONE)
    wait_for(lambda: data.rows("SELECT COUNT(*) FROM package_blob") == [(len(ONE.blobs),)], scene.server)
    scene.pull("app", ONE)
    assert scene.get("app/manifests/2").status == 404
    scene.upstream.misbehave("*", Answer(500), repeat=True)
    scene.pull("app", ONE)
    scene.server.stop()
    counted = data.rows("SELECT SUM(misses), SUM(confirmed), SUM(stale), SUM(absent), SUM(hits) FROM cache_count")
    hits = 2 * (1 + len(ONE.blobs))
    assert counted == [(3, 1, 1, 1, hits)], (
        "what is kept and sent is a hit: the manifest by its download, and each blob"
    )


def test_upstreams_are_checked(make: Make) -> None:
    scene = make(ContainerUpstream(challenge="bearer"))
    path = "/api/repository/main%2Fimages/upstream/check"
    assert scene.wire.post_json(path, {}).json["ok"]
    scene.upstream.stop()
    assert not scene.wire.post_json(path, {}).json["ok"]


def test_kept_images_are_counted_and_not_collected(make: Make) -> None:
    scene = make()
    index = make_index([ONE, TWO])
    scene.upstream.push("app", index, "1", children=(ONE, TWO))
    scene.pull("app", index)
    scene.pull("app", ONE, ONE.digest)
    scene.pull("app", TWO, TWO.digest)
    scene.upstream.push("by/digest", ONE)
    scene.pull("by/digest", ONE, ONE.digest)
    listed: Any = scene.wire.get("/api/repository").json
    found = next(each for each in listed["items"] if each["name"] == "images")
    reply = scene.wire.post_json(
        f"/api/repository/{found['id']}/gc?wait=true", {"grace_seconds": 0, "delete_untagged": True}
    )
    assert (reply.status, reply.json["manifests_deleted"], reply.json["blobs_deleted"]) == (200, 0, 0)
    scene.upstream.stop()
    scene.pull("app", TWO, TWO.digest)
    scene.pull("by/digest", ONE, ONE.digest)
