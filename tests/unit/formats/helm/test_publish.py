"""What is kept of upstreams, and what provenance tells."""

from types import SimpleNamespace

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.helm.entries import normalise_index
from pkgrepo.formats.helm.publish import make_remote_release, signed_file
from pkgrepo.model import BlobInfo
from pkgrepo.proxy.parts.values import Context
from pkgrepo.proxy.remote_files import RemoteFile
from tests.support.charts import make_chart, make_provenance

BLOB = BlobInfo("ab" * 32, 7, {"sha256": "ab" * 32}, "x")


class Staged:
    """Staged bytes, which are looked at once."""

    def __init__(self, data):
        self.data = data

    async def inspect(self, _pool, _blob, look):
        return look(self.data)


def listed(path, digest=""):
    source = f"entries: {{demo: [{{name: demo, version: 1.0.0, urls: [a.tgz], digest: '{digest}'}}]}}".encode()
    [entry] = normalise_index(source, Context("", "https://c.example/index.yaml")).entries
    found = next(each for each in entry.files if each.path == path)
    return RemoteFile(None, "demo", "route", found, entry)


async def release_of(data, *place):
    return await make_remote_release(listed(*place), Staged(data), BLOB, SimpleNamespace(cpu=None))


async def test_an_archive_without_a_digest_must_be_the_chart():
    kept = await release_of(make_chart("demo", "1.0.0"), "charts/demo-1.0.0.tgz")
    assert (kept.package_key, kept.version_key, kept.files[0].path) == ("demo", "1.0.0", "charts/demo-1.0.0.tgz")
    for other in (make_chart("demo", "1.0.1"), make_chart("another", "1.0.0"), b"<html>"):
        with pytest.raises(Invalid):
            await release_of(other, "charts/demo-1.0.0.tgz")


async def test_one_with_its_digest_is_what_the_index_says():
    kept = await release_of(b"not read", "charts/demo-1.0.0.tgz", "ab" * 32)
    assert kept.files[0].attrs["chart"] == {"apiVersion": "v1", "name": "demo", "version": "1.0.0"}


async def test_provenance_belongs_to_its_archive():
    kept = await release_of(b"text", "charts/demo-1.0.0.tgz.prov")
    assert (kept.files[0].attrs, kept.version_key, kept.overwrite) == ({"role": ".prov"}, "1.0.0", False)


SHORT, ODD = make_provenance("demo-1.0.0.tgz", "0" * 63), make_provenance("a b.tgz", "0" * 64)


@pytest.mark.parametrize("text", [b"", b"\xff", b"files:\n  a-1.tgz: sha256:00\n", SHORT, ODD])
def test_other_texts_are_no_provenance(text):
    with pytest.raises(Invalid):
        signed_file(text)
    assert signed_file(make_provenance("demo-1.0.0.tgz", "0" * 64)) == ("demo-1.0.0.tgz", "0" * 64)


def test_a_long_text_without_a_signature_is_read_in_linear_time():
    with pytest.raises(Invalid):
        signed_file(b"-----BEGIN PGP SIGNED MESSAGE-----\n" + b"\n...\nfiles:\n" * 50_000)
