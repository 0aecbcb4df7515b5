"""Ways to more than one was given, by detours through the token service and the management API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytest_twisted

from tests.support.management import Stack
from tests.support.pyprojects import make_wheel
from tests.support.server import no_failures


@pytest_twisted.async_yield_fixture
async def stack(tmp_path: Path) -> Any:
    """A server without ports with the public repository ``main/py``; nothing may fail in its log."""
    running = Stack(tmp_path)
    await running.start()
    with no_failures():
        await running.add_repository()
        yield running
        await running.stop()


async def upload(stack: Stack, who: str, *, pad: int = 0, **fields: str) -> int:
    filename, data = make_wheel("demo", "1.0", pad=pad)
    path = f"/repositories/main/py/packages/demo/1.0/{filename}"
    return (await stack.call("PUT", path, raw=data, who=who, headers=fields)).status


@pytest_twisted.ensureDeferred
async def test_a_bearer_token_replaces_no_file_when_its_access_token_may_not(stack: Stack) -> None:
    config = {"type": "Hosted", "policy": {"allow_overwrite": True}}
    await stack.ok("PUT", "/repository/main%2Fpy/config", config)
    token = await stack.token(repositories=[{"repository": "main/py", "actions": ["read", "write"]}])
    bearer = await stack.ok("GET", "/auth/token?scope=repository:main/py/demo:pull,push", who=token)
    assert await upload(stack, token) == 201
    assert await upload(stack, token, pad=100) == 400
    assert await upload(stack, bearer["token"], pad=100) == 400


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://registry.example.evil.example"])
@pytest_twisted.ensureDeferred
async def test_a_page_of_another_site_publishes_and_withdraws_nothing(stack: Stack, origin: str) -> None:
    assert await upload(stack, "admin", Origin=origin) == 403
    assert await upload(stack, "admin", Origin="http://registry.example") == 201
    path = "/repositories/main/py/pypi/demo/1.0/yank"
    assert (await stack.call("POST", path, headers={"Origin": origin})).status == 403
    assert (await stack.call("POST", path)).status == 200
    assert (await stack.call("GET", "/repositories/main/py/simple/demo/", headers={"Origin": origin})).status == 200


@pytest_twisted.ensureDeferred
async def test_nobody_learns_which_private_repositories_there_are(stack: Stack) -> None:
    await stack.add_repository("secret", visibility="private")
    for path in ("/project/by-key/{}/demo", "/repository/{}", "/package/{}/demo", "/repository/{}/config"):
        found, absent = [
            await stack.api("GET", path.format(name), who=None) for name in ("main%2Fsecret", "main%2Fnobody")
        ]
        assert (found.status, absent.status) == (404, 404)
        assert found.json["detail"].replace("secret", "nobody") == absent.json["detail"]


@pytest_twisted.ensureDeferred
async def test_a_storage_is_not_made_of_a_folder_in_use(stack: Stack) -> None:
    (stack.folder / "home").mkdir()
    (stack.folder / "home" / "letter").touch()
    for path in (stack.folder / "home", stack.folder / "data", "/etc"):
        reply = await stack.api("POST", "/storage", {"name": "taken", "path": str(path)})
        assert reply.status in (409, 422), path
    assert [each.name for each in (stack.folder / "home").iterdir()] == ["letter"]
