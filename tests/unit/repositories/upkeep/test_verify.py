"""Verify: blobs and readable layout are checked, problems reported or repaired."""

import errno
import os
import shutil

import pytest
from attrs import evolve

from pkgrepo.errors import BlobMissing, StorageFailed
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.blobs.gc import blob_references
from pkgrepo.storage.catalog.server import storages
from tests.support.image_layouts import top, verify
from tests.support.images import make_image
from tests.support.python_packages import make_sdist
from tests.support.repositories import NOW


async def publish(world, name, version="1.0"):
    """A project with one file; the path of its copy and its bytes."""
    filename, data = make_sdist(name, version)
    before = set(world.copies())
    await world.publish(filename, data)
    await world.follow()
    (locator,) = set(world.copies()) - before
    return world.root / "blobs" / locator, data


def damage(path):
    """Change a byte of a copy."""
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)


def state(world, sha256):
    return world.catalog.peek(
        lambda reader: reader.one("SELECT state FROM blob WHERE sha256 = ?", (bytes.fromhex(sha256),))
    )[0]


def digest_of(path):
    return path.name.partition(".")[0]


async def test_an_intact_storage_has_no_problems(world):
    await publish(world, "demo")
    report = await world.verify()
    assert (report.blobs, report.size > 0, report.problems) == (1, True, [])
    assert (report.missing, report.damaged, report.unnamed, report.layout_changes, report.mended) == (0, 0, 0, 0, 0)
    row = world.catalog.peek(lambda reader: reader.one("SELECT verified_at FROM blob"))
    assert row[0] >= NOW


async def test_missing_and_damaged_blobs_are_reported_with_their_packages(world):
    lost, _ = await publish(world, "lost")
    wrong, _ = await publish(world, "wrong", "2.0")
    (world.layout.file("py/lost/1.0/lost-1.0.tar.gz")).unlink()
    lost.unlink()
    damage(wrong)
    report = await world.verify()
    assert (report.missing, report.damaged, report.mended) == (1, 1, 0)
    text = "\n".join(report.problems)
    assert f"blob {digest_of(lost)}: the stored bytes are missing; it belongs to main/py: lost 1.0 (lost-1.0" in text
    assert f"blob {digest_of(wrong)}: its bytes have the digest " in text
    assert "; it belongs to main/py: wrong 2.0 (wrong-2.0.tar.gz)" in text
    assert state(world, digest_of(lost)) == state(world, digest_of(wrong)) == "suspect"
    assert (await world.verify(repair=True)).missing == 1  # its bytes are nowhere


@pytest.mark.parametrize("removed", [True, False])
async def test_a_copy_that_is_removed_during_the_check_is_no_problem(world, monkeypatch, removed):
    """The garbage collection has removed the blob, or an upload has put a copy of its own in the place of a bad one."""
    path, _ = await publish(world, "demo")
    sha256 = digest_of(path)
    replaced = world.catalog.peek(blobs.find_blob, world.storage.id, sha256).locator + "0"

    def gone(_locator):
        world.catalog.do(
            lambda tx: tx.execute(
                "UPDATE blob SET state = ?, locator = ?", ("deleting", replaced) if removed else ("live", replaced)
            )
        )
        raise BlobMissing(path.name)

    monkeypatch.setattr(world.store, "open", gone)
    report = await world.verify(repair=True)
    assert (report.missing, [each for each in report.problems if sha256 in each and "blob" in each]) == (0, [])
    assert state(world, sha256) == ("deleting" if removed else "live")


@pytest.mark.parametrize("code", [errno.EACCES, errno.EMFILE])
async def test_files_that_this_process_cannot_open_are_reported_and_stay_live(world, monkeypatch, code):
    path, _ = await publish(world, "demo")
    real = os.open

    def refuse(name, *arguments, **more):
        if str(name) == str(path):
            raise OSError(code, os.strerror(code))
        return real(name, *arguments, **more)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        report = await world.verify(repair=True)
    (problem,) = report.problems
    assert f"blob {digest_of(path)} cannot be checked" in problem
    assert (report.missing, report.damaged, state(world, digest_of(path))) == (0, 0, "live")


async def test_a_long_list_ends_with_a_number(world):
    await publish(world, "demo")
    for version in range(8):
        folder = world.layout.file(f"py/stray/{version}")
        folder.mkdir(parents=True)
        (folder / "file").touch()
    (problem,) = (await world.verify()).problems
    assert problem.endswith("differs in 8 places: " + ", ".join(f"py/stray/{v}/file" for v in range(5)) + " and 3 more")


@pytest.mark.parametrize("copied", [False, True])
async def test_lost_bytes_are_restored_from_the_layout(world, copied):
    path, data = await publish(world, "demo")
    shown = world.layout.file("py/demo/1.0/demo-1.0.tar.gz")
    if copied:  # where links were refused, and the blob was damaged in place
        shown.unlink()
        shutil.copyfile(path, shown)
        damage(path)
    else:
        path.unlink()
    report = await world.verify(repair=True)
    assert (report.missing + report.damaged, report.problems) == (1, [])
    (locator,) = world.copies()  # of the damaged one nothing is left
    assert (world.root / "blobs" / locator).read_bytes() == shown.read_bytes() == data
    assert state(world, digest_of(path)) == "live"
    assert (await world.verify()).problems == []


async def test_lost_bytes_are_restored_from_another_copy_of_the_storage(world):
    path, data = await publish(world, "demo")
    shutil.copyfile(path, path.with_name(digest_of(path) + "." + "0" * 16))
    world.layout.file("py/demo/1.0/demo-1.0.tar.gz").unlink()
    path.unlink()
    assert (await world.verify(repair=True)).problems == []
    assert world.layout.read("py/demo/1.0/demo-1.0.tar.gz") == data


