"""Yanks by the API where they would change nothing: clients see what upstreams and members say."""

from __future__ import annotations

import pytest

from tests.server.management.conftest import Mirror

pytestmark = pytest.mark.server


@pytest.mark.parametrize("verb", ["yank", "unyank"])
async def test_nothing_is_yanked_in_a_proxy(mirror: Mirror, verb: str) -> None:
    mirror.upstream.add("malicious")
    await mirror.create()
    await mirror.install("malicious")
    place = "/package/main%2Fmirror/malicious/versions/1.0.0"
    refused = await mirror.stack.api("POST", f"{place}/{verb}", {"reason": "bad"} if verb == "yank" else None)
    assert refused.status == 405
    for setting in ("policy.reserved_names", "policy.minimum_release_age"):
        assert setting in refused.json["detail"]
    assert (await mirror.stack.ok("GET", place))["state"] == "live"


async def test_nothing_is_yanked_in_a_virtual_repository(mirror: Mirror) -> None:
    mirror.upstream.add("behind")
    await mirror.create()
    await mirror.stack.add_repository("all", format="npm", config={"type": "Virtual", "members": ["main/mirror"]})
    place = "/package/main%2Fall/behind/versions/1.0.0"
    refused = await mirror.stack.api("POST", f"{place}/yank", {"reason": "bad"})
    assert (refused.status, "member" in refused.json["detail"]) == (405, True)
