"""Registries and folders of other programs are taken in: CNCF distribution, another pkgrepo, and OCI layouts."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client_programs import program
from tests.support.configurations import hosted
from tests.support.container_clients import push_image
from tests.support.distribution import distribution
from tests.support.http_client import HttpClient
from tests.support.images import Image, make_artifact, make_image, make_index, make_oci_archive
from tests.support.imports import counts, take
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess, running

CHILDREN = [make_image("amd", architecture="amd64"), make_image("arm", architecture="arm64")]
INDEX = make_index(CHILDREN)
APP = make_image("app")
TOOLS = make_image("tools")
SIGNATURE = make_artifact(INDEX, "application/vnd.example.signature")
TAG_OF_REFERRERS = INDEX.digest.replace(":", "-")
IMAGES = {"team/app": {"1.0": APP, "latest": INDEX}, "base": {"edge": make_image("base")}}
ACCEPT = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json"


def fill(wire: HttpClient, prefix: str = "", *, referrers: bool) -> None:
    for each in CHILDREN:
        push_image(wire, f"{prefix}team/app", each, each.digest)
    for name, tags in IMAGES.items():
        for tag, image in tags.items():
            push_image(wire, f"{prefix}{name}", image, tag)
    push_image(wire, f"{prefix}team/app", SIGNATURE, SIGNATURE.digest)
    if not referrers:  # as clients do at registries without the API
        value = make_index([SIGNATURE])
        push_image(wire, f"{prefix}team/app", value, TAG_OF_REFERRERS)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the registry, and of some layouts."""
    folder = tmp_path_factory.mktemp("registry")
    layouts = folder / "layouts" / "team" / "app"
    (layouts / ".uploads").mkdir(parents=True)
    (folder / "layouts" / "_trivy").mkdir()  # as zot has them
    archive = make_oci_archive({"1.0": APP, "latest": INDEX, "": SIGNATURE}, CHILDREN)
    for place, content in ((layouts, archive), (layouts / "tools", make_oci_archive({"edge": TOOLS}))):
        place.mkdir(exist_ok=True)
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            tar.extractall(place, filter="data")
    return folder


@pytest.fixture(scope="module")
def registry(place: Path) -> Iterator[str]:
    program("docker-registry")
    with distribution(place) as url:
        fill(HttpClient(url), referrers=False)
        yield url


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, place: Path) -> Iterator[ServerProcess]:
    settings = f'proxy.allow_private = ["127.0.0.1"]\nimports.folders = ["{place}"]\n'
    names = ("registry", "storage", "layouts", "theirs", "peer")
    with running(tmp_path_factory.mktemp("server"), settings + hosted("docker", *names)) as started:
        yield started


@pytest.fixture
def client(server: ServerProcess) -> HttpClient:
    return HttpClient(server.url, (USER, PASSWORD))


def check(client: HttpClient, repository: str, names: dict[str, dict[str, Image]]) -> None:
    """Check that the tags of images stand for their manifests, and that all blobs are there."""
    for name, tags in names.items():
        for tag, image in tags.items():
            reply = client.get(f"/v2/main/{repository}/{name}/manifests/{tag}", accept=ACCEPT)
            assert (reply.status, reply.body) == (200, image.manifest), (name, tag, reply.text)
    for child in CHILDREN:
        assert client.get(f"/v2/main/{repository}/team/app/manifests/{child.digest}", accept=ACCEPT).status == 200
    listed = client.get(f"/v2/main/{repository}/team/app/referrers/{INDEX.digest}").json["manifests"]
    assert [each["digest"] for each in listed] == [SIGNATURE.digest]


@pytest.mark.parametrize("into", ["registry", "storage"])
def test_a_registry_is_taken_in_once(into, registry, place, client) -> None:
    source = registry if into == "registry" else place / "images"
    first = take(client, "container", source, f"main/{into}")
    second = take(client, "container", source, f"main/{into}")
    third = take(client, "container", source, f"main/{into}", again=True)
    assert counts(first) == (7, 0, 0), first
    assert (counts(second), second["unchanged"]) == ((0, 0, 0), 2)
    assert counts(third) == (0, 4, 0)
    check(client, into, IMAGES)


def test_another_server_with_tokens_and_referrers_is_taken_in(client, server) -> None:
    fill(client, "main/theirs/", referrers=True)
    given = {"credentials": {"username": USER, "password": PASSWORD}, "only": ["main/theirs/*"]}
    renamed = {"main/theirs/": ""}
    first = take(client, "container", server.url, "main/peer", renamed=renamed, **given)
    assert counts(first) == (6, 0, 0), first
    check(client, "peer", IMAGES)
    assert counts(take(client, "container", server.url, "main/peer", renamed=renamed, **given)) == (0, 0, 0)


def test_layouts_are_taken_in(client, place) -> None:
    assert counts(take(client, "container", place / "layouts", "main/layouts")) == (6, 0, 0)
    check(client, "layouts", {"team/app": IMAGES["team/app"], "team/app/tools": {"edge": TOOLS}})
    assert counts(take(client, "container", place / "layouts", "main/layouts")) == (0, 0, 0)
