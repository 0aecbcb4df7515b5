"""What the administrator's commands detect and repair: a lost database, damaged or missing blobs, a damaged layout."""

import os
import re
import time

import pytest
import requests

from tests.support.configurations import PRIVATE, config, hosted
from tests.support.data_folder import pkgrepo, stop_in_step
from tests.support.http_client import HttpClient
from tests.support.python_index import JSON, PASSWORD, USER
from tests.support.python_packages import make_sdist, make_wheel
from tests.support.timeouts import TIMEOUT_S, polled
from tests.support.upload_forms import uv

pytestmark = [pytest.mark.faults, pytest.mark.folder("a bucket has no readable layout")]

REPOSITORIES = hosted(
    "python",
    # Without packages made of wheels in the background, the numbers of what is restored are known.
    py='description = "our own"\n' + config(policy="strict_filenames = true", conda="from_wheels = false"),
    closed=PRIVATE,
)


@pytest.fixture
def filled(run, data):
    """The data of a stopped server with a project in every state, with an up-to-date readable layout."""
    server = run()
    py = HttpClient(f"{server.url}/repositories/main/py", (USER, PASSWORD))
    for version in ("1.0", "1.1", "2.0rc1", "1.0+local"):
        filename, body = make_wheel("Demo.Pkg", version, requires_python=">=3.8")
        assert py.post_form("/legacy/", uv("Demo.Pkg", version, filename, body)).status == 200
    assert py.put("/demo-pkg/1.0/demo_pkg-1.0.tar.gz", make_sdist("Demo.Pkg", "1.0")[1]).status == 201
    assert py.put("/other/1.0/other-1.0.tar.gz", make_sdist("other", "1.0", pad=500_000)[1]).status == 201
    assert py.put("/gone/1.0/gone-1.0.tar.gz", make_sdist("gone", "1.0")[1]).status == 201
    assert py.delete("/pypi/gone/1.0").status == 200
    assert py.post_json("/pypi/demo-pkg/1.1/yank", {"reason": "broken"}).status == 200
    assert py.post_json("/pypi/other/status", {"status": "archived", "reason": "old"}, "PUT").status == 200
    closed = HttpClient(f"{server.url}/repositories/main/closed", (USER, PASSWORD))
    assert closed.put("/secret/1.0/secret-1.0.tar.gz", make_sdist("secret", "1.0")[1]).status == 201
    stop_in_step(server, data)
    return data


def pages(url):
    """Return the responses of all pages and files, without the serials."""
    found = {}
    for repository, projects in (("py", ("", "demo-pkg/", "other/", "gone/")), ("closed", ("", "secret/"))):
        wire = HttpClient(f"{url}/repositories/main/{repository}", (USER, PASSWORD))
        for project in projects:
            for accept in (JSON, "text/html"):
                reply = wire.get(f"/simple/{project}", Accept=accept)
                body = re.sub(rb'"_last-serial":\d+|SERIAL \d+', b"", reply.body)
                found[repository, project, accept] = (reply.status, body if reply.status == 200 else b"")
        document = wire.get("/pypi/demo-pkg/json")
        found[repository, "json"] = re.sub(rb'"last_serial":\d+|http://[^/]+', b"", document.body)
    return found


def first_large_copy(data):
    return max(data.copies().values(), key=lambda path: path.stat().st_size)


def test_undamaged_data_passes_the_checks(filled):
    for options in ((), ("--repair",)):
        done = pkgrepo(filled, "verify", *options)
        assert done.returncode == 0, done.stderr
        assert "0 missing, 0 damaged; 0 forgotten copies, 0 differences in the readable layout" in done.stdout
        assert "\r" not in done.stderr
        assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize("served_between", [False, True])
