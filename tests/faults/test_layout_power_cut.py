"""The power of a server fails while it shows packages in the readable layout: reindex restores everything later."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests

from pkgrepo.repositories.layout.marker import read_marker
from pkgrepo.storage.blobs.receiving import SMALL
from pkgrepo.storage.layout_folder import LayoutFolder
from tests.support import server_buckets, server_databases
from tests.support.configurations import hosted
from tests.support.data_folder import DataFolder, pkgrepo, stop_in_step, wait_for
from tests.support.format_cases.workload import check_releases, make_releases, repositories
from tests.support.http_client import HttpClient
from tests.support.images import digest_of, make_image
from tests.support.npm_packages import make_publish
from tests.support.power_cuts import ext4_disk
from tests.support.python_index import PASSWORD, USER
from tests.support.python_packages import make_wheel
from tests.support.server_process import ServerProcess, restarts
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.faults

REPOSITORIES = repositories() + hosted("docker", "images")
EACH = 20
RELEASES = make_releases(1)
PUBLISHED = {each.key for release in RELEASES for each in release.uploads}
COUNTS = "SELECT (SELECT COUNT(*) FROM version), (SELECT COUNT(*) FROM manifest), (SELECT COUNT(*) FROM tag)"
SIZE = 256 * 1024 * 1024  # bytes of the file system

Cut = Callable[[], None]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[tuple[Path, Cut]]:
    """The folder of a file system, and what cuts its power."""
    if server_buckets.OBJECTS or server_databases.SERVER:
        pytest.skip("the catalog and the layout are on one disk")
    with ext4_disk(tmp_path, SIZE) as found:
        yield found


def publish(server: ServerProcess) -> None:
    """Publish versions of every format, and many of Python's and npm's, and an image with tags."""
    session = requests.Session()
    session.auth = (USER, PASSWORD)

    def send(method: str, path: str, **options: object) -> requests.Response:
        url = path if "://" in path else server.url + path
        reply = session.request(method, url, timeout=TIMEOUT_S, **options)  # type: ignore[arg-type]
        assert reply.status_code in (200, 201, 202), reply.text
        return reply

    image = make_image()
    for blob in image.blobs:
        place = send("POST", "/v2/main/images/app/blobs/uploads/").headers["location"]
        send("PUT", place, params={"digest": digest_of(blob)}, data=blob)
    for each in (upload for release in RELEASES for upload in release.uploads):
        send(each.method, each.path, data=each.body, headers={"Content-Type": each.kind})
    for number in range(EACH):
        send("PUT", f"/repositories/main/npm/pack{number}", data=make_publish(f"pack{number}", "1.0.0"))
        headers = {"Content-Type": image.media_type}
        send("PUT", f"/v2/main/images/app/manifests/t{number}", data=image.manifest, headers=headers)
    for number in range(EACH):
        # Last, and too large to sync the file system for them: that would make what the layout shows durable, too.
        name, data = make_wheel(f"demo{number}", "1.0", pad=2 * SMALL)
        send("PUT", f"/repositories/main/python/demo{number}/1.0/{name}", data=data)


def is_broken(layout: Path) -> bool:
    """Whether a document of the layout is empty."""
    return any(not path.stat().st_size for path in layout.rglob("*.json"))


def is_complete(layout: Path) -> bool:
    """Whether the marker says that the layout shows everything."""
    marker = read_marker(LayoutFolder(layout.parent))
    return marker is not None and all(each.missing == 0 for each in marker.catalogs.values())


def assert_restores_all(data: DataFolder) -> None:
    before = data.rows(COUNTS)
    npm = sum(each.case.format == "npm" for each in RELEASES)
    assert before == [(2 * EACH + len(RELEASES), 1, 2 * EACH + npm)]  # of the tags, those of npm are "latest"
    data.delete_catalog()
    done = pkgrepo(data, "reindex")
    assert done.returncode == 0, done.stderr
    assert data.rows(COUNTS) == before


def test_the_layout_is_mended_after_a_power_cut(disk: tuple[Path, Cut]) -> None:
    place, cut = disk
    data = DataFolder(place / "data")
    with restarts(place, REPOSITORIES) as run:
        server = run()
        publish(server)
        wait_for(data.is_in_step, server)  # all of it is in the layout, and the catalog knows that
        server.kill()
        cut()
        assert not is_complete(data.layout)
        if not is_broken(data.layout) and len(data.shown()) >= 2 * EACH:  # the disk was quicker than usual
            for each in (data.layout / "python").rglob("*.json"):
                each.write_bytes(b"")  # as a cut leaves files that were written last
        server = run()
        kept = check_releases(HttpClient(server.url), RELEASES, PUBLISHED)
        assert kept == PUBLISHED
        stop_in_step(server, data)
        assert is_complete(data.layout)
        assert not is_broken(data.layout)
    checked = pkgrepo(data, "verify")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert_restores_all(data)
    with restarts(place, REPOSITORIES) as run:
        assert check_releases(HttpClient(run().url), RELEASES, PUBLISHED) == PUBLISHED


def test_a_clean_stop_outlasts_a_power_cut(disk: tuple[Path, Cut]) -> None:
    place, cut = disk
    data = DataFolder(place / "data")
    with restarts(place, REPOSITORIES) as run:
        server = run()
        publish(server)
        server.stop()
        assert is_complete(data.layout)
        cut()
        assert is_complete(data.layout)
        assert not is_broken(data.layout)
    assert_restores_all(data)
