"""crane: push, copy, tag, index, validate, list and delete."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.configurations import MOVING, PRIVATE, hosted
from tests.support.container_clients import ADMIN, BOB, ContainerClients, add_bob, host_of, push_image
from tests.support.http_client import HttpClient
from tests.support.images import make_image, write_layout
from tests.support.server_process import ServerProcess

CONFIG = hosted("docker", "images", moving=MOVING, private=PRIVATE)


@pytest.fixture(scope="module")
def server(server: ServerProcess) -> ServerProcess:
    """The server with the user bob, who may write."""
    add_bob(HttpClient(server.url, ADMIN), "main/images")
    return server


class Crane(ContainerClients):
    """Runs crane, which pushes images from layouts on disk."""

    def __call__(self, *arguments: str | Path, status: int | None = 0) -> str:
        return self.run("crane", *arguments, status=status).strip()

    def push(self, content: str, image: str, status: int | None = 0) -> str:
        """Push an image with this content. Returns its reference by digest, the last word of crane's output."""
        folder = self.folder / f"layout-{content}"
        if not folder.exists():
            write_layout(folder, make_image(content))
        return self("push", folder, f"{self.host}/{image}", status=status)


@pytest.fixture
def crane(tmp_path: Path, server: ServerProcess) -> Crane:
    """crane, logged in as the admin."""
    made = Crane(tmp_path, host_of(server))
    made.log_in(*ADMIN)
    return made


@pytest.mark.shows("login", by=("crane",))
def test_crane_logs_in_and_out(crane: Crane) -> None:
    crane.log_out()
    crane("auth", "login", crane.host, "-u", BOB[0], "-p", BOB[1])
    crane.push("bobs", "main/images/bobs:1")
    crane("auth", "logout", crane.host)
    assert "UNAUTHORIZED" in crane.push("bobs", "main/images/bobs:2", status=1)


@pytest.mark.shows("publish", "install", by=("crane",))
def test_a_pulled_image_equals_the_pushed_one(crane: Crane) -> None:
    image, name = make_image("pushed"), f"{crane.host}/main/images/pushed"
    assert crane.push("pushed", "main/images/pushed:1").endswith(f"{name}@{image.digest}")
    assert crane("digest", f"{name}:1") == image.digest
    assert crane("manifest", f"{name}:1").encode() == image.manifest
    assert json.loads(crane("config", f"{name}:1")) == json.loads(image.blobs[0])
    crane("validate", "--remote", f"{name}:1")
    crane("pull", "--format=oci", f"{name}@{image.digest}", crane.folder / "pulled")
    index = json.loads((crane.folder / "pulled" / "index.json").read_text())
    assert [each["digest"] for each in index["manifests"]] == [image.digest]


def test_tags_are_set_and_listed(crane: Crane) -> None:
    crane.push("tagged", "main/images/tagged:1")
    for tag in ("latest", "1.0"):
        crane("tag", f"{crane.host}/main/images/tagged:1", tag)
    assert crane("ls", f"{crane.host}/main/images/tagged").splitlines() == ["1", "1.0", "latest"]


def test_a_copy_inside_the_server_sends_no_layer(crane: Crane, server: ServerProcess) -> None:
    crane.push("copied", "main/images/copy/from:1")
    target = f"{crane.host}/main/moving/copy/to:1"
    crane("copy", f"{crane.host}/main/images/copy/from:1", target)
    crane("validate", "--remote", target)
    starts = server.lines("POST /v2/main/moving/copy/to/blobs/uploads/", 2)
    assert all(" 201 " in line for line in starts), "each blob was mounted"


def test_crane_makes_an_index_of_platforms(crane: Crane, wire: HttpClient) -> None:
    name = f"{crane.host}/main/images/index"
    images = {each: make_image(each, architecture=each) for each in ("amd64", "arm64")}
    for tag, image in images.items():
        push_image(wire, "main/images/index", image, tag)
    crane("index", "append", "-m", f"{name}:amd64", "-m", f"{name}:arm64", "-t", f"{name}:all")
    crane("validate", "--remote", f"{name}:all")
    for platform, image in images.items():
        assert crane("digest", "--platform", f"linux/{platform}", f"{name}:all") == image.digest
    crane("index", "filter", f"{name}:all", "--platform", "linux/arm64", "-t", f"{name}:arm")
    listed = json.loads(crane("manifest", f"{name}:arm"))["manifests"]
    assert [each["digest"] for each in listed] == [images["arm64"].digest]


@pytest.mark.shows("refusal", by=("crane",))
def test_a_refused_overwrite_is_printed(crane: Crane) -> None:
    crane.push("one", "main/images/fixed:v1")
    crane.push("one", "main/images/fixed:v1")
    shown = crane.push("two", "main/images/fixed:v1", status=1)
    assert "DENIED: tag v1 already exists and this repository does not allow tags to be overwritten" in shown
    crane.push("one", "main/moving/app:v1")
    crane.push("two", "main/moving/app:v1")
    assert crane("digest", f"{crane.host}/main/moving/app:v1") == make_image("two").digest


def test_deleted_images_are_gone(crane: Crane, wire: HttpClient) -> None:
    name, image = f"{crane.host}/main/images/deleted", make_image("deleted")
    crane.push("deleted", "main/images/deleted:1")
    crane("tag", f"{name}:1", "2")
    crane("delete", f"{name}:2")
    assert crane("ls", name) == "1"
    crane("delete", f"{name}@{image.digest}")
    assert "MANIFEST_UNKNOWN" in crane("manifest", f"{name}:1", status=1)
    assert wire.head(f"/v2/main/images/deleted/manifests/{image.digest}").status == 404


def test_the_catalog_lists_readable_images_only(crane: Crane) -> None:
    crane.push("seen", "main/images/seen:1")
    crane.push("hidden", "main/private/hidden:1")
    assert {"main/images/seen", "main/private/hidden"} <= set(crane("catalog", crane.host).splitlines())
    for log_in in (crane.log_out, lambda: crane.log_in(*BOB)):
        log_in()
        shown = crane("catalog", crane.host).splitlines()
        assert "main/images/seen" in shown
        assert "main/private/hidden" not in shown
    assert "NAME_UNKNOWN" in crane("manifest", f"{crane.host}/main/private/hidden:1", status=1)


def test_crane_appends_a_layer_to_an_image(crane: Crane) -> None:
    archive = crane.folder / "more.tar"
    crane.push("base", "main/images/base:1")
    crane("export", f"{crane.host}/main/images/base:1", archive)
    crane("append", "-b", f"{crane.host}/main/images/base:1", "-f", archive, "-t", f"{crane.host}/main/images/base:2")
    crane("validate", "--remote", f"{crane.host}/main/images/base:2")
    crane("mutate", f"{crane.host}/main/images/base:2", "-l", "a=b", "-t", f"{crane.host}/main/images/base:3")
    assert json.loads(crane("config", f"{crane.host}/main/images/base:3"))["config"]["Labels"] == {"a": "b"}
