"""Files that an upstream replaces under their names: what is served fits the page that clients have."""

from __future__ import annotations

import hashlib
from http.client import IncompleteRead

import pytest
from attrs import evolve

from tests.support.configurations import proxy
from tests.support.data_folder import DataFolder, stop_in_step
from tests.support.http_client import HttpClient
from tests.support.odd_files import ARMOUR, zip_of
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import restarts
from tests.support.upstreams.faults import corrupted, failing
from tests.support.upstreams.messages import Fault
from tests.support.upstreams.python import PythonUpstream

pytestmark = pytest.mark.server


@pytest.fixture
def replace(upstream):
    """Replace the file of a version by another one of the same name, and return that."""

    def put(project, pad=1000, **options):
        upstream.projects[project].clear()
        return upstream.add(project, pad=pad, requires=["right"], **options)[1]

    return put


def slow(answer):
    """Let clients have a part of a file before the whole is there."""
    return evolve(answer, fault=Fault(rate=4_000_000))


def digest_of(data):
    return {"sha256": hashlib.sha256(data).hexdigest()}


@pytest.mark.parametrize("through", ["short", "anything"])
def test_replaced_file_is_fetched_again(at, upstream, keep, files, replace, through):
    where, project = at(through), f"replaced-{through}"
    name, old = upstream.add(project)
    path = f"/packages/{project}/1.0/{name}"
    keep(where, path)
    assert where.get(path).body == old
    new = replace(project)
    assert files(project, where)[name]["hashes"] == digest_of(new)
    assert where.get(path).body == new
    keep(where, path)
    assert where.get(path).body == new
    assert upstream.count(upstream.file_path(name)) == 2


def test_old_file_is_served_as_long_as_the_page_says_so(mirror, upstream, keep, files, replace):
    name, old = upstream.add("still-old")
    path = f"/packages/still-old/1.0/{name}"
    keep(mirror, path)
    replace("still-old")
    assert files("still-old", mirror)[name]["hashes"] == digest_of(old)
    assert mirror.get(path).body == old


def test_old_file_is_not_served_for_the_new_one_that_cannot_be_had(at, upstream, keep, files, replace):
    short = at("short")
    name, old = upstream.add("lost-new")
    path = f"/packages/lost-new/1.0/{name}"
    keep(short, path)
    new = replace("lost-new")
    upstream.misbehave(upstream.file_path(name), failing(500), repeat=True)
    assert files("lost-new", short)[name]["hashes"] == digest_of(new)
    assert short.get(path).status == 502
    upstream.projects["lost-new"][0]["hashes"] = digest_of(old)  # it was a mistake
    assert files("lost-new", short)[name]["hashes"] == digest_of(old)
    assert short.get(path).body == old


def test_page_is_asked_for_once_more_when_a_file_is_another_one(mirror, upstream, files, replace):
    name, _ = upstream.add("swapped")
    files("swapped", mirror)
    new = replace("swapped")
    assert mirror.get(f"/packages/swapped/1.0/{name}").body == new
    assert files("swapped", mirror)[name]["hashes"] == digest_of(new)
    assert upstream.count("/simple/swapped/") == 2


def test_file_that_is_still_another_one_is_refused(mirror, upstream, files):
    name, _ = upstream.add("wrong-twice")
    files("wrong-twice", mirror)
    upstream.misbehave(upstream.file_path(name), corrupted, repeat=True)
    assert mirror.get(f"/packages/wrong-twice/1.0/{name}").status == 502
    assert upstream.count("/simple/wrong-twice/") == 2


def test_client_that_got_a_part_of_another_file_gets_the_right_one_next(mirror, upstream, files, replace):
    name, _ = upstream.add("large-swapped", pad=1_000_000)
    upstream.projects["large-swapped"][0].pop("size")
    files("large-swapped", mirror)
    new = replace("large-swapped", pad=1_000_001)
    path = f"/packages/large-swapped/1.0/{name}"
    upstream.misbehave(upstream.file_path(name), slow)
    with pytest.raises((IncompleteRead, ConnectionError)):
        mirror.get(path)
    assert mirror.get(path).body == new


