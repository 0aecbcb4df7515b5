"""A server that is killed while artifacts are deployed: each file is complete with its checksums, or absent."""

import random

import pytest

from tests.support.configurations import config, hosted
from tests.support.data_folder import DataFolder
from tests.support.http_client import HttpClient
from tests.support.maven_files import directory, make_pom, sums
from tests.support.random_kills import survive_kills
from tests.support.uploader import Upload, Uploader

pytestmark = pytest.mark.faults

REPOSITORIES = hosted("maven", mvn=config(push_rules="allow_overwrite = false"))
BASE = "/repositories/main/mvn"
VERSIONS = 40


def test_each_file_is_complete_or_absent(run, tmp_path):
    data = DataFolder(tmp_path / "data")
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    bodies = {}
    for n in range(VERSIONS):
        version = f"1.{n}" if n % 2 else f"1.{n}-SNAPSHOT"
        name = version.replace("SNAPSHOT", f"20240102.030405-{n}")
        at = directory("com.example", "app", version)
        bodies[f"{at}/app-{name}.pom"] = make_pom("com.example", "app", version)
        for rest in (".jar", "-sources.jar", ".jar.asc"):
            bodies[f"{at}/app-{name}{rest}"] = rng.randbytes(rng.choice([10, 1000, 70_000, 400_000]))
        bodies[f"/notes/{n}.txt"] = rng.randbytes(50)
    uploads = [Upload(path, BASE + path, body) for path, body in bodies.items()]
    rng.shuffle(uploads)
    uploader = Uploader(uploads)

    def check(server):
        """Check that each file is whole or absent, and that every acknowledged one is there."""
        where = HttpClient(f"{server.url}{BASE}")
        found = set()
        for path, body in bodies.items():
            reply = where.get(path)
            checksum = where.get(f"{path}.sha1")
            assert (reply.status, checksum.status) in ((200, 200), (404, 404)), (seed, path)
            if reply.status == 200:
                assert (reply.body, checksum.text) == (body, sums(body)["sha1"]), (seed, path)
                found.add(path)
        assert uploader.acknowledged <= found, seed
        return found

    assert survive_kills(run, uploader, check, len(uploads), data, rng, seed) == set(bodies), seed
