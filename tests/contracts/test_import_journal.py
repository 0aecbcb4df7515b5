"""The journal of imports, on every engine."""

from functools import partial

import msgspec

from pkgrepo.repositories.configuration import Retention
from pkgrepo.repositories.retention.rules import Rules
from pkgrepo.repositories.version_ranges import NO_VERSIONS
from pkgrepo.storage.catalog import usage_counts
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.images.manifests import ManifestRecord, add_manifest
from pkgrepo.storage.catalog.images.summaries import pulls_of_manifest
from pkgrepo.storage.catalog.imported_downloads import Downloads, imported_downloads, keep_downloads
from pkgrepo.storage.catalog.packages import packages, retained
from pkgrepo.storage.catalog.packages.summaries import list_version_summaries
from pkgrepo.storage.catalog.server import imports
from pkgrepo.storage.catalog.server.imports import LeftOut
from pkgrepo.storage.catalog.usage_counts import DAY_MS, Download
from tests.support.catalogs import NOW, add_repository, make_blob, publish


async def test_a_journal_knows_the_packages_that_need_no_other_look(catalog):
    repository = await catalog.write(add_repository)
    journal = await catalog.write(imports.ensure_import, repository.id, "python", "https://old.example/simple")
    assert await catalog.write(imports.ensure_import, repository.id, "python", "https://old.example/simple") == journal
    assert await catalog.write(imports.ensure_import, repository.id, "npm", "https://old.example/simple") != journal
    left = [LeftOut("demo", "b.doc", "no package"), LeftOut("demo", "a.doc", "no package")]
    await catalog.write(imports.note_package, journal, "demo", "one", 3, left, 1)
    assert await catalog.look(imports.find_fingerprint, journal, "demo") == ("one", 3)
    assert await catalog.look(imports.left_out_of, journal, "demo") == left[::-1]
    await catalog.write(imports.note_package, journal, "demo", None, 3, left[:1], 2)
    assert await catalog.look(imports.find_fingerprint, journal, "demo") is None
    assert await catalog.look(imports.left_out_of, journal, "demo") == left[:1]
    assert await catalog.look(imports.left_out_of, journal, "other") == []


async def test_imported_downloads_are_in_totals_and_in_no_figure_of_days(catalog):
    repository = await catalog.write(add_repository)
    first = await catalog.write(publish, repository, "demo-1.0.whl", version="1.0")
    await catalog.write(publish, repository, "demo-2.0.whl", version="2.0")
    own = Download(
        item_id=first.id,
        repository_id=repository.id,
        package_id=first.package_id,
        path=first.path,
        user_id=None,
        token_id=None,
        at_ms=20_000 * DAY_MS,
    )
    await catalog.write(usage_counts.record_downloads, [own])
    keep = partial(catalog.write, keep_downloads, repository.id, "demo")
    for said, changed, total, counts in (
        (Downloads(0, {"1.0": 5, "2.0": 7, "0.1": 99}), True, 12, {"1.0": 6, "2.0": 7}),
        (Downloads(0, {"1.0": 5, "2.0": 7}), False, 12, {"1.0": 6, "2.0": 7}),
        (Downloads(20, {"1.0": 4}), True, 20, {"1.0": 6, "2.0": 7}),  # of another source
        (Downloads(19, {"2.0": 9}), False, 20, {"1.0": 6, "2.0": 9}),
    ):
        assert await keep(said) == changed
        assert await catalog.look(usage_counts.downloads_of_package, first.package_id) == total + 1
        listed = await catalog.look(list_version_summaries, first.package_id)
        assert {each.text: each.downloads for each in listed} == counts
        assert await catalog.look(imported_downloads, repository.id) == total
    assert await catalog.look(usage_counts.downloads_by_day, repository.id, 0, 30_000) == [(20_000, 1)]
    assert await catalog.look(usage_counts.package_downloads_by_day, first.package_id, 0, 30_000) == [(20_000, 1)]
    assert await catalog.look(usage_counts.downloads_by_version, first.package_id, 0, 9) == [("1.0", 1)]
    assert not await catalog.write(keep_downloads, repository.id, "other", Downloads(5))


async def test_imported_pulls_of_a_manifest_were_on_no_day(catalog):
    repository = await catalog.write(add_repository)
    package, _ = await catalog.write(
        packages.ensure_package, repository.id, key="app", name="app", serial=1, now_ms=NOW
    )
    blob = make_blob(b"{}")
    await catalog.write(blobs.claim_blob, repository.storage_id, blob, NOW)
    digest = f"sha256:{blob.sha256}"
    new = ManifestRecord(digest=digest, sha256=blob.sha256, media_type="text/plain", size=2)
    await catalog.write(add_manifest, repository.id, package.id, new, None, NOW)
    for count in (7, 7, 5):
        await catalog.write(keep_downloads, repository.id, "app", Downloads(9, manifests={digest: count}))
        assert await catalog.look(pulls_of_manifest, package.id, digest) == (7, None)
        assert await catalog.look(usage_counts.downloads_of_package, package.id) == 9
    manifest_id = (await catalog.look(_manifest_ids))[0][0]
    assert await catalog.look(retained.downloads_of, "manifest", [manifest_id], -1) == {manifest_id: -1}
    rule = {"name": "unused", "keep": {"downloaded_within_days": 36_500}}
    since = Rules(msgspec.convert({"rules": [rule]}, Retention), None, NOW, ranges=NO_VERSIONS).used_since_day
    assert await catalog.look(retained.downloads_of, "manifest", [manifest_id], since) == {}


def _manifest_ids(reader):
    return reader.all("SELECT id FROM manifest")
