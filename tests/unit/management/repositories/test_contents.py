"""Uploads that have not ended: they are listed, and cancelled, by those who may edit the repository."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pkgrepo.storage.catalog.packages.events import events_after
from tests.support.images import Registry
from tests.support.memory_server import Stack


async def begin(stack: Stack, name: str, data: bytes = b"") -> str:
    """Begin an upload and send some bytes of it; returns its path, whose last part is its id."""
    registry = Registry(stack, name)
    begun = await registry.start()
    if data:
        assert (await registry.continue_upload(begun, "PATCH", data)).status == 202
    location: str = begun.headers["location"]
    return location


async def test_open_uploads_are_listed_page_by_page(stack: Stack) -> None:
    uid = (await stack.add_repository("images", format="docker"))["id"]
    await stack.add_repository("others", format="docker")
    await begin(stack, "main/others/elsewhere")
    paths = [await begin(stack, "main/images/team/app", b"x" * 1000), await begin(stack, "main/images/tool")]
    listed = (await stack.ok("GET", f"/repository/{uid}/uploads"))["items"]
    assert sorted(each["id"] for each in listed) == sorted(path.rpartition("/")[2] for path in paths)
    found: dict[str, Any] = {each["package"]: each for each in listed}
    assert [(name, each["received"]) for name, each in sorted(found.items())] == [("team/app", 1000), ("tool", 0)]
    assert {(each["user"], each["running"]) for each in listed} == {("admin", False)}
    used, expires = (datetime.fromisoformat(found["tool"][key]) for key in ("used_at", "expires_at"))
    assert expires - used == timedelta(days=1)
    first = await stack.ok("GET", f"/repository/{uid}/uploads?limit=1")
    second = await stack.ok("GET", f"/repository/{uid}/uploads?limit=1&cursor={first['next']}")
    assert [*first["items"], *second["items"]] == listed
    assert second["next"] is None


async def test_an_upload_is_cancelled_with_its_bytes(stack: Stack) -> None:
    uid = (await stack.add_repository("images", format="docker"))["id"]
    other = (await stack.add_repository("others", format="docker"))["id"]
    before = unfinished(stack)
    path = await begin(stack, "main/images/team/app", b"x" * 1000)
    id_ = path.rpartition("/")[2]
    assert unfinished(stack) > before
    await stack.add_user("rita")
    await stack.grant("rita", "main/images", "read", "write")
    assert (await stack.api("DELETE", f"/repository/{uid}/uploads/{id_}", who="rita")).status == 403
    assert (await stack.api("GET", f"/repository/{uid}/uploads", who="rita")).status == 403
    assert (await stack.api("DELETE", f"/repository/{other}/uploads/{id_}")).status == 404
    assert await stack.ok("DELETE", f"/repository/{uid}/uploads/{id_}") == {"id": id_}
    assert (await stack.api("DELETE", f"/repository/{uid}/uploads/{id_}")).status == 404
    assert (await stack.ok("GET", f"/repository/{uid}/uploads"))["items"] == []
    assert (await stack.call("GET", path)).status == 404
    assert unfinished(stack) == before
    entry = (await stack.audited(action="upload.cancel", outcome="ok"))[-1]
    assert entry["object"] == "main/images/team/app"


def unfinished(stack: Stack) -> set[Path]:
    """The files of uploads on the disk."""
    data = stack.assembly.core.config.data.dir
    return {each for each in Path(data).rglob("*") if each.is_file() and each.stat().st_size == 1000}


async def test_name_of_a_removed_package_is_listed_until_it_is_released_or_published_again(stack: Stack) -> None:
    uid = (await stack.add_repository("own", config={"type": "Hosted"}))["id"]
    for name in ("first", "second", "third"):
        await stack.publish("main/own", name, "1.0")
    for name in ("first", "second"):
        await stack.ok("DELETE", f"/package/{uid}/{name}")
    await stack.publish("main/own", "second", "2.0")
    path = f"/repository/{uid}/retired-names"
    assert [each["key"] for each in (await stack.ok("GET", path))["items"]] == ["first"]
    await stack.add_user("rita")
    await stack.grant("rita", "main/own", "read", "write")
    assert (await stack.api("POST", f"{path}/release", {"package": "First"}, who="rita")).status == 403
    assert await stack.ok("POST", f"{path}/release", {"package": "First"}) == {"key": "first"}
    assert (await stack.api("POST", f"{path}/release", {"package": "first"})).status == 404
    assert (await stack.ok("GET", path))["items"] == []
    entry = (await stack.audited(action="name.release", outcome="ok"))[-1]
    assert entry["object"] == "main/own/first"
    [event] = [each for each in stack.assembly.core.catalog.peek(events_after, 0, 100) if each.kind == "name_released"]
    assert event.package_key == "first", "the readable layout is told"
