"""Content trust without a key of the repository: with no key at all, and with keys of the server."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.container.format import container
from tests.support.images import make_image, sentence
from tests.support.signing import Signer
from tests.support.trust import KEY, TrustingRegistry

RULE = {"push_rules": {"require_content_trust": True}}
SETTING = "container.trusted_keys"


async def test_the_rule_is_taken_without_keys_and_the_answers_warn(world: TrustingRegistry) -> None:
    stack, path = world.registry.stack, f"/repository/{world.repository.uid}"
    answer = await stack.ok("PUT", f"{path}/config", {"type": "Hosted", **RULE})
    (warning,) = answer["warnings"]
    assert SETTING in warning
    assert (await stack.ok("GET", path))["warnings"] == [warning]
    assert (await stack.ok("GET", f"{path}/stats"))["warnings"] == [warning]
    assert "warnings" not in await stack.ok("GET", f"{path}/config")
    assert await stack.ok("PUT", f"{path}/config", answer) == answer  # what was answered may be sent back
    part = await stack.ok("PUT", f"{path}/config/push_rules", {"require_content_trust": True})
    assert part["warnings"] == [warning]
    made = await stack.add_repository("other", format="docker", config={"type": "Hosted", **RULE})
    assert made["warnings"] == [warning]
    await world.configure(KEY)
    assert (await stack.ok("GET", path))["warnings"] == []
    assert (await stack.ok("GET", f"{path}/stats"))["warnings"] == []


async def test_without_keys_every_image_waits_and_pushers_and_readers_are_told_why(world: TrustingRegistry) -> None:
    await world.configure()
    image = make_image()
    pushed = await world.registry.push(image, "v1")
    assert "no key is trusted" in pushed.headers["warning"]
    await world.sign(image)
    refused = await world.pull("v1")
    assert (refused.status, refused.json["errors"][0]["detail"]) == (404, "not signed by a trusted key")
    assert "no key is trusted" in sentence(refused)
    assert await world.seen("v1", "admin") == image.digest
    await world.later(7200)
    assert await world.seen("v1", "admin") == image.digest  # nobody could have signed it
    await world.configure(KEY)
    assert await world.seen("v1") == image.digest


async def test_the_window_begins_when_a_key_is_listed(world: TrustingRegistry) -> None:
    await world.configure()
    image = make_image()
    await world.registry.push(image, "v1")
    await world.later(7200)
    await world.configure(KEY)
    await world.later(3599)
    assert await world.seen("v1", "admin") == image.digest
    await world.later(2)
    assert await world.seen("v1", "admin") is None


async def test_keys_of_the_server_count_where_a_repository_lists_none(make_registry: Any) -> None:
    server = Signer()
    world = TrustingRegistry(await make_registry(container__trusted_keys=[server.pem]))
    await world.configure()
    image, other = make_image("one"), make_image("two")
    await world.registry.push(image, "v1")
    await world.registry.push(other, "v2")
    await world.sign(image, server)
    await world.sign(other, KEY)
    assert [await world.seen("v1"), await world.seen("v2")] == [image.digest, None]
    await world.configure(KEY)
    assert [await world.seen("v1"), await world.seen("v2")] == [None, other.digest]


def test_a_wrong_key_of_the_server_is_told_at_the_start() -> None:
    with pytest.raises(Invalid, match=r"container\.trusted_keys, key 2: this is not a public key"):
        container(trusted_keys=(KEY.pem, "-----BEGIN PUBLIC KEY-----\nx")).check_settings()
