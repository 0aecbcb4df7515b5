"""A server that is killed while gems are pushed and yanked: each version is complete or absent, in every index."""

import hashlib
import random

import pytest

from tests.support.configurations import hosted
from tests.support.data_folder import DataFolder
from tests.support.gems import make_gem
from tests.support.http_client import HttpClient
from tests.support.random_kills import survive_kills
from tests.support.uploader import Upload, Uploader

pytestmark = pytest.mark.faults

REPOSITORIES = hosted("ruby", "rb")
NAMES = ("left", "right", "middle")
VERSIONS = 60  # versions of each gem


def test_each_version_is_complete_or_absent_in_every_index(run, tmp_path):
    data = DataFolder(tmp_path / "data")
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    gems = {(name, f"1.{n}"): make_gem(name, f"1.{n}") for n in range(VERSIONS) for name in NAMES}
    uploads = [Upload(key, "/repositories/main/rb/api/v1/gems", body, method="POST") for key, body in gems.items()]
    rng.shuffle(uploads)
    uploader = Uploader(uploads)

    def check(server):
        """Check that the lists, the documents and the files have the same versions, and all acknowledged ones."""
        where = HttpClient(f"{server.url}/repositories/main/rb")
        listed, last = set(), {}
        for line in where.get("/versions").text.splitlines()[2:]:
            name, version, last[name] = line.split(" ")
            assert (name, version) not in listed, seed
            listed.add((name, version))
        for name, md5 in last.items():
            info = where.get(f"/info/{name}")
            assert hashlib.md5(info.body).hexdigest() == md5, (seed, name)
            lines = info.text.splitlines()[1:]
            assert {(name, line.partition(" ")[0]) for line in lines} == {key for key in listed if key[0] == name}, seed
        for name, version in listed:
            assert where.get(f"/gems/{name}-{version}.gem").body == gems[name, version], (seed, name, version)
            assert where.get(f"/quick/Marshal.4.8/{name}-{version}.gemspec.rz").status == 200, (seed, name, version)
        assert uploader.acknowledged <= listed, seed
        return listed

    assert survive_kills(run, uploader, check, len(uploads), data, rng, seed) == set(gems), seed
