"""A server dies before searches know of what was published: after its next start they find all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support import server_buckets, server_databases
from tests.support.configurations import hosted
from tests.support.data_folder import DataFolder, wait_for
from tests.support.http_client import HttpClient
from tests.support.npm_packages import make_publish
from tests.support.power_cuts import ext4_disk
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess, restarts

pytestmark = pytest.mark.faults

REPOSITORIES = hosted("npm", "npm")
BEHIND = "SELECT MAX(seq) - (SELECT CAST(value AS INTEGER) FROM setting WHERE key = 'described_events') FROM event"
LIVES = 10  # at most, until a server has died before it followed the last events
EACH = 24
SIZE = 256 * 1024 * 1024  # bytes of the file system

Died = Callable[[ServerProcess], None]


def kill(server: ServerProcess) -> None:
    server.kill()


@pytest.fixture(params=["kill", "power"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, Died]]:
    """The folder of a server, and how it dies."""
    if request.param == "kill":
        yield tmp_path, kill
        return
    if server_buckets.OBJECTS or server_databases.SERVER:
        pytest.skip("the catalog is on one disk")
    with ext4_disk(tmp_path, SIZE) as (folder, cut):

        def die(server: ServerProcess) -> None:
            server.kill()
            cut()

        yield folder, die


def publish(server: ServerProcess, life: int) -> list[str]:
    """Publish packages side by side; their names, each of which is a word of its description and needs ``needed``."""

    def send(number: int) -> str:
        name = f"word{life}x{number}"
        body = make_publish(name, "1.0.0", description=f"it says {name}s", dependencies={"needed": "^1"})
        reply = HttpClient(server.url, (USER, PASSWORD)).put(f"/repositories/main/npm/{name}", body)
        assert reply.status in (200, 201), reply.text
        return name

    HttpClient(server.url, (USER, PASSWORD)).put("/repositories/main/npm/needed", make_publish("needed", "1.0.0"))
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(send, range(EACH)))


def described(client: HttpClient, name: str) -> list[str]:
    """The packages that a search for a word of a description finds."""
    found = client.get(f"/api/search/packages?q={name}s").json
    assert not found["behind"]
    return [each["name"] for each in found["items"]]


def dependents(client: HttpClient) -> set[str]:
    """All packages that need ``needed``, in pages."""
    found: set[str] = set()
    path = "/api/package/main%2Fnpm/needed/dependents?limit=100"
    while path:
        page = client.get(path)
        assert page.status == 200, page.text
        found |= {each["name"] for each in page.json["items"]}
        following = page.json.get("next")
        path = f"/api/package/main%2Fnpm/needed/dependents?limit=100&after={following}" if following else ""
    return found


def test_searches_find_what_was_acknowledged_before_a_death(place: tuple[Path, Died]) -> None:
    folder, die = place
    data, known, behind = DataFolder(folder / "data"), set[str](), 0
    with restarts(folder, REPOSITORIES) as run:
        for life in range(LIVES):
            server = run()
            known |= set(publish(server, life))
            die(server)
            [(count,)] = data.rows(BEHIND)
            behind += int(count or 0)
            if behind:
                break
        assert behind, "each server had followed all events when it died"
        server = run()
        wait_for(lambda: not data.rows(BEHIND)[0][0], server)  # by itself: nobody has asked for anything
        client = HttpClient(server.url, (USER, PASSWORD))
        for name in known:
            assert described(client, name) == [name]
        assert dependents(client) == known
