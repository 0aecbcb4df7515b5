"""Images in the readable layout: skopeo reads their directories without the server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support import data_folder
from tests.support.client_programs import client_environment, program, run_client
from tests.support.data_folder import DataFolder
from tests.support.http_client import HttpClient
from tests.support.images import make_image, write_layout
from tests.support.python_packages import make_wheel
from tests.support.server_process import ServerProcess, twistd_process

AUTH = ("admin", "correct horse battery")


@pytest.fixture
def skopeo(tmp_path: Path) -> Callable[..., str]:
    """Run skopeo, and return its output."""
    environ = client_environment(tmp_path / "home", TMPDIR=str(tmp_path))
    found = program("skopeo")
    return lambda *arguments: (
        run_client([found, "--insecure-policy", *arguments], environ=environ, folder=tmp_path).stdout
    )


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    """The data folder of the server."""
    return DataFolder(tmp_path / "data")


@pytest.fixture
def pkgrepo(data: DataFolder) -> Callable[..., str]:
    """Run an administrator's command on the server's data, and return its output."""

    def run(*arguments: str) -> str:
        done = data_folder.pkgrepo(data, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def start(folder: Path, *options: str) -> tuple[ServerProcess, str]:
    """Start a server. Returns it and the name of its image for skopeo."""
    process = twistd_process(folder, *options)
    return process, f"docker://{urlsplit(process.wait_ready()).netloc}/main/images/deep/app:v1"


@pytest.mark.folder("a bucket has no readable layout")
def test_skopeo_reads_an_image_from_the_disk_and_from_a_rebuilt_catalog(
    skopeo: Callable[..., str], pkgrepo: Callable[..., str], data: DataFolder, tmp_path: Path
) -> None:
    image = make_image("on the disk")
    source = write_layout(tmp_path / "source", image)
    process, address = start(tmp_path)
    try:
        body = {"name": "images", "storage": "main", "format": "docker", "visibility": "public"}
        assert HttpClient(process.url, AUTH).post_json("/api/repository", body).status == 201
        skopeo("copy", f"--dest-creds={':'.join(AUTH)}", "--dest-tls-verify=false", f"oci:{source}:v1", address)
    finally:
        process.stop()
    pkgrepo("verify", "--repair")  # writes the part of the layout that was still missing when the server stopped
    assert " 0 differences" in pkgrepo("verify")
    layout = data.layout / "images/deep/app"
    skopeo("copy", f"oci:{layout}:v1", f"dir:{tmp_path / 'from-disk'}")
    copied = json.loads((tmp_path / "from-disk/manifest.json").read_bytes())
    assert copied == json.loads(image.manifest)

    data.delete_catalog()
    assert "1 images and 1 tags" in pkgrepo("reindex")
    process, address = start(tmp_path)
    try:
        skopeo("copy", "--src-tls-verify=false", address, f"dir:{tmp_path / 'from-server'}")
    finally:
        process.stop()
    assert (tmp_path / "from-server/manifest.json").read_bytes() == image.manifest


def test_the_gc_command_removes_garbage(pkgrepo: Callable[..., str], tmp_path: Path) -> None:
    process, _ = start(tmp_path, "--set", "retention.trash_days=0")
    try:
        wire = HttpClient(process.url, AUTH)
        for name, format_ in (("images", "docker"), ("py", "python")):
            body = {"name": name, "storage": "main", "format": format_, "visibility": "public"}
            assert wire.post_json("/api/repository", body).status == 201
        off = wire.post_json("/api/repository/main%2Fpy/config/conda", {"from_wheels": False}, "PUT")
        assert off.status == 200, "a conda package would be one more blob, if it was made before the wheel is deleted"
        started = wire.post("/v2/main/images/app/blobs/uploads/")
        where = urlsplit(started.headers["location"]).path
        digest = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"  # of "hello"
        assert wire.put(f"{where}?digest=sha256:{digest}", b"hello").status == 201
        file, content = make_wheel("demo", "1.0")
        path = f"/repositories/main/py/demo/1.0/{file}"
        assert wire.put(path, content).status == 201
        assert wire.delete("/repositories/main/py/pypi/demo/1.0").status == 200
        # The metadata of the wheel is a blob of its own.
        assert "would remove 2 of 3 blobs" in pkgrepo("gc", "--grace", "0", "--dry-run")
        assert "removed 2 of 3 blobs" in pkgrepo("gc", "--grace", "0")
        assert "removed 0 of 1 blobs (0 bytes)" in (last := pkgrepo("gc", "--grace", "0"))
        assert "1 for pushes under way" in last
        assert wire.get(path).status == 404
        assert wire.head(f"/v2/main/images/app/blobs/sha256:{digest}").status == 200
    finally:
        process.stop()