async def test_a_wrong_file_in_the_layout_is_not_used(world):
    path, _ = await publish(world, "demo")
    path.unlink()
    damage(world.layout.file("py/demo/1.0/demo-1.0.tar.gz"))
    report = await world.verify(repair=True)
    assert (report.missing, len(report.problems)) == (1, 2)
    assert world.copies() == []
    assert state(world, digest_of(path)) == "suspect"


async def test_a_lost_layer_of_an_image_is_restored(registry):
    image = make_image("demo")
    await registry.push(image, "v1")
    await registry.update_layout()
    main = registry.stack.folder / "data/storages/main"
    for path in (main / "blobs").rglob("*.*"):
        path.unlink()
    found = await verify(registry)
    assert all("it belongs to main/images: app" in each for each in found.problems[: found.missing])
    report = await verify(registry, repair=True)
    assert (report.missing, report.problems) == (found.missing, [])
    assert found.missing > 2
    for data in image.blobs:
        shown = top(registry) / "blobs/sha256"
        assert data in [each.read_bytes() for each in shown.iterdir()]
    assert not (await verify(registry)).problems


async def test_the_check_goes_on_after_parts_that_fail(world, monkeypatch):
    lost, _ = await publish(world, "lost")
    await publish(world, "other")
    lost.unlink()
    world.layout.file("py/lost/1.0/lost-1.0.tar.gz").unlink()
    sidecar = world.layout.file("py/lost/1.0/lost-1.0.json")
    sidecar.unlink()
    sidecar.mkdir()  # which cannot be read
    world.layout.file("py/other/1.0/other-1.0.json").write_text("{}")

    async def broken(*_: object) -> None:
        raise StorageFailed("main")

    monkeypatch.setattr(world.store, "scan", broken)
    report = await world.verify()
    assert report.blobs == 2
    for part in (
        "main: blob ",
        "storage 'main': its copies cannot be checked: ",
        "main/py: lost 1.0: the readable layout differs in 2 places: py/lost/1.0/lost-1.0.tar.gz, py/lost",
        "main/py cannot be checked: Is a directory",
        "main/py: other 1.0: the readable layout differs in 1 place: py/other/1.0/other-1.0.json",
    ):
        assert [part in each for each in report.problems].count(True) == 1, (part, report.problems)


async def test_a_storage_that_cannot_be_opened_does_not_end_the_check(world, monkeypatch):
    path, _ = await publish(world, "demo")
    path.unlink()
    await world.catalog.write(storages.add_storage, name="gone", kind="Local", settings={}, now_ms=NOW, uid="gone")
    opener = world.stores._opener

    async def opened(storage):
        if storage.name == "gone":
            raise StorageFailed("gone")
        return await opener(storage)

    monkeypatch.setattr(world.stores, "_opener", opened)
    report = await world.verify()
    assert report.missing == 1
    assert [each for each in report.problems if each.startswith("storage 'gone' cannot be checked: ")]


async def test_lost_bytes_are_restored_from_another_storage(registry):
    stack = registry.stack
    image = make_image("demo")
    await stack.ok("POST", "/storage", {"name": "second"})
    await stack.add_repository("images", storage="second", format="docker")
    await registry.push(image, "v1")
    await registry.push(image, "v1", name="second/images/app")
    await registry.update_layout()
    main = stack.folder / "data/storages/main"
    for path in (*(main / "blobs").rglob("*.*"), *(main / "repositories").rglob("sha256/*")):
        if path.suffix != ".json":
            path.unlink()
    report = await verify(registry, repair=True)
    assert (report.missing > 2, report.problems) == (True, [])
    assert not (await verify(registry)).problems


async def test_users_of_a_blob_are_files_and_images_of_its_storage(world):
    path, _ = await publish(world, "demo")
    (user,) = world.catalog.peek(blob_references, world.storage.id, digest_of(path), 5)
    assert (user.package_key, user.version, user.path) == ("demo", "1.0", "packages/demo/1.0/demo-1.0.tar.gz")
    assert world.catalog.peek(blob_references, world.storage.id + 1, digest_of(path), 5) == []
    assert world.catalog.peek(blob_references, world.storage.id, "00" * 32, 5) == []
    assert world.catalog.peek(blobs.count_blobs, world.storage.id) == 1


async def test_what_another_publish_adds_to_a_blob_is_shown_beside_what_has_it_already(world):
    """Its digests, which were not computed for the first; and its new copy, if the first one is lost."""
    path, _ = await publish(world, "demo")
    found = world.catalog.peek(blobs.find_blob, world.storage.id, digest_of(path))
    more = evolve(found, digests={**found.digests, "sha1": "a" * 40})
    world.catalog.do(blobs.claim_blob, world.storage.id, more, NOW)
    await world.follow()
    assert (await world.verify()).problems == []
    sidecar = world.layout.file("py/demo/1.0/demo-1.0.json").read_text()
    assert '"sha1"' in sidecar

    locator = f"{found.locator}0"
    shutil.copy(path, path.with_name(path.name + "0"))
    world.catalog.do(blobs.mark_suspect, world.storage.id, found.sha256, found.locator)
    world.catalog.do(blobs.claim_blob, world.storage.id, evolve(found, locator=locator), NOW)
    await world.follow()
    assert locator in world.layout.file("py/demo/1.0/demo-1.0.json").read_text()
