"""Kept files in the readable layout, and after the catalog was rebuilt from it."""

import hashlib

import pytest

from tests.support.configurations import proxy
from tests.support.data_folder import DataFolder, pkgrepo, stop_in_step
from tests.support.http_client import HttpClient
from tests.support.odd_files import EMPTY_ZIP
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import restarts
from tests.support.upstreams.python import JSON, PythonUpstream

pytestmark = [pytest.mark.server, pytest.mark.folder("reads the readable layout")]


def test_kept_files_survive_a_lost_catalog(tmp_path, keep):
    with PythonUpstream() as upstream:
        wheel, data = upstream.add("Kept.Lib", "1.0", requires=["left"], metadata=False, yanked="bad")
        sdist, source = upstream.add("Kept.Lib", "1.0", sdist=True)
        other = sdist.replace(".tar.gz", ".zip")
        upstream.serve(upstream.file_path(other), EMPTY_ZIP)
        listed = {"filename": other, "url": upstream.file_url(other), "hashes": {}, "yanked": False, "version": "1.0"}
        upstream.projects["kept-lib"].append(listed)
        upstream.add("Kept.Lib", "1.1")
        kept = {wheel: data, sdist: source, other: EMPTY_ZIP}
        configuration = 'proxy.allow_private = ["127.0.0.1"]\n' + proxy("python", "mirror", upstream.simple)
        with restarts(tmp_path, configuration) as start:
            server = start()
            mirror = HttpClient(f"{server.url}/repositories/main/mirror", (USER, PASSWORD))
            for name in kept:
                keep(mirror, f"/packages/kept-lib/1.0/{name}")
            metadata = mirror.get(f"/packages/{wheel}.metadata").body
            before = {each["filename"]: each for each in mirror.get("/simple/kept-lib/", Accept=JSON).json["files"]}
            folder = DataFolder(tmp_path / "data")
            stop_in_step(server, folder)
            layout = folder.layout / "mirror" / "kept-lib" / "1.0"
            for name, body in kept.items():
                assert (layout / name).read_bytes() == body
            assert (layout / f"{wheel}.metadata").read_bytes() == metadata
            assert not (layout.parent / "1.1").exists()
            folder.delete_catalog()
            done = pkgrepo(folder, "reindex")
            assert done.returncode == 0, done.stderr
            server = start()
            mirror = HttpClient(f"{server.url}/repositories/main/mirror", (USER, PASSWORD))
            upstream.stop()
            for name, body in kept.items():
                assert mirror.get(f"/packages/kept-lib/1.0/{name}").body == body
            assert mirror.get(f"/packages/{wheel}.metadata").body == metadata
            page = mirror.get("/simple/kept-lib/", Accept=JSON).json
            assert page["versions"] == ["1.0"]
            after = {each["filename"]: each for each in page["files"]}
            assert after.keys() == kept.keys()
            for name, body in kept.items():
                assert after[name]["hashes"]["sha256"] == hashlib.sha256(body).hexdigest()
                for member in ("url", "yanked", "requires-python"):
                    assert after[name].get(member) == before[name].get(member)
            assert after[wheel]["upload-time"] == before[wheel]["upload-time"]
            assert after[wheel]["core-metadata"] == {"sha256": hashlib.sha256(metadata).hexdigest()}
            assert mirror.get("/packages/kept-lib/1.1/kept_lib-1.1-py3-none-any.whl").status == 503
            stop_in_step(server, folder)  # it would not ask again for a while
            upstream.start()
            server = start()
            mirror = HttpClient(f"{server.url}/repositories/main/mirror", (USER, PASSWORD))
            page = mirror.get("/simple/kept-lib/", Accept=JSON, Cache_Control="no-cache").json
            assert page["versions"] == ["1.0", "1.1"]
            assert {file["filename"]: file["yanked"] for file in page["files"]}[wheel] == "bad"
            assert mirror.get("/pypi/kept-lib/1.0/json").json["info"]["requires_dist"] == ["left"]
            stop_in_step(server, folder)


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
