"""Storages: added, tested, changed, removed."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress

import pytest

from pkgrepo.errors import StorageFull
from pkgrepo.storage.catalog.server import storages
from pkgrepo.storage.folders import OWNER, StoragesFile
from pkgrepo.storage.process_lock import NAME
from tests.support.inprocess_server import until
from tests.support.memory_server import WITHOUT_CONDA, Stack
from tests.support.python_packages import make_wheel


async def test_a_storage_gets_a_folder_below_the_data(stack: Stack) -> None:
    reply = await stack.api("POST", "/storage", {"name": "second", "type": "Local"})
    assert reply.status == 201
    made = reply.json
    assert made["settings"] == {"path": str(stack.folder / "data" / "storages" / "second"), "readable_layout": True}
    assert (stack.folder / "data" / "storages" / "second" / "blobs").is_dir()
    assert made["usage"]["bytes"] == made["usage"]["blobs"] == 0
    assert made["usage"]["free_bytes"] > 0
    for path in (f"/storage/{made['id']}", "/storage/SECOND"):
        assert (await stack.ok("GET", path))["id"] == made["id"]
    listed = await stack.ok("GET", "/storage/list")
    assert [each["name"] for each in listed["items"]] == ["main", "second"]


async def test_adding_the_same_storage_again_succeeds(stack: Stack) -> None:
    reply = await stack.api("POST", "/storage", {"name": "main", "type": "Local"})
    assert (reply.status, reply.json["name"]) == (200, "main")
    other = await stack.api("POST", "/storage", {"name": "main", "path": str(stack.folder / "elsewhere")})
    assert other.status == 409


async def test_a_storage_whose_creation_failed_can_be_added_again_in_its_folder(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: object, **_kwargs: object) -> None:
        raise StorageFull("catalog")

    body = {"name": "second", "type": "Local"}
    with monkeypatch.context() as patched:
        patched.setattr(storages, "add_storage", full)
        assert (await stack.api("POST", "/storage", body)).status == 507
    assert (await stack.api("POST", "/storage", body)).status == 201
    assert (await stack.ok("POST", "/storage/second/check", {}))["ok"]


async def test_a_folder_with_blobs_of_a_failed_storage_is_refused(stack: Stack) -> None:
    body = {"name": "second", "type": "Local"}
    assert (await stack.api("POST", "/storage", body)).status == 201
    (stack.folder / "data" / "storages" / "second" / "blobs" / "00" / "kept").write_bytes(b"x")
    await stack.ok("DELETE", "/storage/second")
    assert (await stack.api("POST", "/storage", body)).status == 422


async def test_the_older_form_works(stack: Stack) -> None:
    path = str(stack.folder / "given")
    body = {"name": "given", "config": {"type": "Local", "settings": {"path": path}}}
    made = await stack.ok("POST", "/storage/new/local", body)
    assert made["settings"] == {"path": path, "readable_layout": True}


@pytest.mark.parametrize("path", ["data/storages/main", "data/storages", "data/storages/main/below"])
async def test_two_storages_never_share_a_folder(stack: Stack, path: str) -> None:
    reply = await stack.api("POST", "/storage", {"name": "second", "path": str(stack.folder / path)})
    assert reply.status == 409
    assert "overlaps" in reply.json["detail"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": "a/b"}, "/name"),
        ({"name": "second", "type": "Tape"}, "/type"),
        ({"name": "second", "type": "S3"}, "/settings"),
        ({"name": "second", "path": "/proc/nowhere"}, "/settings/path"),
        ({"name": "second", "path": "/tmp/\0"}, "/settings/path"),
    ],
)
async def test_an_invalid_storage_makes_no_folder(stack: Stack, body: dict[str, str], pointer: str) -> None:
    reply = await stack.api("POST", "/storage", body)
    assert (reply.status, reply.pointer) == (422, pointer)
    assert len((await stack.ok("GET", "/storage"))["items"]) == 1


async def test_a_check_writes_and_reads_a_probe_and_leaves_none(stack: Stack) -> None:
    checked = await stack.ok("POST", "/storage/main/check")
    assert (checked["ok"], checked["error"]) == (True, None)
    blobs = stack.folder / "data" / "storages" / "main" / "blobs"
    assert [path for path in blobs.rglob("*") if path.is_file()] == []
    assert (await stack.audited(action="storage.check"))[0]["object"] == "main"


async def test_a_storage_in_use_is_not_removed(stack: Stack) -> None:
    await stack.ok("POST", "/storage", {"name": "second"})
    made = await stack.add_repository(storage="second")
    assert (await stack.api("DELETE", "/storage/second")).status == 409
    await stack.ok("DELETE", f"/repository/{made['id']}?confirm=py&purge=true")
    assert (await stack.api("DELETE", "/storage/second?dry_run=true")).status == 204
    assert (await stack.api("DELETE", "/storage/second")).status == 204
    assert (await stack.api("GET", "/storage/second")).status == 404


async def test_the_path_of_a_storage_changes_only_while_it_is_empty(stack: Stack) -> None:
    await stack.ok("POST", "/storage", {"name": "second"})
    path = str(stack.folder / "moved")
    moved = await stack.ok("PATCH", "/storage/second", {"path": path, "name": "third"})
    assert (moved["name"], moved["settings"]) == ("third", {"path": path, "readable_layout": True})
    made = await stack.add_repository(storage="third", config=WITHOUT_CONDA)
    refused = await stack.api("PATCH", "/storage/third", {"settings": {"path": path + "2"}})
    assert (refused.status, refused.json["detail"]) == (409, "storage 'third' is used by third/py")
    await stack.publish("third/py", "demo", "1.0")
    assert (await stack.ok("GET", "/storage/third"))["usage"]["blobs"] == 2
    await stack.ok("DELETE", f"/repository/{made['id']}?confirm=py&purge=true")
    refused = await stack.api("PATCH", "/storage/third", {"settings": {"path": path + "2"}})
    assert (refused.status, "2 blobs" in refused.json["detail"]) == (409, True)


async def test_the_path_of_a_storage_does_not_change_to_an_unusable_folder(stack: Stack) -> None:
    made = await stack.ok("POST", "/storage", {"name": "second"})
    full = stack.folder / "full"
    full.mkdir()
    (full / "somebody's").write_text("")
    for path in ("/proc/nowhere", str(full)):
        refused = await stack.api("PATCH", "/storage/second", {"path": path, "name": "third"})
        assert (refused.status, refused.pointer) == (422, "/settings/path")
    taken = await stack.api("PATCH", "/storage/second", {"path": str(stack.folder / "free"), "name": "main"})
    assert taken.status == 409
    known = StoragesFile(stack.folder / "data")
    assert (await stack.ok("POST", "/storage/second/check"))["ok"]
    assert [each.path for each in known.list() if each.uid == made["id"]] == ["storages/second"]


async def test_no_repository_is_made_in_a_storage_that_is_switched_off(stack: Stack) -> None:
    await stack.ok("POST", "/storage", {"name": "second", "active": False})
    reply = await stack.api("POST", "/repository", {"name": "py", "storage": "second", "format": "python"})
    assert reply.status == 409


async def test_a_copy_of_a_storages_folder_is_refused(stack: Stack) -> None:
    await stack.ok("POST", "/storage", {"name": "far", "path": str(stack.folder / "far")})
    shutil.copytree(stack.folder / "far", stack.folder / "copy")
    reply = await stack.api("POST", "/storage", {"name": "copy", "path": str(stack.folder / "copy")})
    assert (reply.status, reply.pointer) == (422, "/settings/path")


async def test_a_missing_storage_is_not_created_again(stack: Stack) -> None:
    await stack.ok("POST", "/storage", {"name": "far", "path": str(stack.folder / "far")})
    await stack.add_repository(storage="far")
    (stack.folder / "far").rename(stack.folder / "away")
    await stack.ok("PATCH", "/storage/far", {"name": "remote"})  # after which it is opened again
    filename, data = make_wheel("demo", "1.0")
    reply = await stack.call("PUT", f"/repositories/remote/py/demo/1.0/{filename}", raw=data)
    assert reply.status == 503
    assert str(stack.folder).encode() not in reply.body
    assert (await stack.call("GET", "/readyz")).status == 503
    checked = await stack.ok("POST", "/storage/remote/check")
    assert (checked["ok"], str(stack.folder / "far") in checked["error"]) == (False, True)
    assert not (stack.folder / "far").exists()
    (stack.folder / "away").rename(stack.folder / "far")
    await stack.publish("remote/py", "demo", "1.0")


async def test_absolute_paths_in_the_data_folder_become_relative_at_a_start(stack: Stack) -> None:
    core = stack.assembly.core
    await stack.ok("POST", "/storage", {"name": "far", "path": str(stack.folder / "far")})
    (main,) = [each for each in core.registry.storages() if each.name == "main"]
    (core.folders.folder(main) / OWNER).unlink()
    (stack.folder / "far" / OWNER).unlink()
    settings = {"path": str(core.folders.folder(main))}
    await core.catalog.write(storages.update_storage, main.id, settings=settings, now_ms=core.clock.now_ms())
    await stack.stop()
    again = Stack(stack.folder)
    await again.start()
    found = {each.name: each.settings["path"] for each in again.assembly.core.registry.storages()}
    assert found == {"main": "storages/main", "far": str(stack.folder / "far")}
    assert (core.folders.data / "storages" / "main" / OWNER).exists()
    assert (stack.folder / "far" / OWNER).exists()
    await again.stop()


async def test_a_storage_that_is_opened_again_is_marked_as_in_use_once(stack: Stack) -> None:
    await stack.ok("POST", "/storage", {"name": "second"})
    for name in ("third", "fourth", "fifth"):
        await stack.ok("PATCH", "/storage/second", {"active": False})
        await stack.ok("PATCH", "/storage/second", {"name": name})
        await stack.ok("PATCH", f"/storage/{name}", {"name": "second"})
    mark = stack.folder / "data" / "storages" / "second" / NAME
    assert open_files().count(str(mark)) == 1


def open_files() -> list[str]:
    """The files that this process has open; threads may close some while they are listed."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return found


