"""A server that is killed while it takes uploads, and clients that leave in the middle of theirs."""

import hashlib
import os
import random

import pytest

from pkgrepo.composition.core import SPOOL
from pkgrepo.storage.catalog.engine.generation import WriteLock
from tests.support.configurations import hosted
from tests.support.data_folder import pkgrepo, wait_for
from tests.support.format_cases.workload import check_releases, make_releases, repositories
from tests.support.http_client import HttpClient
from tests.support.python_index import JSON, PASSWORD, USER
from tests.support.python_packages import make_wheel
from tests.support.random_kills import survive_kills
from tests.support.server_process import restarts
from tests.support.uploader import Upload, Uploader

pytestmark = pytest.mark.faults

REPOSITORIES = hosted("python", "py")
UPLOADS = 300
KILLS = 3


def test_kills_lose_no_acknowledged_upload_and_publish_no_incomplete_file(run, data):
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    uploads, digests = [], {}
    for n in range(UPLOADS):
        project = f"p{n % 20}"
        filename, body = make_wheel(project, "1.0", build=str(n), pad=rng.choice([0, 1000, 70_000, 400_000]) + n)
        uploads.append(Upload((project, filename), f"/repositories/main/py/{project}/1.0/{filename}", body))
        digests[project, filename] = hashlib.sha256(body).hexdigest()
    uploader = Uploader(uploads)
    for _ in range(KILLS):
        server = run()
        uploader.run(server.url, rng.randrange(5, UPLOADS // (KILLS + 1)), server.kill)
        assert server.kill() == -9
        assert data.damaged() == [], seed
    server = run()
    uploader.run(server.url, UPLOADS, lambda: None)
    assert uploader.acknowledged == set(digests), seed

    index = HttpClient(f"{server.url}/repositories/main/py")
    listed = {}
    for n in range(20):
        for file in index.get(f"/simple/p{n}/", Accept=JSON).json["files"]:
            listed[f"p{n}", file["filename"]] = file["hashes"]["sha256"]
    assert listed == digests, seed
    for (project, filename), digest in digests.items():
        reply = index.get(f"/packages/{project}/1.0/{filename}")
        assert (reply.status, hashlib.sha256(reply.body).hexdigest()) == (200, digest), (seed, filename)
    wait_for(data.is_tidy, server)
    wait_for(data.is_in_step, server)
    wait_for(lambda: not any(path.startswith(".tmp") for path in data.shown()), server)
    assert server.stop() in (0, -15)
    checked = pkgrepo(data, "verify")
    assert (checked.returncode, checked.stderr.count("differs")) == (0, 0), (seed, checked.stderr)


def test_kills_lose_no_acknowledged_publish_of_any_format(tmp_path, data):
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    releases = make_releases(9)
    uploads = [each for release in releases for each in release.uploads]
    rng.shuffle(uploads)
    uploader = Uploader(uploads)

    def check(server):
        return check_releases(HttpClient(server.url), releases, uploader.acknowledged)

    with restarts(tmp_path, repositories()) as start:
        served = survive_kills(start, uploader, check, len(uploads), data, rng, seed)
    assert served == {each.key for each in uploads}, seed


@pytest.mark.folder("its leftovers are files")
def test_a_start_removes_temporary_files_of_killed_processes_but_not_of_running_ones(run, data):
    first = run()
    upload = data.uploads / ("a" * 32)
    orphan = data.blobs / "ab" / ("ab" + "0" * 62 + "." + "0" * 16)
    temporary = data.layout / ".tmp" / "0123"

    def make_leftovers():
        upload.mkdir()
        (upload / "data").write_bytes(b"half an upload")
        orphan.write_bytes(b"published by nobody")
        temporary.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(b"half a link")

    def leftovers_exist():
        return [path.exists() for path in (upload, orphan, temporary)]

    make_leftovers()
    second = run()  # while the first still runs, which may own the files
    second.stop()
    assert leftovers_exist() == [True] * 3
    first.kill()
    third = run()
    wait_for(lambda: not any(leftovers_exist()), third)
    make_leftovers()
    third.stop()
    assert leftovers_exist() == [True] * 3  # they are removed only at a start


@pytest.mark.sqlite("holds the lock of the file")
@pytest.mark.folder("waits for the file of a blob")
def test_a_kill_before_a_blob_is_recorded_loses_no_acknowledged_chunk(tmp_path, data):
    first, rest = os.urandom(300_000), os.urandom(200_000)
    digest = f"sha256:{hashlib.sha256(first + rest).hexdigest()}"
    with restarts(tmp_path, hosted("docker", "images")) as start:
        server = start()
        wire = HttpClient(server.url, (USER, PASSWORD))
        place = wire.post("/v2/main/images/app/blobs/uploads/").headers["location"]
        assert wire.ask("PATCH", place, first).status == 202
        with wire.connect() as connection:
            size = str(len(rest))
            connection.sendall(wire.head_lines("PUT", f"{place}?digest={digest}", Content_Length=size) + rest[:1000])
            wait_for(lambda: is_receiving(f"/proc/{server.pid}/fd", data), server)
            with WriteLock(data.folder / "pkgrepo.db").hold():
                connection.sendall(rest[1000:])
                wait_for(lambda: bool(data.copies()), server)
                assert server.kill() == -9
        server = start()
        wire = HttpClient(server.url, (USER, PASSWORD))
        status = wire.get(place)
        assert (status.status, status.headers["range"]) == (204, f"0-{len(first) - 1}")
        done = wire.put(f"{place}?digest={digest}", rest)
        assert (done.status, done.headers["docker-content-digest"]) == (201, digest)
        assert wire.get(f"/v2/main/images/app/blobs/{digest}").body == first + rest
        assert data.unfinished() == []
        assert wire.get(place).status == 404


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_an_interrupted_upload_leaves_no_files(run, data, share):
    server = run()
    py = HttpClient(f"{server.url}/repositories/main/py", (USER, PASSWORD))
    filename, body = make_wheel("cut", "1.0", pad=3_000_000)
    with py.connect() as connection:
        head = py.head_lines("PUT", f"/cut/1.0/{filename}", Content_Length=str(len(body)))
        connection.sendall(head + body[: int(len(body) * share)])
        held = f"/proc/{server.pid}/fd"
        wait_for(lambda: is_receiving(held, data), server)
    wait_for(lambda: not is_receiving(held, data) and not data.unfinished(), server)
    assert data.copies() == {}
    assert py.get("/simple/cut/").status == 404


def is_receiving(descriptors, data):
    """Whether the process has an upload's file open, which is in the spool if the store is a bucket."""
    found = []
    for name in os.listdir(descriptors):
        try:
            found.append(os.readlink(f"{descriptors}/{name}"))
        except OSError:
            continue
    return any(target.startswith((str(data.uploads), str(data.folder / SPOOL))) for target in found)
