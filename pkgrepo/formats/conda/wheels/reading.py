"""
The first read of a channel whose wheels become packages once somebody reads it (``conda.from_wheels`` is ``auto``).

It has the wheels converted from then on (see ``following``), waits a little for those that are there, and is answered
with 503 and ``Retry-After`` if that was not enough. conda, mamba and pixi ask again by themselves.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from twisted.internet import reactor as _reactor
from twisted.internet.task import deferLater

from pkgrepo.concurrency.lru import Lru
from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import existing
from pkgrepo.formats.conda import configuration
from pkgrepo.gateway.services import Services
from pkgrepo.http.responses import Refusal
from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository
from pkgrepo.storage.catalog.packages import followed_wheels, summaries

WAIT_MS: Final = 5000
POLL_S: Final = 0.05
MOST_KNOWN: Final = 10_000  # channels


class FirstReads:
    """Notes the first reads of channels, and knows those that are complete."""

    def __init__(self) -> None:
        self._waits: SingleFlight[int, None] = SingleFlight()
        self._complete: Lru[int, int] = Lru(MOST_KNOWN)  # the serial of the configuration, by the id of a channel

    def knows(self, services: Services, repository: Repository) -> bool:
        """Whether all wheels in a channel, or in the members of a virtual one, are known to have been looked at."""
        serial, members = services.registry.serial, services.proxy.resolver.flat_members(repository)
        return all(_follows_no_wheels(each) or self._complete.get(each.id) == serial for each in members)

    async def admit(self, services: Services, repository: Repository) -> None:
        """
        Wait for the wheels in a channel, or in the members of a virtual one, if nobody has read it before.

        :raises Refusal: 503, they are still being converted
        """
        for channel in services.proxy.resolver.flat_members(repository):
            serial = services.registry.serial
            if self._complete.get(channel.id) != serial and not _follows_no_wheels(channel):
                parent = existing(channel.parent, "repository", channel.path)
                await self._waits.run(channel.id, partial(self._await_wheels, services, channel, parent))
                self._complete.put(channel.id, serial)

    async def _await_wheels(self, services: Services, channel: Repository, parent: Repository) -> None:
        if configuration.converts_wheels(parent, read=False) or not configuration.converts_wheels(parent, read=True):
            return
        catalog, clock = services.catalog, services.clock
        followed = await catalog.look(followed_wheels.find_followed, channel.id)
        if followed is None or not followed.converting:
            await catalog.write(followed_wheels.begin_following, channel.id)
            followed = await catalog.look(followed_wheels.find_followed, channel.id)
        until_ms = clock.now_ms() + WAIT_MS
        while followed is not None and followed.seq == followed_wheels.BEGUN:
            if clock.now_ms() >= until_ms:
                done, total = await catalog.scan(_progress, channel.id, parent.id)
                sentence = (
                    f"the wheels of {parent.path} become conda packages since this channel is read for the first time:"
                    f" {done} packages are here, and {total} are there; ask again"
                )
                raise Refusal(503, sentence, "not_ready")
            await deferLater(_reactor, POLL_S)
            followed = await catalog.look(followed_wheels.find_followed, channel.id)


def _follows_no_wheels(channel: Repository) -> bool:
    """Whether it is a channel of its own, or a stage of one."""
    return not channel.is_companion


def _progress(r: Reader, channel_id: int, parent_id: int) -> tuple[int, int]:
    return summaries.count_packages(r, channel_id), summaries.count_packages(r, parent_id)
