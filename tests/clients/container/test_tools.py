"""skopeo, podman and buildah of Debian 12 against a running server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.configurations import MOVING, PRIVATE, config, hosted
from tests.support.container_tools import CREDS, PASSWORD, USER, Tools
from tests.support.http_client import HttpClient
from tests.support.images import digest_of, make_image, write_layout
from tests.support.server_process import ServerProcess

CONFIG = (
    hosted(
        "docker",
        "images",
        moving=MOVING,
        private=PRIVATE,
        tokens=config(push_rules="must_use_auth_token_for_push = true"),
    )
    + '[container]\ndefault_repository = "main/moving"\n'
)


@pytest.mark.shows("publish", "install", by=("skopeo",))
def test_skopeo_pushes_inspects_lists_and_pulls(tools: Tools, host: str) -> None:
    image = f"{host}/main/images/skopeo/app"
    tools.push("hello", f"{image}:v1")
    assert json.loads(tools.skopeo("inspect", "--tls-verify=false", f"docker://{image}:v1"))["Digest"] == (
        make_image("hello").digest
    )
    tags = tools.skopeo("list-tags", "--tls-verify=false", f"docker://{image}")
    assert json.loads(tags)["Tags"] == ["v1"]
    pulled = tools.folder / "pulled"
    tools.skopeo("copy", "--src-tls-verify=false", f"docker://{image}:v1", f"dir:{pulled}")
    assert (pulled / "manifest.json").read_bytes() == make_image("hello").manifest


def test_skopeo_copies_without_sending_layers_again(
    tools: Tools, host: str, wire: HttpClient, server: ServerProcess
) -> None:
    source, target = f"{host}/main/images/copy/from", f"{host}/main/images/copy/to"
    tools.push("copied", f"{source}:v1")
    arguments = ["--src-tls-verify=false", "--dest-tls-verify=false", "--dest-creds", CREDS]
    tools.skopeo("copy", *arguments, f"docker://{source}:v1", f"docker://{target}:v1")
    assert wire.get("/v2/main/images/copy/to/manifests/v1").body == make_image("copied").manifest
    starts = server.lines("POST /v2/main/images/copy/to/blobs/uploads/", 2)  # of two workers in any order
    assert sorted(line.split()[6] for line in starts) == ["201", "202"], "the layer was mounted, the configuration sent"


def test_what_skopeo_and_podman_save_is_published_by_a_form(tools: Tools, host: str, wire: HttpClient) -> None:
    image, folder = f"docker://{host}/main/images/saved", tools.folder
    tools.skopeo("copy", tools.layout("saved"), f"oci-archive:{folder}/oci.tar:team/app:oci")
    tools.skopeo("copy", tools.layout("saved"), f"docker-archive:{folder}/docker.tar:team/app:docker")
    tools.podman("load", "--input", folder / "docker.tar")
    tools.podman("save", "--output", folder / "podman.tar", "team/app:docker")
    for file, tag, expected in (("oci", "", "oci"), ("docker", "", "docker"), ("podman", "again", "again")):
        form = [("image", "saved"), ("tag", tag), ("file", f"{file}.tar", (folder / f"{file}.tar").read_bytes())]
        reply = wire.post_form("/api/repository/main%2Fimages/upload", form)
        assert (reply.status, reply.json["version"]) == (200, expected), reply.body
        found = json.loads(tools.skopeo("inspect", "--tls-verify=false", f"{image}:{expected}"))
        assert len(found["Layers"]) == 1
        tools.skopeo("copy", "--src-tls-verify=false", f"{image}:{expected}", f"dir:{folder / file}")
    assert (folder / "oci" / "manifest.json").read_bytes() == make_image("saved").manifest


def test_skopeo_deletes(tools: Tools, host: str) -> None:
    image = f"docker://{host}/main/images/deleted:v1"
    tools.push("deleted", image.removeprefix("docker://"))
    tools.skopeo("delete", "--tls-verify=false", "--creds", CREDS, image)
    assert "manifest unknown" in tools.skopeo("inspect", "--tls-verify=false", image, status=1)


@pytest.mark.shows("refusal", by=("skopeo",))
def test_a_refused_overwrite_is_printed_and_an_identical_push_accepted(tools: Tools, host: str) -> None:
    image = f"{host}/main/images/fixed:v1"
    tools.push("one", image)
    tools.push("one", image)
    shown = tools.push("two", image, status=1)
    assert "denied: tag v1 already exists and this repository does not allow tags to be overwritten" in shown
    moving = f"{host}/main/moving/app:v1"
    tools.push("one", moving)
    tools.push("two", moving)


def test_a_name_without_a_repository_means_the_default_repository(tools: Tools, host: str, wire: HttpClient) -> None:
    tools.push("default", f"{host}/proj/img:1")
    assert wire.get("/v2/main/moving/proj/img/tags/list").json["tags"] == ["1"]


@pytest.mark.shows("private", by=("skopeo",))
def test_anonymous_clients_neither_push_nor_read_private_images(tools: Tools, host: str) -> None:
    assert "unauthorized" in tools.push("hello", f"{host}/main/images/anonymous:v1", creds="", status=1)
    assert "invalid username/password" in tools.push(
        "hello", f"{host}/main/images/wrong:v1", creds=f"{USER}:wrong", status=1
    )
    image = f"{host}/main/private/app:v1"
    tools.push("hello", image)
    shown = tools.skopeo("inspect", "--no-creds", "--tls-verify=false", f"docker://{image}", status=1)
    assert "unauthorized" in shown


def test_a_repository_can_require_access_tokens(tools: Tools, host: str, wire: HttpClient) -> None:
    image = f"{host}/main/tokens/app:v1"
    shown = tools.push("hello", image, status=1)
    assert "pushes to this repository need an access token, not a password" in shown
    token = wire.post_json("/api/user/token", {"name": "push"}).json["token"]
    tools.push("hello", image, creds=f"anybody:{token}")


@pytest.mark.shows("publish", "install", "login", by=("podman",))
def test_podman_logs_in_pulls_and_pushes(tools: Tools, host: str, wire: HttpClient) -> None:
    login = ["login", "--tls-verify=false", "-u", USER]
    assert "invalid username/password" in tools.podman(*login, "-p", "wrong", host, status=125)
    assert "Login Succeeded" in tools.podman(*login, "-p", PASSWORD, host)
    tools.push("podman", f"{host}/main/private/podman:v1")
    image = f"{host}/main/private/podman"
    tools.podman("pull", "--tls-verify=false", "--signature-policy", tools.policy, f"{image}:v1")
    tools.podman("tag", f"{image}:v1", f"{image}:v2")
    tools.podman("push", "--tls-verify=false", f"{image}:v2")
    assert wire.get("/v2/main/private/podman/tags/list").json["tags"] == ["v1", "v2"]
    assert f"{host}/main/private/podman" in tools.podman("search", "--tls-verify=false", f"{host}/podman")


def test_podman_pushes_an_index_of_two_platforms_and_pulls_one(tools: Tools, host: str, wire: HttpClient) -> None:
    name = f"{host}/main/images/multi"
    tools.podman("login", "--tls-verify=false", "-u", USER, "-p", PASSWORD, host)
    tools.podman("manifest", "create", "multi")
    for architecture in ("amd64", "arm64"):
        folder = write_layout(tools.folder / architecture, make_image(architecture, architecture=architecture))
        image = f"docker://{host}/main/images/multi-{architecture}:1"
        tools.skopeo("copy", "--dest-tls-verify=false", "--dest-creds", CREDS, f"oci:{folder}:v1", image)
        tools.podman("manifest", "add", "--tls-verify=false", "multi", image)
    tools.podman("manifest", "push", "--all", "--tls-verify=false", "multi", f"docker://{name}:1")
    assert len(wire.get("/v2/main/images/multi/manifests/1").json["manifests"]) == 2
    tools.podman(
        "pull",
        "--tls-verify=false",
        "--signature-policy",
        tools.policy,
        "--arch",
        "arm64",
        "--os",
        "linux",
        f"{name}:1",
    )
    assert "arm64" in tools.podman("inspect", "--format", "{{.Architecture}}", f"{name}:1")


@pytest.mark.shows("publish", by=("buildah",))
def test_buildah_pushes_the_image_that_it_built(tools: Tools, host: str, wire: HttpClient) -> None:
    (tools.folder / "file").write_text("built")

    def buildah(*arguments: str | Path) -> str:
        return tools.podman(*arguments, name="buildah").strip()

    container = buildah("from", "scratch").splitlines()[-1]
    buildah("copy", container, tools.folder / "file", "/file")
    buildah("commit", "--signature-policy", tools.policy, container, "built")
    push = ["push", "--tls-verify=false", "--creds", CREDS, "--signature-policy", tools.policy]
    buildah(*push, "built", f"docker://{host}/main/images/built:1")
    manifest = wire.get("/v2/main/images/built/manifests/1")
    assert manifest.status == 200
    for layer in manifest.json["layers"]:
        assert digest_of(wire.get(f"/v2/main/images/built/blobs/{layer['digest']}").body) == layer["digest"]