async def test_a_storage_is_made_without_a_readable_layout(stack: Stack) -> None:
    body = {"name": "plain", "settings": {"readable_layout": False}}
    made = await stack.ok("POST", "/storage", body)
    assert made["settings"]["readable_layout"] is False
    assert "reindex cannot bring back" in made["warnings"][0]
    assert (await stack.ok("POST", "/storage", body))["id"] == made["id"]
    assert (await stack.call("POST", "/api/storage", {"name": "plain"})).status == 409
    main = await stack.ok("GET", "/storage/main")
    assert (main["settings"]["readable_layout"], main["warnings"]) == (True, [])


async def test_the_layout_of_a_storage_is_switched_off_and_on(stack: Stack) -> None:
    await stack.add_repository()
    await stack.publish("main/py", "demo", "1.0")
    follower = stack.assembly.core.follower
    layout = stack.folder / "data/storages/main/repositories/py"
    await until((layout / "demo/1.0/demo-1.0.json").exists)
    changed = await stack.ok("PATCH", "/storage/main", {"settings": {"readable_layout": False}})
    assert changed["warnings"]
    await until(lambda: not layout.exists() and follower._following is None)
    changed = await stack.ok("PATCH", "/storage/main", {"settings": {"readable_layout": True}})
    assert (changed["warnings"], changed["settings"]["readable_layout"]) == ([], True)
    await until((layout / "demo/1.0/demo-1.0.json").exists)
    assert (await stack.call("PATCH", "/api/storage/main", {"settings": {"readable_layout": "no"}})).status == 422
