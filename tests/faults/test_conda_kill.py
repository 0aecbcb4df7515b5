"""A server that is killed while packages are uploaded and wheels converted: repodata has all files, and whole ones."""

import hashlib
import random

import msgspec
import pytest
import zstandard

from tests.support.conda_packages import make_conda, make_tar_bz2
from tests.support.configurations import hosted
from tests.support.data_folder import DataFolder, wait_for
from tests.support.http_client import HttpClient
from tests.support.python_packages import make_wheel
from tests.support.random_kills import survive_kills
from tests.support.uploader import Upload, Uploader

pytestmark = pytest.mark.faults

REPOSITORIES = hosted("conda", "ch") + hosted("python", "py")
SUBDIRS = ("noarch", "linux-64")
COUNT = 40  # packages in each folder, and wheels


def test_repodata_has_whole_files_and_all_that_were_acknowledged(run, tmp_path):
    data = DataFolder(tmp_path / "data")
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    packages = {}
    for number in range(COUNT):
        for subdir in SUBDIRS:
            make, ending = rng.choice([(make_conda, ".conda"), (make_tar_bz2, ".tar.bz2")])
            packages["ch", f"{subdir}/p{number % 7}-1.{number}-h0_0{ending}"] = make(
                f"p{number % 7}", f"1.{number}", "h0_0", subdir=subdir, noarch=None
            )
    wheels = {}
    for number in range(COUNT):
        filename, body = make_wheel(f"w{number % 7}", f"1.{number}")
        wheels["py", f"w{number % 7}/1.{number}/{filename}"] = body
    uploads = [Upload(key, f"/repositories/main/{'/'.join(key)}", body) for key, body in (packages | wheels).items()]
    rng.shuffle(uploads)
    uploader = Uploader(uploads)

    def check(server):
        """Check that each record has its file, and that shards and repodata say the same; wheels follow at once."""
        main = HttpClient(f"{server.url}/repositories/main")
        kept = {key for key in packages if key[1] in listed(main, "ch", seed)}
        named = {key for key in wheels if main.get(f"/py/packages/{key[1]}").status == 200}
        converted = {f"noarch/{key[1].partition('/')[0]}-{key[1].split('/')[1]}-py_0.conda" for key in named}
        wait_for(lambda: files(main, "py/conda", "noarch").keys() == converted, server)
        assert listed(main, "py/conda", seed) == converted, seed
        assert uploader.acknowledged <= kept | named, seed
        return kept | named

    assert survive_kills(run, uploader, check, len(uploads), data, rng, seed) == set(packages | wheels), seed


def files(main, channel, subdir):
    """The records of a folder by the paths of files."""
    document = main.get(f"/{channel}/{subdir}/repodata.json").json
    return {
        f"{subdir}/{file}": each for kind in ("packages", "packages.conda") for file, each in document[kind].items()
    }


def listed(main, channel, seed):
    """The paths of all files in the repodata of a channel, each of which is what its record and its shard say."""
    found = {}
    for subdir in SUBDIRS:
        records = files(main, channel, subdir)
        index = zstandard.decompress(main.get(f"/{channel}/{subdir}/repodata_shards.msgpack.zst").body)
        sharded = {}
        for digest in msgspec.msgpack.decode(index)["shards"].values():
            body = main.get(f"/{channel}/{subdir}/shards/{digest.hex()}.msgpack.zst").body
            shard = msgspec.msgpack.decode(zstandard.decompress(body))
            for kind in ("packages", "packages.conda"):
                sharded |= {f"{subdir}/{file}": each["sha256"].hex() for file, each in shard[kind].items()}
        assert {path: each["sha256"] for path, each in records.items()} == sharded, seed
        found |= records
    for path, record in found.items():
        body = main.get(f"/{channel}/{path}").body
        assert (len(body), hashlib.sha256(body).hexdigest()) == (record["size"], record["sha256"]), (seed, path)
    return set(found)
