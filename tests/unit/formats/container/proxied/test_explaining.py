"""Explanations of images: which repositories and routes were asked, and what they said."""

from __future__ import annotations

from typing import Any

from tests.support.images import Registry, make_index
from tests.support.trust import KEY
from tests.support.upstreams.messages import Answer

from .conftest import ONE, TWO, Mirrors


def steps(found: Any) -> list[str]:
    return [f"{each['repository']} {each['step']}" for each in found["steps"]]


def sentences(found: Any) -> str:
    return "\n".join(each["sentence"] for each in found["steps"])


async def test_tag_is_explained_first_fetched_then_kept_then_confirmed(mirrors: Mirrors) -> None:
    await mirrors.stack.add_repository("own", format="docker", config={"type": "Hosted"})
    await mirrors.add()
    await mirrors.add("more")
    await mirrors.add("all", members=["main/own", "main/mirror", "main/more"])
    index = make_index([ONE, TWO])
    mirrors.up.push("library/app", index, "1", children=(ONE, TWO))
    first = await mirrors.explain("app", "1", "all")
    assert steps(first) == ["main/own not_owned", "main/mirror absent", "main/mirror fetched", "main/more unneeded"]
    assert f"sent library/app:1 at {first['steps'][2]['at'][:10]}" in sentences(first)
    assert first["sentence"] == f"main/mirror serves 1 as {index.digest}, for linux/amd64, linux/arm64"
    assert first["manifest"]["platforms"][1] == {"platform": "linux/arm64", "digest": TWO.digest, "kept": False}
    (serving,) = first["serving"]
    assert (serving["repository"], serving["route"], serving["url"], serving["stale"]) == (
        "main/mirror",
        "up",
        None,
        False,
    )
    asked = mirrors.up.count()
    again = await mirrors.explain("app", "1", "all")
    assert steps(again)[1:4] == ["main/mirror absent", "main/mirror fetched", "main/mirror cached"]
    assert again["steps"][2] == first["steps"][2], "as it was recorded"
    assert mirrors.up.count() == asked
    mirrors.clock.ms += 301_000
    later = await mirrors.explain("app", "1")
    assert steps(later) == ["main/mirror confirmed"]
    assert f"said at {later['steps'][0]['at'][:10]}" in sentences(later)
    assert later["steps"][0]["digest"] == index.digest
    child = await mirrors.explain("app", TWO.digest)
    assert (steps(child), child["manifest"]["reference"]) == (["main/mirror fetched"], TWO.digest)
    assert steps(await mirrors.explain("app", TWO.digest)) == ["main/mirror file_kept"]


async def test_failures_absences_and_what_is_gone_are_explained(mirrors: Mirrors) -> None:
    await mirrors.add(cache_ttl=0, cache={"stale_if_gone": "1d"})
    mirrors.up.push("team/app", ONE, "1")
    absent = await mirrors.explain("team/app", "2")
    assert (absent["outcome"], steps(absent)) == ("not_found", ["main/mirror absent"])
    remembered = await mirrors.explain("team/app", "2")
    assert steps(remembered) == ["main/mirror absent", "main/mirror cached"]
    assert remembered["steps"][0] == absent["steps"][0], "as it was recorded"
    assert "remembers until" in sentences(remembered)
    mirrors.up.misbehave("*", Answer(500), repeat=True)
    failed = await mirrors.explain("team/app", "1")
    assert (failed["outcome"], steps(failed)) == ("failed", ["main/mirror failed"])
    assert "it answers 500" in failed["sentence"]
    mirrors.up.behave()
    assert (await mirrors.explain("team/app", "1"))["outcome"] == "served"
    mirrors.up.misbehave("*", Answer(500), repeat=True)
    stale = await mirrors.explain("team/app", "1")
    assert (stale["serving"][0]["stale"], steps(stale)) == (True, ["main/mirror failed", "main/mirror stale"])
    mirrors.clock.ms += 11_000
    mirrors.up.misbehave("*", Answer(404), repeat=True)
    gone = await mirrors.explain("team/app", "1")
    assert (gone["outcome"], steps(gone)[-1]) == ("served", "main/mirror gone")


async def test_rules_are_explained(mirrors: Mirrors) -> None:
    await mirrors.add(cache_ttl=0)
    policy = {"minimum_release_age": 7, "reserved_names": ["acme/*"]}
    await mirrors.add("all", members=["main/mirror"], policy=policy)
    mirrors.up.push("app", ONE, "1")
    young = await mirrors.explain("app", "1", "all")
    assert (young["outcome"], steps(young)) == ("too_young", ["main/mirror fetched", "main/mirror hidden"])
    assert "known for less than the 7 days of main/all" in sentences(young)
    assert young["steps"][1]["hidden"][0]["opens_at"] > young["steps"][0]["at"]
    assert "it will be served from 20" in young["sentence"]
    mirrors.pass_days(8)
    mirrors.up.push("app", TWO, "1")
    older = await mirrors.explain("app", "1", "all")
    assert steps(older) == ["main/mirror fetched", "main/mirror hidden", "main/mirror file_kept"]
    assert (older["manifest"]["digest"], older["steps"][1]["digest"]) == (ONE.digest, TWO.digest)
    assert older["manifest"]["first_seen_at"] < older["steps"][0]["at"]
    reserved = await mirrors.explain("acme/app", "1", "all")
    assert (reserved["outcome"], steps(reserved)) == ("reserved", ["main/mirror reserved"])


async def test_image_of_a_hosted_member_and_its_tags_are_explained(mirrors: Mirrors) -> None:
    rules = {"push_rules": {"require_content_trust": True}, "trust": {"keys": [KEY.pem]}}
    await mirrors.stack.add_repository("own", format="docker", config={"type": "Hosted", **rules})
    await mirrors.add()
    await mirrors.add("all", members=["main/own", "main/mirror"])
    await Registry(mirrors.stack, "main/own/app").push(ONE, "1")
    unsigned = await mirrors.explain("app", "1", "all")
    assert (unsigned["outcome"], steps(unsigned)) == ("not_found", ["main/own owned", "main/own unsigned"])
    assert mirrors.up.count() == 0
    mirrors.up.push("team/app", ONE, "1")
    tags = await mirrors.explain("team/app", name="all")
    assert (tags["sentence"], steps(tags)) == ("served by main/mirror", ["main/own not_owned", "main/mirror fetched"])
    assert steps(await mirrors.explain("team/app")) == ["main/mirror fetched", "main/mirror cached"]
