"""Proxies that lead to each other in a circle answer at once, and keep nothing of it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.configurations import hosted
from tests.support.container_clients import ADMIN
from tests.support.http_client import HttpClient
from tests.support.images import make_image
from tests.support.npm_packages import make_publish
from tests.support.proxied import PRIVATE
from tests.support.server_process import ServerProcess, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(tmp_path_factory.mktemp("server"), PRIVATE + hosted("npm", "own")) as process:
        yield process


@pytest.fixture(scope="module")
def wire(server: ServerProcess) -> HttpClient:
    return HttpClient(server.url, ADMIN)


def make(wire: HttpClient, format_: str, **upstreams: str | list[str]) -> None:
    """Make repositories, each a proxy of an address, or virtual over members."""
    for name, upstream in upstreams.items():
        if isinstance(upstream, str):
            config = {"type": "Proxy", "proxy": {"routes": [{"url": upstream, "name": "next", "priority": 0}]}}
        else:
            config = {"type": "Virtual", "members": upstream}
        body = {"name": name, "storage": "main", "format": format_, "visibility": "public", "config": config}
        reply = wire.post_json("/api/repository", body)
        assert reply.status == 201, reply.body


PATHS = {
    "npm": "/repositories/main/{name}/left",
    "python": "/repositories/main/{name}/simple/left/",
    "docker": "/v2/main/{name}/left/manifests/v1",
}


def address(server: ServerProcess, format_: str, name: str) -> str:
    return {
        "npm": f"{server.url}/repositories/main/{name}",
        "python": f"{server.url}/repositories/main/{name}/simple/",
        "docker": f"{server.url}/v2/main/{name}",
    }[format_]


@pytest.mark.parametrize("format_", PATHS)
@pytest.mark.parametrize("length", [1, 2, 3])
def test_circle_of_proxies_ends_at_once(server: ServerProcess, wire: HttpClient, format_: str, length: int) -> None:
    names = [f"{format_}-{length}-{number}" for number in range(length)]
    following = [*names[1:], names[0]]
    make(wire, format_, **{name: address(server, format_, then) for name, then in zip(names, following, strict=True)})
    for name in names:
        reply = wire.get(PATHS[format_].format(name=name))
        assert reply.status == 508, (name, reply)
        assert b"leads back to where the request came from" in reply.body


def test_circle_through_a_virtual_repository_ends_and_what_a_hosted_member_has_is_served(
    server: ServerProcess, wire: HttpClient
) -> None:
    make(wire, "npm", round_=address(server, "npm", "all"), all=["main/own", "main/round_"])
    assert wire.get("/repositories/main/all/nobodys").status == 508
    assert wire.put("/repositories/main/own/ours", make_publish("ours", "1.0.0")).status == 201
    for name in ("all", "round_"):
        assert wire.get(f"/repositories/main/{name}/ours").status == 200
        assert wire.get(f"/repositories/main/{name}/ours/-/ours-1.0.0.tgz").status == 200


def test_chain_without_a_circle_is_served(server: ServerProcess, wire: HttpClient) -> None:
    assert wire.put("/repositories/main/own/chained", make_publish("chained", "1.0.0")).status == 201
    names = [f"chain-{number}" for number in range(6)]
    for name, then in zip(names, ["own", *names], strict=False):
        make(wire, "npm", **{name: address(server, "npm", then)})
    reply = wire.get(f"/repositories/main/{names[-1]}/chained")
    assert (reply.status, reply.json["dist-tags"]) == (200, {"latest": "1.0.0"})


def test_many_clients_of_a_circle_are_all_answered(server: ServerProcess, wire: HttpClient) -> None:
    make(wire, "npm", many=address(server, "npm", "back"), back=address(server, "npm", "many"))
    with ThreadPoolExecutor(20) as pool:
        replies = [*pool.map(lambda n: wire.get(f"/repositories/main/many/package-{n % 5}"), range(40))]
    assert {each.status for each in replies} == {508}


@pytest.mark.parametrize("field", ["", ",,,", "x" * 10_000, "é", ", ".join(f"{n:016x}" for n in range(19))])
def test_names_that_are_not_ours_change_nothing(wire: HttpClient, field: str) -> None:
    reply = wire.get("/repositories/main/own/none", **{"Pkgrepo-Via": field})
    assert reply.status == 404


def test_very_long_way_is_taken_for_a_circle(server: ServerProcess, wire: HttpClient) -> None:
    make(wire, "npm", long=address(server, "npm", "own"))
    way = ", ".join(f"{number:016x}" for number in range(20))
    assert wire.get("/repositories/main/long/none", **{"Pkgrepo-Via": way}).status == 508
    assert wire.get("/repositories/main/long/none").status == 404, "what a circle was answered is not kept"


def test_circle_of_two_servers_ends_at_once(server: ServerProcess, wire: HttpClient, tmp_path: Path) -> None:
    image = make_image("none")
    with running(tmp_path, PRIVATE + hosted("docker", "own")) as other:
        make(wire, "docker", here=f"{other.url}/v2/main/there")
        make(HttpClient(other.url, ADMIN), "docker", there=f"{server.url}/v2/main/here")
        for path in ("manifests/v1", f"manifests/{image.digest}", f"blobs/{image.digest}", "tags/list"):
            assert wire.get(f"/v2/main/here/app/{path}").status == 508, path
