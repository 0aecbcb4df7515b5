"""skopeo, podman, crane and oras pull through a proxy: cold, warm, and when the upstream is stopped."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from tests.support.configurations import hosted, virtual
from tests.support.container_clients import ADMIN, ContainerClients, host_of, ok, push_image
from tests.support.container_tools import CREDS, Tools
from tests.support.http_client import HttpClient
from tests.support.images import make_image
from tests.support.proxied_images import IMAGES, INDEX, REPORT, Scene
from tests.support.server_process import running


@pytest.mark.shows("proxy", by=("skopeo",))
def test_skopeo_copies_all_platforms(scene: Scene, tools: Tools) -> None:
    def copy(to: str) -> None:
        source = f"docker://{scene.image}:v1"
        tools.skopeo("copy", "--all", "--src-tls-verify=false", source, f"dir:{tools.folder / to}")
        assert (tools.folder / to / "manifest.json").read_bytes() == INDEX.manifest

    copy("cold")
    copy("warm")
    scene.upstream.close()
    copy("alone")
    shown = json.loads(tools.skopeo("inspect", "--tls-verify=false", f"docker://{scene.image}:v1"))
    assert shown["Digest"] == INDEX.digest
    assert shown["RepoTags"] == ["v1"], "those that are kept"


def test_clients_print_why_the_image_of_a_platform_is_refused(scene: Scene, tools: Tools) -> None:
    wire = HttpClient(scene.server.url, ADMIN)
    rule = {"name": "rights", "reason": "ask security", "match": {"contents": ["root_user", "setuid"]}}
    policy = "/api/repository/main%2Fimages/config/policy"
    ok(wire.post_json(policy, {"rules": [rule]}, "PATCH"))
    source, target = f"docker://{scene.image}:v1", f"dir:{tools.folder / 'out'}"
    for arguments in (("copy", "--src-tls-verify=false", source, target), ("inspect", "--tls-verify=false", source)):
        printed = tools.skopeo(*arguments, status=1)
        assert "(root_user inside): ask security" in printed
    printed = tools.podman("pull", "--tls-verify=false", f"{scene.image}:v1", status=125)
    assert "(root_user inside): ask security" in printed
    rule = {**rule, "match": {"contents": ["setuid"]}}
    ok(wire.post_json(policy, {"rules": [rule]}, "PATCH"))
    tools.skopeo("copy", "--src-tls-verify=false", source, target)


def test_skopeo_is_told_that_nothing_can_be_pushed(scene: Scene, tools: Tools) -> None:
    shown = tools.push("refused", f"{scene.image}:mine", CREDS, status=1)
    assert "repository main/images is a proxy" in shown


@pytest.mark.shows("virtual", by=("skopeo",))
def test_skopeo_pushes_to_a_member_of_a_virtual_repository(tmp_path: Path, tools: Tools) -> None:
    text = hosted("docker", "own") + virtual("docker", "all", "main/own", publish_to="main/own")
    with running(tmp_path, text) as server:
        host = host_of(server)
        tools.push("virtual", f"{host}/main/all/app:v1")
        tools.skopeo("copy", "--src-tls-verify=false", f"docker://{host}/main/all/app:v1", f"dir:{tmp_path / 'pulled'}")
        wire = HttpClient(server.url, ADMIN)
        assert wire.get("/v2/main/own/app/manifests/v1").body == make_image("virtual").manifest


@pytest.mark.parametrize("member", ["base", "images"])
def test_an_image_of_a_member_is_extended_through_the_virtual_repository(
    scene: Scene, tools: Tools, tmp_path: Path, member: str
) -> None:
    wire = HttpClient(scene.server.url, ADMIN)
    config = {"type": "Virtual", "members": [f"main/{member}", "main/own"], "publish_to": "main/own"}
    for each, value in {"base": {"type": "Hosted"}, "own": {"type": "Hosted"}, "all": config}.items():
        record = {"name": each, "storage": "main", "format": "docker", "visibility": "private", "config": value}
        ok(wire.post_json("/api/repository", record))
    push_image(wire, "main/base/team/app", IMAGES["amd64"], "v1")
    name = f"{scene.host}/main/all/team/app"
    layer = tmp_path / "layer.tar"
    with tarfile.open(layer, "w") as archive:
        archive.add(__file__, "more.py")
    clients = ContainerClients(tmp_path, scene.host)
    clients.log_in(*ADMIN)
    clients.run("crane", "append", "--platform=linux/amd64", "-b", f"{name}:v1", "-f", layer, "-t", f"{name}:more")
    clients.run("crane", "validate", "--remote", f"{scene.host}/main/own/team/app:more")
    plain = ["--src-tls-verify=false", "--dest-tls-verify=false", f"--src-creds={CREDS}", f"--dest-creds={CREDS}"]
    tools.skopeo("copy", *plain, f"docker://{name}:more", f"docker://{name}:copy")
    clients.run("crane", "cp", f"{name}:copy", f"{scene.host}/main/all/other/app:v1")
    clients.run("crane", "validate", "--remote", f"{scene.host}/main/own/other/app:v1")


@pytest.mark.shows("proxy", by=("podman",))
def test_podman_pulls_one_platform(scene: Scene, tools: Tools) -> None:
    def pull(platform: str) -> None:
        tools.podman(
            "pull", "--tls-verify=false", "--signature-policy", tools.policy, f"--arch={platform}", f"{scene.image}:v1"
        )
        assert platform in tools.podman("inspect", "--format", "{{.Architecture}}", f"{scene.image}:v1")
        tools.podman("rmi", "--all", "--force")

    pull("arm64")
    scene.upstream.close()
    pull("arm64")


@pytest.mark.shows("proxy", by=("crane", "oras"))
def test_crane_and_oras_read_everything(scene: Scene, tmp_path: Path) -> None:
    clients = ContainerClients(tmp_path, scene.host)

    def read(folder: str) -> None:
        assert clients.run("crane", "digest", f"{scene.image}:v1").strip() == INDEX.digest
        clients.run("crane", "validate", "--remote", f"{scene.image}:v1")
        assert "v1" in clients.run("crane", "ls", scene.image).split()
        clients.run("crane", "pull", "--format=oci", f"{scene.image}:v1", tmp_path / folder)
        tree = clients.run("oras", "discover", "--plain-http", "--format", "json", f"{scene.image}:v1")
        assert REPORT.digest in tree
        clients.run("oras", "copy", "-r", "--from-plain-http", f"{scene.image}:v1", "--to-oci-layout", f"{folder}-all")

    read("cold")
    read("warm")
    scene.upstream.close()
    read("alone")
