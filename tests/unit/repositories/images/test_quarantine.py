"""Expiry of the quarantine: to the millisecond, in batches, and independent of other repositories."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_twisted

from pkgrepo.errors import PkgrepoError, StorageFull
from pkgrepo.model import Repository
from pkgrepo.repositories.images import quarantine
from tests.support.images import Image, make_image
from tests.support.trust import KEY, RULES, TrustingRegistry, stop_clock

WINDOW_S = 60


@pytest_twisted.async_yield_fixture
async def world(make_registry: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A repository whose images wait for a minute."""
    stop_clock(monkeypatch)
    found = TrustingRegistry(await make_registry())
    await found.configure(KEY, window_s=WINDOW_S)
    yield found


async def there(world: TrustingRegistry, *images: Image, name: str = "") -> int:
    """How many of the images pushers still find by their digests."""
    answers = [await world.registry.below("GET", f"manifests/{each.digest}", name=name) for each in images]
    assert {reply.status for reply in answers} <= {200, 404}
    return [reply.status for reply in answers].count(200)


async def test_an_image_waits_to_the_millisecond(world: TrustingRegistry) -> None:
    image = make_image()
    await world.registry.push(image, "v1")
    await world.later(WINDOW_S - 0.001)
    assert (await there(world, image), await world.tags("admin")) == (1, ["v1"])
    await world.later(0.001)
    assert await there(world, image) == 0
    assert (await world.pull("v1", "admin")).status == 404


async def test_one_run_removes_everything_in_batches(world: TrustingRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine, "BATCH", 2)
    images = [make_image(str(each)) for each in range(5)]
    for number, image in enumerate(images):
        await world.registry.push(image, f"v{number}")
    await world.later(WINDOW_S)
    assert await there(world, *images) == 0


async def test_a_run_without_anything_expired_changes_nothing(world: TrustingRegistry) -> None:
    await world.registry.push(make_image(), "v1")
    before = serial(world)
    await world.later(WINDOW_S / 2)
    assert serial(world) == before


def serial(world: TrustingRegistry) -> int:
    row = world.core.catalog.peek(lambda reader: reader.one("SELECT serial FROM repository"))
    assert row is not None
    return int(row[0])


async def test_the_quarantine_is_extended_while_no_key_is_trusted(world: TrustingRegistry) -> None:
    image = make_image()
    await world.registry.push(image, "v1")
    await world.configure(window_s=WINDOW_S)
    await world.later(2 * WINDOW_S)
    await world.configure(KEY, window_s=WINDOW_S)
    await world.later(WINDOW_S - 0.001)
    assert await there(world, image) == 1
    await world.later(0.001)
    assert await there(world, image) == 0


async def test_the_quarantine_ends_when_signatures_are_no_longer_required(world: TrustingRegistry) -> None:
    image = make_image()
    await world.registry.push(image, "v1")
    await world.configure(KEY, rule=False, window_s=WINDOW_S)
    await world.later(WINDOW_S)
    assert await world.seen("v1") == image.digest
    await world.configure(KEY, window_s=WINDOW_S)
    await world.later(WINDOW_S)
    assert await there(world, image) == 1  # it does not wait any more


@pytest.mark.parametrize("error", [PkgrepoError("it cannot be read"), StorageFull("main")])
async def test_a_failing_repository_keeps_its_images_and_stops_no_other(
    world: TrustingRegistry, monkeypatch: pytest.MonkeyPatch, error: PkgrepoError
) -> None:
    stack, image = world.registry.stack, make_image()
    config = {
        "type": "Hosted",
        "push_rules": RULES,
        "trust": {"keys": [KEY.pem], "window_s": WINDOW_S},
    }
    await stack.add_repository("others", format="docker", config=config)
    for name in ("main/images/app", "main/others/app"):
        await world.registry.push(image, "v1", name=name)
    told: list[str] = []
    monkeypatch.setattr(quarantine.log, "failure", lambda _, repository: told.append(repository))

    async def verify(repository: Repository, _image: str) -> bool:
        if repository.name == "images":
            raise error
        return True

    monkeypatch.setattr(world.expiry, "_verify", verify)
    if isinstance(error, StorageFull):  # the others would fare no better
        with pytest.raises(StorageFull):
            await world.later(WINDOW_S)
        assert told == []
    else:
        await world.later(WINDOW_S)
        assert (told, await there(world, image, name="main/others/app")) == (["main/images"], 0)
    assert await there(world, image) == 1
