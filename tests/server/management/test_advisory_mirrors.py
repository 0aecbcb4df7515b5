"""An export of advisories at the address of a mirror."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted

from tests.support.memory_server import Stack, running_stacks
from tests.support.osv_records import MINIMIST, REQUESTS, write_zip
from tests.support.upstreams.messages import Answer, Fault
from tests.support.upstreams.server import ScriptedUpstream

pytestmark = pytest.mark.server
PATH = "/all.zip"
DATE = "Fri, 01 Jan 2027 00:00:00 GMT"


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[ScriptedUpstream]:
    """A server with an export of one record."""
    data = write_zip(tmp_path / "one.zip", [MINIMIST]).read_bytes()
    with ScriptedUpstream({PATH: Answer(body=data, fields={"ETag": '"one"', "Last-Modified": DATE})}) as found:
        yield found


@pytest_twisted.async_yield_fixture
async def make(tmp_path: Path, mirror: ScriptedUpstream) -> Any:
    """Start a server whose source is that of the mirror."""
    async with running_stacks(tmp_path) as start:

        async def make(**settings: Any) -> Stack:
            found: Stack = await start(advisories__source=mirror.url + PATH, **settings)
            return found

        yield make


async def refresh(stack: Stack) -> Any:
    """Refresh, also if the schedule does so just now."""
    while (reply := await stack.api("POST", "/advisories/refresh?wait=true")).status == 409:
        pass
    return reply


async def test_an_export_is_downloaded_once_and_then_asked_for_by_its_validator(
    make: Any, mirror: ScriptedUpstream, tmp_path: Path
) -> None:
    stack = await make(proxy__allow_private=["127.0.0.1"])
    assert (await refresh(stack)).json["records"] == {"npm": 1}
    mirror.forget()
    assert (await refresh(stack)).json["changed"] == 0
    (asked,) = mirror.requests(PATH)
    assert asked.fields["if-none-match"] == '"one"'
    assert not list(tmp_path.rglob("advisories.download"))
    more = write_zip(tmp_path / "two.zip", [MINIMIST, REQUESTS]).read_bytes()
    mirror.serve(PATH, Answer(body=more, fields={"ETag": '"two"'}))
    assert (await refresh(stack)).json["records"] == {"PyPI": 1, "npm": 1}
    assert (await stack.ok("GET", "/advisories/data"))["source"] == mirror.url + PATH


@pytest.mark.parametrize("answer", [Answer(500), Answer(404), Answer(body=b"<html>"), "cut", "broken off"])
async def test_what_a_mirror_fails_to_send_changes_nothing(
    make: Any, mirror: ScriptedUpstream, answer: Answer | str, tmp_path: Path
) -> None:
    stack = await make(proxy__allow_private=["127.0.0.1"])
    await refresh(stack)
    data = mirror.documents[PATH].body
    sent = answer if isinstance(answer, Answer) else Answer(body=bytes(data)[:-40])
    if answer == "broken off":
        sent = Answer(body=data, fault=Fault(cut_at=40))
    mirror.misbehave(PATH, sent, repeat=True)
    failed = await refresh(stack)
    assert failed.status == 503
    assert not list(tmp_path.rglob("advisories.download"))
    assert (await stack.ok("GET", "/advisories/data"))["records"] == {"npm": 1}


async def test_a_private_address_is_asked_only_if_a_setting_allows_it(make: Any, mirror: ScriptedUpstream) -> None:
    stack = await make()
    failed = await refresh(stack)
    assert (failed.status, b"proxy.allow_private" in failed.body) == (503, True)
    assert mirror.count() == 0
