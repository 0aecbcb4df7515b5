"""Tags follow the source as long as nobody moves them here; names of the past are served as they were."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.configurations import MOVING, hosted
from tests.support.container_clients import push_image
from tests.support.http_client import HttpClient
from tests.support.images import Image, digest_of, make_image
from tests.support.imports import take, write
from tests.support.npm_packages import make_manifest, make_publish, make_tarball
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import running

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sources")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, sources: Path) -> Iterator[HttpClient]:
    settings = f'imports.folders = ["{sources}"]\n' + hosted("npm", "node") + hosted("docker", images=MOVING)
    with running(tmp_path_factory.mktemp("server"), settings) as started:
        yield HttpClient(started.url, (USER, PASSWORD))


def storage(folder: Path, tags: dict[str, str], *versions: str) -> Path:
    """The storage of a Verdaccio with the package ``left``."""
    dist = {text: {"tarball": f"http://old/left/-/left-{text}.tgz"} for text in versions}
    manifests = {text: {**make_manifest("left", text), "dist": each} for text, each in dist.items()}
    document = {"name": "left", "versions": manifests, "dist-tags": tags}
    tarballs = {f"left/left-{text}.tgz": make_tarball("left", text) for text in versions}
    return write(folder, {"left/package.json": json.dumps(document).encode(), **tarballs})


def test_a_dist_tag_that_was_moved_here_stays(client, sources) -> None:
    def tags() -> dict[str, str]:
        found = client.get("/repositories/main/node/left").json["dist-tags"]
        return {name: found[name] for name in ("latest", "next")}

    folder = storage(sources / "node", {"latest": "1.0.0", "next": "1.0.0"}, "1.0.0")
    assert take(client, "npm", folder, "main/node")["left_out"] == []
    storage(folder, {"latest": "1.1.0", "next": "1.1.0"}, "1.0.0", "1.1.0")
    assert take(client, "npm", folder, "main/node")["left_out"] == []
    assert tags() == {"latest": "1.1.0", "next": "1.1.0"}
    moved = client.ask("PUT", "/repositories/main/node/-/package/left/dist-tags/next", '"1.0.0"')
    assert moved.status < 300, moved.text
    storage(folder, {"latest": "1.2.0", "next": "1.2.0"}, "1.0.0", "1.1.0", "1.2.0")
    result = take(client, "npm", folder, "main/node")
    assert (result["files"], [each["item"] for each in result["left_out"]]) == (1, ["tag next"])
    assert tags() == {"latest": "1.2.0", "next": "1.0.0"}


def test_the_tag_of_an_image_that_was_pushed_here_stays(client, sources) -> None:
    def layout(image: Image) -> Path:
        listed = [
            {**image.descriptor, "annotations": {"org.opencontainers.image.ref.name": tag}} for tag in ("1.0", "latest")
        ]
        blobs = {f"app/blobs/sha256/{digest_of(each)[7:]}": bytes(each) for each in (*image.blobs, image.manifest)}
        index = json.dumps({"schemaVersion": 2, "manifests": listed}).encode()
        return write(sources / "images", {"app/index.json": index, **blobs})

    def digest(tag: str) -> str:
        reply = client.head(f"/v2/main/images/app/manifests/{tag}", accept="application/vnd.oci.image.manifest.v1+json")
        return reply.headers["docker-content-digest"]

    first, second, third, own = (make_image(text) for text in ("first", "second", "third", "own"))
    for image in (first, second):
        assert take(client, "container", layout(image), "main/images")["left_out"] == []
        assert digest("latest") == digest("1.0") == image.digest
    push_image(client, "main/images/app", own, "latest")
    result = take(client, "container", layout(third), "main/images")
    assert [each["item"] for each in result["left_out"]] == ["latest"]
    assert (digest("latest"), digest("1.0")) == (own.digest, third.digest)


def test_a_package_with_an_old_name_is_served_as_it_was(client, sources) -> None:
    data = make_tarball("OldName", "0.1.0")
    folder = write(sources / "old", {"OldName/OldName-0.1.0.tgz": data, "OldName/OldName-x.tgz": b"no version"})
    result = take(client, "npm", folder, "main/node")
    assert (result["files"], result["left_out_count"]) == (1, 1)
    document = client.get("/repositories/main/node/OldName").json
    assert document["dist-tags"] == {"latest": "0.1.0"}
    assert document["time"]["0.1.0"].startswith("2014-05-13")
    assert client.get("/repositories/main/node/OldName/-/OldName-0.1.0.tgz").body == data
    refused = client.ask("PUT", "/repositories/main/node/NewName", make_publish("NewName", "1.0.0"))
    assert refused.status in (400, 403, 415), refused.text
