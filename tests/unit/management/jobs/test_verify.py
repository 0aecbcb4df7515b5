"""Verification: the stored bytes of one repository are compared with their digests while the server runs."""

from __future__ import annotations

from pathlib import Path

from tests.support.images import Registry, make_image
from tests.support.memory_server import WITHOUT_CONDA, Stack

VERIFY = "/repository/main%2Fpy/verify"


def copies(stack: Stack) -> list[Path]:
    """The stored copies of blobs."""
    root = stack.assembly.core.config.data.dir / "storages" / "main" / "blobs"
    return [each for each in sorted(root.rglob("*")) if each.is_file()]


async def test_only_the_blobs_of_the_repository_are_read(stack: Stack) -> None:
    for name in ("py", "other"):
        await stack.add_repository(name, config=WITHOUT_CONDA)
        await stack.publish(f"main/{name}", f"of-{name}", "1.0")
    found = await stack.ok("POST", VERIFY)
    assert (found["blobs"], found["missing"], found["damaged"], found["errors"]) == (2, 0, 0, [])
    assert found["size_bytes"] > 0
    job = await stack.ok("GET", f"/job/{found['job_id']}")
    assert (job["kind"], job["state"], job["result"]["blobs"]) == ("verify", "done", 2)
    [part] = job["parts"]
    assert (part["label"], part["done"], part["total"]) == ("blobs of main, those in main/py", 4, 4)
    assert (await stack.audited(action="repository.verify"))[0]["object"] == "main/py"


async def test_damaged_and_missing_bytes_are_named_with_their_packages(stack: Stack) -> None:
    await stack.add_repository("py", config=WITHOUT_CONDA)
    await stack.publish("main/py", "demo", "1.0")
    first, second = copies(stack)
    first.chmod(0o644)
    first.write_bytes(b"other bytes")
    second.unlink()
    found = await stack.ok("POST", VERIFY)
    assert (found["blobs"], found["missing"], found["damaged"]) == (2, 1, 1)
    assert all("it belongs to main/py: demo 1.0 (demo-1.0-" in each for each in found["errors"])
    assert str(stack.assembly.core.config.data.dir) not in str(found)


async def test_manifests_and_layers_of_images_are_read(stack: Stack) -> None:
    await stack.add_repository("images", format="docker")
    await Registry(stack).push(make_image("one"), "v1")
    found = await stack.ok("POST", "/repository/main%2Fimages/verify")
    assert (found["blobs"], found["errors"]) == (len(copies(stack)), [])


async def test_it_needs_the_action_admin(stack: Stack) -> None:
    await stack.add_repository("py")
    await stack.add_user("ada")
    await stack.grant("ada", "main/py", "read", "write", "edit")
    assert (await stack.api("POST", VERIFY, who="ada")).status == 403
    await stack.grant("ada", "main/py", "read", "admin")
    assert (await stack.ok("POST", VERIFY, who="ada"))["errors"] == []


async def test_what_a_dry_run_would_delete_is_not_in_the_audit_log(stack: Stack) -> None:
    await stack.add_repository("py", config=WITHOUT_CONDA)
    await stack.publish("main/py", "demo", "1.0")
    for path in ("/package/main%2Fpy/demo", "/package/main%2Fpy/demo/versions/1.0", "/repository/main%2Fpy"):
        await stack.ok("DELETE", f"{path}?dry_run=true")
    rows = await stack.audited()
    assert not [each for each in rows if each["action"].endswith(".delete")]
    await stack.ok("DELETE", "/package/main%2Fpy/demo")
    assert len(await stack.audited(action="package.delete")) == 1
