"""The layout of the image is one that container programs read, and always the same."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from pathlib import Path

from pkgrepo.packaging import image
from pkgrepo.packaging.archives import Entry
from pkgrepo.packaging.sources import Sources
from pkgrepo.packaging.tree import MACHINES

SOURCES = Sources(Path("/nowhere"), "1.2.3", "c" * 40, 1_700_000_000)


def write(folder: Path) -> Path:
    folder.mkdir()
    layers = [([Entry("etc"), Entry("etc/x", 0o644, b"x")], "base"), ([Entry("var", owner=image.USER)], "program")]
    described, blobs = image._describe(SOURCES, layers, folder, MACHINES[0])
    image._write_layout(SOURCES, described, blobs, folder / "image.tar")
    return folder / "image.tar"


def test_every_digest_is_that_of_its_blob(tmp_path: Path) -> None:
    with tarfile.open(write(tmp_path / "a")) as archive:
        files = {each.name: archive.extractfile(each) for each in archive if each.isreg()}
        content = {name: file.read() for name, file in files.items() if file is not None}
    blobs = {name.rpartition("/")[2]: data for name, data in content.items() if name.startswith("blobs/sha256/")}
    assert all(hashlib.sha256(data).hexdigest() == digest for digest, data in blobs.items())
    (described,) = json.loads(content["index.json"])["manifests"]
    assert described["annotations"]["org.opencontainers.image.ref.name"] == "localhost/pkgrepo:1.2.3"
    manifest = json.loads(blobs[described["digest"].removeprefix("sha256:")])
    config = json.loads(blobs[manifest["config"]["digest"].removeprefix("sha256:")])
    assert config["created"] == "2023-11-14T22:13:20Z"
    (listed,) = json.loads(content["manifest.json"])  # for docker load before Docker 25
    assert listed["RepoTags"] == ["localhost/pkgrepo:1.2.3"]
    assert [listed["Config"], *listed["Layers"]] == [
        f"blobs/sha256/{each['digest'].removeprefix('sha256:')}" for each in (manifest["config"], *manifest["layers"])
    ]
    for layer, diff in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
        packed = blobs[layer["digest"].removeprefix("sha256:")]
        assert layer["size"] == len(packed)
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            assert archive.getnames()
        plain = subprocess.run(["gzip", "--decompress"], input=packed, capture_output=True, check=True).stdout
        assert diff == f"sha256:{hashlib.sha256(plain).hexdigest()}"


def test_it_is_the_same_each_time(tmp_path: Path) -> None:
    assert write(tmp_path / "a").read_bytes() == write(tmp_path / "b").read_bytes()


def test_the_health_check_is_one_word_and_needs_no_shell() -> None:
    entries = {each.name: each for each in image._program_entries(Path("/nowhere"))}
    check = entries["usr/bin/pkgrepo-health"]
    assert check.mode == 0o755
    assert isinstance(check.data, bytes)
    assert check.data.startswith(b"#!/usr/lib/pkgrepo/bin/python3\n")
    compile(check.data, "pkgrepo-health", "exec")
    assert entries[image.DATA].owner == image.USER


def test_the_index_has_the_image_of_each_machine_and_all_their_blobs(tmp_path: Path) -> None:
    images = []
    for machine in MACHINES:
        folder = tmp_path / machine.architecture
        folder.mkdir()
        layers = [([Entry("x", 0o644, machine.name.encode())], "base"), ([Entry("same")], "program")]
        described, blobs = image._describe(SOURCES, layers, folder, machine)
        images.append(
            image.Image(archive=folder, packages=[], described=described, blobs=blobs, base=folder, program=folder)
        )
    with tarfile.open(image.write_index(SOURCES, images, tmp_path)) as archive:
        files = {each.name: archive.extractfile(each) for each in archive if each.isreg()}
        content = {name: file.read() for name, file in files.items() if file is not None}
    assert "manifest.json" not in content, "it is a list of images for one machine"
    (described,) = json.loads(content["index.json"])["manifests"]
    assert described["mediaType"] == "application/vnd.oci.image.index.v1+json"
    index = json.loads(content[f"blobs/{described['digest'].replace(':', '/')}"])
    assert [each["platform"]["architecture"] for each in index["manifests"]] == ["amd64", "arm64"]
    for each in images:
        assert {f"blobs/sha256/{digest}" for digest in each.blobs} <= content.keys()
