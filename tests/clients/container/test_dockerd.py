"""docker with its own daemon: push, remove and pull of images, and its output for each refusal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.access_log import log_since_mark
from tests.support.configurations import MOVING, PRIVATE, config, hosted, trusting
from tests.support.container_clients import ADMIN, BOB, add_bob, host_of, ok, push_image
from tests.support.container_daemons import Docker
from tests.support.http_client import HttpClient
from tests.support.images import make_image
from tests.support.server_process import ServerProcess
from tests.support.signing import Signer, sign_simply, signature_tag

SIGNER = Signer()
CONFIG = '[container]\ndefault_repository = "main/moving"\n' + hosted(
    "docker",
    "images",
    moving=MOVING,
    private=PRIVATE,
    members=config(push_rules="must_be_project_member = true"),
    tokens=config(push_rules="must_use_auth_token_for_push = true"),
    signed=trusting(SIGNER.pem),
)


@pytest.fixture(scope="module")
def server(server: ServerProcess) -> ServerProcess:
    """A server with a repository for each rule, and the user bob, who may write to them."""
    add_bob(HttpClient(server.url, ADMIN), *(f"main/{each}" for each in ("images", "moving", "members", "tokens")))
    return server


@pytest.fixture
def docker(tmp_path: Path, server: ServerProcess, daemon: str) -> Docker:
    """docker, logged in as the admin."""
    made = Docker(tmp_path, host_of(server), daemon)
    made.log_in(*ADMIN)
    return made


@pytest.mark.shows("publish", "install", by=("docker",))
def test_a_pushed_image_is_pulled_unchanged_after_its_removal(docker: Docker, wire: HttpClient) -> None:
    image = docker.make("main/images/proj/app:1", "round")
    docker("push", image)
    before = docker.identity(image), docker.digest(image)
    assert wire.head("/v2/main/images/proj/app/manifests/1").headers["docker-content-digest"] == before[1]
    docker("rmi", image)
    assert "Downloaded newer image" in docker("pull", image)
    assert (docker.identity(image), docker.digest(image)) == before
    docker("pull", f"{image.rpartition(':')[0]}@{before[1]}")


def test_what_docker_saves_is_published_by_a_form(docker: Docker, wire: HttpClient, tmp_path: Path) -> None:
    image = docker.make("main/images/unsaved:1", "saved")
    docker("save", "--output", str(tmp_path / "saved.tar"), image)
    form = [("image", "saved"), ("tag", "2"), ("file", "saved.tar", (tmp_path / "saved.tar").read_bytes())]
    reply = wire.post_form("/api/repository/main%2Fimages/upload", form)
    assert (reply.status, reply.json["version"]) == (200, "2"), reply.body
    before = docker.identity(image)
    docker("rmi", image)
    published = image.replace("unsaved:1", "saved:2")
    docker("pull", published)
    assert docker.identity(published) == before


def test_a_second_push_sends_no_layer(docker: Docker, server: ServerProcess) -> None:
    image = docker.make("main/images/twice:1", "twice")
    docker("push", image)
    assert "PATCH /v2/main/images/twice/blobs/" in log_since_mark(server, "first-push")
    shown = docker("push", image)
    assert "Layer already exists" in shown
    assert "Pushed" not in shown
    log = log_since_mark(server, "second-push")
    assert "PUT /v2/main/images/twice/manifests/" in log
    assert "PATCH" not in log


def test_layers_are_mounted_from_another_image(docker: Docker, server: ServerProcess) -> None:
    image = docker.make("main/images/mount/from:1", "mounted")
    docker("push", image)
    other = f"{docker.host}/main/images/mount/to:1"
    docker("tag", image, other)
    assert "Mounted from main/images/mount/from" in docker("push", other)


def test_a_name_without_a_repository_means_the_default_repository(docker: Docker, wire: HttpClient) -> None:
    docker("push", docker.make("proj/img:1", "default"))
    assert wire.get("/v2/main/moving/proj/img/tags/list").json["tags"] == ["1"]


def test_a_manifest_list_is_pushed_and_one_platform_pulled(docker: Docker, wire: HttpClient) -> None:
    name = f"{docker.host}/main/images/platforms"
    images = {each: make_image(each, architecture=each) for each in ("amd64", "arm64")}
    for tag, image in images.items():
        push_image(wire, "main/images/platforms", image, tag)
    docker("manifest", "create", "--insecure", f"{name}:1", *(f"{name}:{tag}" for tag in images))
    docker("manifest", "push", "--insecure", f"{name}:1")
    listed = wire.get("/v2/main/images/platforms/manifests/1").json["manifests"]
    assert {each["digest"] for each in listed} == {image.digest for image in images.values()}
    docker("pull", "--platform", "linux/arm64", f"{name}:1")
    assert docker("image", "inspect", "--format", "{{.Architecture}}", f"{name}:1").strip() == "arm64"


@pytest.mark.shows("refusal", by=("docker",))
def test_a_tag_is_moved_only_if_the_repository_allows_it(docker: Docker) -> None:
    image = docker.make("main/images/fixed:v1", "one")
    docker("push", image)
    docker("push", image)
    docker.make("main/images/fixed:v1", "two")
    shown = docker("push", image, status=1)
    assert "denied: tag v1 already exists and this repository does not allow tags to be overwritten" in shown
    moving = docker.make("main/moving/app:v1", "one")
    docker("push", moving)
    docker.make("main/moving/app:v1", "two")
    docker("push", moving)


@pytest.mark.shows("login", by=("docker",))
def test_a_login_requires_the_right_password(docker: Docker) -> None:
    docker.log_out()
    shown = docker("login", "-u", BOB[0], "-p", "wrong", docker.host, status=1)
    assert "unauthorized: incorrect username or password" in shown
    assert "Login Succeeded" in docker("login", "-u", BOB[0], "-p", BOB[1], docker.host)
    docker("push", docker.make("main/images/bobs:1", "bobs"))
    docker("logout", docker.host)
    assert json.loads((docker.home / ".docker" / "config.json").read_text()).get("auths", {}) == {}


@pytest.mark.shows("private", by=("docker",))
def test_anonymous_clients_pull_public_images_only(docker: Docker) -> None:
    public, private = docker.make("main/images/open:1", "open"), docker.make("main/private/app:1", "private")
    docker("push", public)
    docker("push", private)
    docker("rmi", public, private)
    docker.log_out()
    docker("pull", public)
    assert "unauthorized: authentication required" in docker("push", public, status=1)
    assert "unauthorized" in docker("pull", private, status=1)
    docker.log_in(*BOB)
    assert "not found" in docker("pull", private, status=1)


def test_only_members_push_to_a_project(docker: Docker, server: ServerProcess, wire: HttpClient) -> None:
    image = docker.make("main/members/team/app:1", "members")
    docker.log_in(*BOB)
    shown = docker("push", image, status=1)
    assert "denied: no project owns" in shown
    assert "must_be_project_member" in shown
    ok(wire.post_json("/api/project", {"key": "team"}))
    ok(wire.post_json("/api/project/team/bindings", {"repository": "main/members", "pattern": "team"}))
    assert "denied: only members of project team may push" in docker("push", image, status=1)
    refused = server.lines("POST /v2/main/members/team/app/blobs/uploads/", 2)
    assert all(" 403 " in line for line in refused)
    assert "PATCH /v2/main/members/" not in server.output, "refused before any byte of a layer"
    ok(wire.post_json("/api/project/team/members", {"user": BOB[0], "role": "developer"}))
    docker("push", image)


def test_a_repository_can_require_access_tokens_for_pushes(docker: Docker, wire: HttpClient) -> None:
    image = docker.make("main/tokens/app:1", "tokens")
    docker("login", "-u", BOB[0], "-p", BOB[1], docker.host)
    shown = docker("push", image, status=1)
    assert "denied: pushes to this repository need an access token, not a password" in shown
    token = ok(wire.as_user(*BOB).post_json("/api/user/token", {"name": "push"})).json["token"]
    docker("login", "-u", "anybody", "-p", token, docker.host)
    docker("push", image)


def test_only_signed_images_are_pulled_where_trust_is_required(docker: Docker, wire: HttpClient) -> None:
    image = docker.make("main/signed/app:1", "signed")
    docker("push", image)
    digest = docker.digest(image)
    docker("rmi", image)
    docker.log_out()
    assert "not signed by a trusted key" in docker("pull", image, status=1)
    push_image(wire, "main/signed/app", sign_simply(Signer(), digest), signature_tag(digest))
    docker("pull", image, status=1)
    push_image(wire, "main/signed/app", sign_simply(SIGNER, digest), signature_tag(digest))
    docker("pull", image)
    assert docker.digest(image) == digest