def test_a_rebuilt_database_gives_the_same_pages(run, filled, served_between):
    server = run()
    before = pages(server.url)
    server.stop()
    needed = {
        name for name, path in filled.copies().items() if path.stat().st_nlink > 1
    }  # without the blobs of deleted files
    filled.delete_catalog()
    if served_between:  # the server is started before the reindex, and must keep everything
        with pytest.raises(AssertionError, match="pkgrepo reindex"):
            run("")
        assert set(filled.copies()) >= needed
    done = pkgrepo(filled, "reindex")
    assert done.returncode == 0, done.stderr
    assert "took in 2 repositories, 6 versions, " in done.stdout
    assert "blocks, rules for all repositories" in done.stderr
    again = pkgrepo(filled, "reindex")
    assert (again.returncode, "took in 0 repositories, 0 versions, 0 files" in again.stdout) == (0, True)
    checked = pkgrepo(filled, "verify")
    assert checked.returncode == 0, checked.stderr
    server = run("")
    assert pages(server.url) == before
    names = HttpClient(f"{server.url}/api/repository/main%2Fpy", (USER, PASSWORD)).get("/retired-names").json["items"]
    assert [each["key"] for each in names] == ["gone"], "no upstream is asked for it"
    anonymous = requests.get(f"{server.url}/repositories/main/closed/simple/", timeout=TIMEOUT_S)
    assert anonymous.status_code == 401  # visibility is restored
    py = HttpClient(f"{server.url}/repositories/main/py", (USER, PASSWORD))
    assert py.get("/", Accept="application/json").json["description"] == "our own"
    assert py.put("/x/1.0/X-1.0.tar.gz", make_sdist("x", "1.0")[1]).status == 400  # the policy is restored
    assert py.put("/gone/1.0/gone-1.0.tar.gz", make_sdist("gone", "1.0")[1]).status == 400  # the name of a deleted file
    stop_in_step(server, filled)
    checked = pkgrepo(filled, "verify")
    assert checked.returncode == 0, checked.stderr


def test_verify_with_repair_deletes_nothing_when_the_database_is_lost(filled):
    needed = {name for name, path in filled.copies().items() if path.stat().st_nlink > 1}
    filled.delete_catalog()
    pkgrepo(filled, "migrate")
    for path in filled.copies().values():
        os.utime(path, (time.time() - 10**7,) * 2)  # older than the longest upload
    pkgrepo(filled, "verify", "--repair")
    assert set(filled.copies()) >= needed


def test_a_flipped_byte_is_found_and_not_served(run, filled):
    path = first_large_copy(filled)
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.seek(1000)
        byte = file.read(1)
        file.seek(1000)
        file.write(bytes([byte[0] ^ 1]))
    done = pkgrepo(filled, "verify")
    assert done.returncode == 1
    assert "1 damaged" in done.stdout
    assert path.name.split(".")[0] in done.stderr
    server = run()
    py = HttpClient(f"{server.url}/repositories/main/py", (USER, PASSWORD))
    assert py.get("/packages/other/1.0/other-1.0.tar.gz").status == 500
    assert py.get("/simple/other/").status == 200
    data = make_sdist("other", "1.0", pad=500_000)[1]
    assert py.put("/other/1.0/other-1.0.tar.gz", data).status == 200  # uploading it again repairs it
    assert py.get("/packages/other/1.0/other-1.0.tar.gz").body == data
    stop_in_step(server, filled)
    healed = pkgrepo(filled, "verify")
    assert "0 missing, 0 damaged" in healed.stdout


def test_a_missing_copy_is_found_and_affects_no_other_file(run, filled):
    path = first_large_copy(filled)
    path.unlink()
    done = pkgrepo(filled, "verify")
    assert done.returncode == 1
    assert "1 missing, 0 damaged" in done.stdout
    assert "it belongs to main/py: other 1.0 (other-1.0.tar.gz)" in done.stderr
    assert done.stderr.splitlines()[-1] == "pkgrepo: 2 problems were found"
    mended = pkgrepo(filled, "verify", "--repair")
    assert (mended.returncode, "1 missing" in mended.stdout) == (0, True), mended.stderr
    first_large_copy(filled).unlink()
    server = run()
    py = HttpClient(f"{server.url}/repositories/main/py", (USER, PASSWORD))
    assert py.get("/packages/demo_pkg-1.0.tar.gz").status == 200
    content = make_sdist("other", "1.0", pad=500_000)[1]
    polled(lambda: py.get("/packages/other/1.0/other-1.0.tar.gz").body == content)  # by the server itself
    stop_in_step(server, filled)
    healed = pkgrepo(filled, "verify")
    assert healed.returncode == 0, healed.stderr