def test_large_file_that_stays_another_one_is_refused_before_bytes_are_sent(mirror, upstream):
    name, _ = upstream.add("large-wrong", pad=1_000_000)
    path = f"/packages/large-wrong/1.0/{name}"
    upstream.misbehave(upstream.file_path(name), lambda answer: slow(corrupted(answer)), repeat=True)
    with pytest.raises((IncompleteRead, ConnectionError)):
        mirror.get(path)
    assert mirror.get(path).status == 502


def test_companions_follow_their_distribution(at, upstream, keep, replace):
    short = at("short")
    name, _ = upstream.add("followed", **{"gpg-sig": True, "core-metadata": True})
    path, theirs = f"/packages/followed/1.0/{name}", upstream.file_path("followed-1.0-py3-none-any.whl")
    upstream.serve(f"{theirs}.asc", ARMOUR + b"first")
    keep(short, f"{path}.asc")
    keep(short, f"{path}.metadata")
    keep(short, path)
    replace("followed", **{"gpg-sig": True, "core-metadata": True})
    upstream.serve(f"{theirs}.asc", ARMOUR + b"second")
    assert short.get("/simple/followed/").status == 200
    assert short.get(f"{path}.asc").body == ARMOUR + b"second"
    assert b"right" in short.get(f"{path}.metadata").body


def test_metadata_found_in_a_wheel_is_that_of_the_new_wheel(at, upstream, keep, replace):
    short = at("short")
    name, _ = upstream.add("unoffered", requires=["left"], metadata=False)
    path = f"/packages/unoffered/1.0/{name}"
    keep(short, path)
    assert b"left" in short.get(f"{path}.metadata").body
    replace("unoffered", metadata=False)
    assert short.get("/simple/unoffered/").status == 200
    keep(short, path)
    assert b"right" in short.get(f"{path}.metadata").body


def test_file_without_a_digest_is_another_one_at_another_url(at, old_upstream, keep):
    where = at("old-short")
    name, _ = old_upstream.add("moved-away", metadata=False)
    path = f"/packages/moved-away/1.0/{name}"
    keep(where, path)
    old_upstream.serve(f"/elsewhere/{name}", zip_of(b"other"))
    old_upstream.projects["moved-away"][0]["url"] = f"{old_upstream.url}/elsewhere/{name}"
    assert where.get("/simple/moved-away/").status == 200
    assert where.get(path).body == zip_of(b"other")


def test_file_without_a_digest_that_has_only_moved_is_fetched_once(at, old_upstream, keep):
    where = at("old-short")
    name, data = old_upstream.add("moved-same", metadata=False)
    path = f"/packages/moved-same/1.0/{name}"
    keep(where, path)
    old_upstream.serve(f"/moved/{name}", data)
    old_upstream.projects["moved-same"][0]["url"] = f"{old_upstream.url}/moved/{name}"
    assert where.get("/simple/moved-same/").status == 200
    for _ in range(3):
        keep(where, path)
    assert old_upstream.count(f"/moved/{name}") == 1


@pytest.mark.folder("reads the readable layout")
def test_replaced_file_takes_the_place_of_the_old_one(tmp_path, keep):
    with PythonUpstream() as upstream:
        wheel, _ = upstream.add("replaced-lib", requires=["left"])
        settings = proxy("python", "mirror", upstream.simple, cache_ttl="0")
        with restarts(tmp_path, f'proxy.allow_private = ["127.0.0.1"]\n{settings}') as start:
            server = start()
            mirror = HttpClient(f"{server.url}/repositories/main/mirror", (USER, PASSWORD))
            keep(mirror, f"/packages/replaced-lib/1.0/{wheel}")
            upstream.projects["replaced-lib"].clear()
            _, data = upstream.add("replaced-lib", requires=["right"])
            assert mirror.get("/simple/replaced-lib/").status == 200
            keep(mirror, f"/packages/replaced-lib/1.0/{wheel}")
            folder = DataFolder(tmp_path / "data")
            stop_in_step(server, folder)
            layout = folder.layout / "mirror" / "replaced-lib" / "1.0"
            assert (layout / wheel).read_bytes() == data
            assert b"right" in (layout / f"{wheel}.metadata").read_bytes()
