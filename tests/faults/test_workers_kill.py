"""Workers, and their master, that are killed while several clients publish."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.configurations import hosted
from tests.support.data_folder import DataFolder, pkgrepo, wait_for
from tests.support.format_cases.workload import check_releases, make_releases, repositories
from tests.support.http_client import HttpClient
from tests.support.npm_packages import make_publish, make_tarball
from tests.support.server_process import ServerProcess, restarts
from tests.support.uploader import Upload, Uploader
from tests.support.workers import kill, wait_for_workers, wait_until_ended, workers_of

pytestmark = [pytest.mark.faults, pytest.mark.folder("the tests give no bucket to workers")]

REPOSITORIES = hosted("npm", "npm")
ENVIRONMENT = {"PKGREPO_SERVER__WORKERS": "2"}
UPLOADS = 200
KILLS = 3

Run = Callable[..., ServerProcess]
Digests = dict[tuple[str, str], str]


def make_uploads(rng: random.Random, repository: str = "main/npm") -> tuple[list[Upload], Digests]:
    """Versions of ten packages, and the digests of their tarballs."""
    uploads, digests = [], {}
    for n in range(UPLOADS):
        name, version = f"p{n % 10}", f"1.0.{n}"
        tarball = make_tarball(name, version, files={"pad": rng.randbytes(rng.choice([0, 1000, 100_000]))})
        body = make_publish(name, version, tarball=tarball)
        uploads.append(Upload((name, version), f"/repositories/{repository}/{name}", body, repeated=(403, 409)))
        digests[name, version] = hashlib.sha512(tarball).hexdigest()
    return uploads, digests


def check(
    url: str, acknowledged: set[tuple[str, str]], digests: Digests, seed: int, repository: str = "main/npm"
) -> None:
    """Everything that was acknowledged is listed, and is sent as it was published."""
    index = HttpClient(f"{url}/repositories/{repository}")
    listed = {name: set(index.get(f"/{name}").json["versions"]) for name in {name for name, _ in acknowledged}}
    assert {each for each in acknowledged if each[1] not in listed[each[0]]} == set(), seed
    for name, version in sorted(acknowledged):
        reply = index.get(f"/{name}/-/{name}-{version}.tgz")
        found = (reply.status, hashlib.sha512(reply.body).hexdigest())
        assert found == (200, digests[name, version]), (seed, name, version)


def test_workers_that_are_killed_lose_no_acknowledged_publish(run: Run, data: DataFolder) -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    uploads, digests = make_uploads(rng)
    server = run()
    acknowledged = set()
    for n in range(KILLS):  # those that are connected to the other worker go on
        uploader = Uploader(uploads[n::KILLS])
        [victim, other] = rng.sample(wait_for_workers(server.pid), 2)
        uploader.run(server.url, rng.randrange(5, UPLOADS // KILLS // 2), partial(kill, victim))
        assert other in wait_for_workers(server.pid, without=victim)
        while uploader.waiting:
            uploader.run(server.url, UPLOADS, lambda: None)
        acknowledged |= uploader.acknowledged
    assert acknowledged == set(digests), seed
    check(server.url, set(digests), digests, seed)
    wait_for(data.is_in_step, server)
    assert server.stop() in (0, -15)
    checked = pkgrepo(data, "verify")
    assert (checked.returncode, checked.stderr.count("differs")) == (0, 0), (seed, checked.stderr)


def test_a_worker_that_is_killed_loses_no_acknowledged_publish_of_any_format(tmp_path: Path, data: DataFolder) -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    releases = make_releases(6)
    uploads = [each for release in releases for each in release.uploads]
    rng.shuffle(uploads)
    uploader = Uploader(uploads)
    with restarts(tmp_path, repositories(), ENVIRONMENT) as start:
        server = start()
        victim, other = rng.sample(wait_for_workers(server.pid), 2)
        uploader.run(server.url, rng.randrange(5, len(uploads) // 2), partial(kill, victim))
        assert other in wait_for_workers(server.pid, without=victim)
        check_releases(HttpClient(server.url), releases, uploader.acknowledged)
        while uploader.waiting:
            uploader.run(server.url, len(uploads), lambda: None)
        served = check_releases(HttpClient(server.url), releases, uploader.acknowledged)
        assert served == uploader.acknowledged == {each.key for each in uploads}, seed
        wait_for(data.is_in_step, server)
        assert server.stop() in (0, -15)
    checked = pkgrepo(data, "verify")
    assert (checked.returncode, checked.stderr.count("differs")) == (0, 0), (seed, checked.stderr)


def test_a_master_that_is_killed_loses_no_acknowledged_publish(run: Run, data: DataFolder) -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    uploads, digests = make_uploads(rng)
    uploader = Uploader(uploads)
    server = run()
    workers = workers_of(server.pid)
    uploader.run(server.url, rng.randrange(10, UPLOADS // 2), partial(kill, server.pid))
    server.wait()
    wait_until_ended(workers)
    assert data.damaged() == [], seed
    again = run()
    acknowledged = {key for key in uploader.acknowledged if isinstance(key, tuple)}
    check(again.url, acknowledged, digests, seed)
    uploader.run(again.url, UPLOADS, lambda: None)
    assert uploader.acknowledged == set(digests), seed
    wait_for(data.is_in_step, again)
    assert again.stop() in (0, -15)
    checked = pkgrepo(data, "verify")
    assert (checked.returncode, checked.stderr.count("differs")) == (0, 0), (seed, checked.stderr)