def test_a_damaged_layout_is_found_and_repaired(filled):
    demo = filled.layout / "py" / "demo-pkg"
    before = filled.shown()
    (demo / "1.0" / "demo_pkg-1.0.tar.gz").unlink()
    (demo / "1.1" / "demo-pkg-1.1.json").write_text("{}")
    (demo / "1.1" / "stray.txt").write_text("stray")
    (filled.layout / "py" / ".repository.json").unlink()
    (filled.layout / "py" / "never-was" / "1.0").mkdir(parents=True)
    (filled.layout / "py" / "never-was" / "1.0" / "never-was-1.0.json").write_text("{}")
    found = pkgrepo(filled, "verify")
    assert found.returncode == 1
    assert "5 differences in the readable layout, 0 mended" in found.stdout
    assert "main/py: demo-pkg 1.1: the readable layout differs in 2 places" in found.stderr
    mended = pkgrepo(filled, "verify", "--repair")
    assert (mended.returncode, "5 mended" in mended.stdout) == (0, True), mended.stderr
    assert filled.shown() == before
    assert pkgrepo(filled, "verify").returncode == 0


def test_an_old_unreferenced_copy_is_found_and_removed_on_request(filled):
    stray = filled.blobs / "00" / ("0" * 64 + "." + "1" * 16)
    stray.write_bytes(b"stray")
    assert pkgrepo(filled, "verify").returncode == 0  # a new copy may belong to a running upload
    os.utime(stray, (time.time() - 10**6,) * 2)
    found = pkgrepo(filled, "verify")
    assert (found.returncode, "1 forgotten copies" in found.stdout) == (1, True)
    assert stray.exists()
    assert pkgrepo(filled, "verify", "--repair").returncode == 0
    assert not stray.exists()


def test_an_unreadable_sidecar_is_reported_and_everything_else_is_restored(filled):
    (filled.layout / "py" / "other" / "1.0" / "other-1.0.json").write_text('{"broken"')
    filled.delete_catalog()
    done = pkgrepo(filled, "reindex")
    assert done.returncode == 1
    assert "py/other/1.0/other-1.0.json" in done.stderr
    assert "took in 2 repositories, 5 versions" in done.stdout


def test_a_lost_copy_is_restored_from_the_layout(run, filled):
    server = run()
    before = pages(server.url)
    server.stop()
    for path in filled.copies().values():
        path.unlink()
    filled.delete_catalog()
    done = pkgrepo(filled, "reindex")
    assert done.returncode == 0, done.stderr
    server = run("")
    assert pages(server.url) == before
    stop_in_step(server, filled)
    assert pkgrepo(filled, "verify").returncode == 0


@pytest.mark.parametrize("purge", ["false", "true"])
def test_a_repository_that_was_removed_does_not_come_back(run, filled, purge):
    server = run("")
    api = f"{server.url}/api/repository"
    uid = requests.get(f"{api}/find-id/main/py", auth=(USER, PASSWORD), timeout=TIMEOUT_S).json()["id"]
    query = {"confirm": "main/py", "purge": purge}
    assert requests.delete(f"{api}/{uid}", params=query, auth=(USER, PASSWORD), timeout=TIMEOUT_S).status_code == 200
    stop_in_step(server, filled)
    assert {path.split("/")[0] for path in filled.shown()} == {"closed", "closed.conda"}
    assert pkgrepo(filled, "verify").returncode == 0
    filled.delete_catalog()
    done = pkgrepo(filled, "reindex")
    assert (done.returncode, "took in 1 repositories, 1 versions, " in done.stdout) == (0, True)
    assert sorted(filled.rows("SELECT name FROM repository")) == [("closed",), ("closed/conda",)]
