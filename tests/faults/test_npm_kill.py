"""A server that is killed while npm versions are published: each version is complete or absent."""

import base64
import hashlib
import json
import random

import pytest

from tests.support.configurations import hosted
from tests.support.data_folder import DataFolder
from tests.support.http_client import HttpClient
from tests.support.npm_packages import make_publish, make_tarball
from tests.support.random_kills import survive_kills
from tests.support.uploader import Upload, Uploader

pytestmark = pytest.mark.faults

REPOSITORIES = hosted("npm", "js")
NAMES = ("left", "@some/right", "middle")
VERSIONS = 80  # versions of each package


def integrity_of(body):
    return f"sha512-{base64.b64encode(hashlib.sha512(body).digest()).decode()}"


def test_each_version_is_complete_or_absent(run, tmp_path):
    data = DataFolder(tmp_path / "data")
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    uploads, published = [], {}
    for n in range(VERSIONS):
        for name in NAMES:
            version = f"1.0.{n}"
            tarball = make_tarball(name, version, pad=rng.choice([0, 1000, 70_000, 400_000]))
            body = make_publish(name, version, tarball=tarball, tag=f"t{n}")
            uploads.append(Upload((name, version), f"/repositories/main/js/{name}", body, repeated=(403,)))
            published[name, version] = integrity_of(tarball)
    rng.shuffle(uploads)
    uploader = Uploader(uploads)

    def documents(server):
        registry = HttpClient(f"{server.url}/repositories/main/js")
        for name in NAMES:
            reply = registry.get(f"/{name}")
            yield name, json.loads(reply.body) if reply.status == 200 else {"versions": {}, "dist-tags": {}, "time": {}}

    def check(server):
        """Check that every listed version can be downloaded, and that every acknowledged version is listed."""
        registry = HttpClient(f"{server.url}/repositories/main/js")
        listed = set()
        for name, document in documents(server):
            assert set(document["versions"]) == set(document["time"]) - {"created", "modified"}
            tags = {f"t{version.rpartition('.')[2]}" for version in document["versions"]}
            assert set(document["dist-tags"]) - {"latest"} == tags
            for version, manifest in document["versions"].items():
                unscoped = name.rpartition("/")[2]
                reply = registry.get(f"/{name}/-/{unscoped}-{version}.tgz")
                assert reply.status == 200, (seed, name, version)
                assert integrity_of(reply.body) == manifest["dist"]["integrity"] == published[name, version], seed
                listed.add((name, version))
        assert uploader.acknowledged <= listed, seed
        return listed

    assert survive_kills(run, uploader, check, len(uploads), data, rng, seed) == set(published), seed
