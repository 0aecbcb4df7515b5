"""Proxies and virtual repositories that serve what they served at a time, in each format."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.support.dated import NAME, VERSIONS
from tests.support.format_cases import CASES
from tests.support.format_repositories import World

pytestmark = pytest.mark.server


@pytest.mark.parametrize("kind", ["fresh", "both"])
@pytest.mark.parametrize("format", CASES)
def test_what_was_published_later_is_refused_until_it_is_thawed(
    world: World, times: Mapping[str, str], format: str, kind: str
) -> None:
    case, client = CASES[format], world.at(f"{format}-{kind}")
    path, new = case.document_of(NAME), case.file_of(NAME, "1.1.0")
    shown = [case.listing(NAME, each) for each in VERSIONS]
    assert shown[1] in client.get(path).body
    assert client.get(new).status == 200  # also kept, and in the cache of responses
    body = {"repositories": [f"main/{format}-{kind}"], "at": times["between"], "reason": "a worm is out"}
    uid = world.ok("POST", "/policy/freeze", body, 201)["id"]
    try:
        frozen = client.get(path)
        assert (frozen.status, *(each in frozen.body for each in shown)) == (200, True, False)
        for method in ("GET", "HEAD"):
            refused = client.ask(method, new)
            assert (refused.status, method == "HEAD" or "a worm is out" in refused.text) == (403, True)
        assert client.get(case.file_of(NAME, "1.0.0")).status == 200
        assert world.at(f"{format}-own").get(new).status == 200  # where it is published it is seen
        thawed = world.ok("POST", f"/policy/freeze/{uid}/except", {"names": ["other", case.named(NAME)]})
        assert thawed["except"] == ["other", case.named(NAME)]
        assert shown[1] in client.get(path).body
        assert client.get(new).status == 200
    finally:
        world.ok("DELETE", f"/policy/freeze/{uid}", status=204)
    assert client.get(new).status == 200


def test_a_freeze_of_a_pattern_holds_for_all_that_is_not_hosted(world: World, times: Mapping[str, str]) -> None:
    uid = world.ok("POST", "/policy/freeze", {"repositories": ["main/npm-*"], "at": times["between"]}, 201)["id"]
    try:
        for kind, served in (("own", True), ("fresh", False), ("both", False)):
            found = world.at(f"npm-{kind}").get(f"/{NAME}").json
            assert ("1.1.0" in found["versions"], found["dist-tags"]["latest"] == "1.1.0") == (served, served), kind
        assert [each["id"] for each in world.ok("GET", "/policy/freeze")] == [uid]
        told = world.ok("GET", f"/explain?repository=main/npm-both&package={NAME}&version=1.1.0")["sentence"]
        assert "is held, as a member of main/npm-both is frozen at" in told, told
        assert "it was published later; a system manager can thaw it" in told, told
    finally:
        world.ok("DELETE", f"/policy/freeze/{uid}", status=204)
    assert world.ok("GET", "/policy/freeze") == []


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        ({"repositories": []}, 422, "/repositories"),
        ({"repositories": ["main/npm-own"]}, 422, "/repositories/0"),
        ({"repositories": ["main/none"]}, 404, ""),
        ({"repositories": ["main/npm-both"], "at": "2999-01-01T00:00:00Z"}, 422, "/at"),
        ({"repositories": ["main/npm-both"], "except": ["demo@not a range"]}, 422, "/except/0"),
    ],
)
def test_what_cannot_be_frozen_is_said(world: World, body: dict[str, object], status: int, pointer: str) -> None:
    refused = world.api.post_json("/policy/freeze", body)
    told = [each["pointer"] for each in refused.json.get("errors", [])]
    assert (refused.status, told) == (status, [pointer] if pointer else []), refused.text
    assert world.ok("GET", "/policy/freeze") == []
