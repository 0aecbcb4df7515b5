"""
Keeps the channels beside Python repositories up to date with the wheels there.

The events of the Python repository name the packages that changed. Each of them is compared with the channel, and the
differences are carried out (see ``publishing``): wheels are converted in a thread and published, packages removed or
yanked. What cannot be converted is recorded with its reason. Several packages are compared at a time, and several
wheels converted: most of what one costs alone are hops between threads and its transaction.

======================================  ==================================================================
state of a channel                      next step
======================================  ==================================================================
nobody has read it (``auto``)           none, see ``reading``
new, first read, the switch was turned  all packages are compared; then the state is recorded
following                               packages of the events after the recorded one are compared; then
                                        the last event is recorded
======================================  ==================================================================

A crash repeats comparisons, and loses nothing. Several processes may do the same at a time: they make the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from twisted.application.service import IService
from twisted.logger import Logger

from pkgrepo.auth.permissions.admission import Road, admit_server
from pkgrepo.concurrency.services import PeriodicTask
from pkgrepo.errors import Invalid, NotFound, PkgrepoError, RepositoryInactive
from pkgrepo.formats.conda import configuration
from pkgrepo.formats.conda.files import ChannelContext
from pkgrepo.formats.conda.index.packages import index_package
from pkgrepo.formats.conda.wheels.publishing import Difference, compare_packages, is_final, publish_wheels
from pkgrepo.gateway.responses.content import document_cache_control
from pkgrepo.gateway.services import Services
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response, json_response
from pkgrepo.interfaces import Transaction
from pkgrepo.model import SYSTEM, Action, File, Repository
from pkgrepo.repositories.publish.package_changes import remove_files, set_version_state
from pkgrepo.storage.catalog.packages import events, followed_wheels, packages
from pkgrepo.storage.catalog.packages.followed_wheels import BEGUN, TRIED, Followed, Unconverted
from pkgrepo.storage.catalog.rows import batches

log = Logger()

EVERY_S: Final = 0.5  # seconds between two looks for new events; one takes some microseconds
EVENTS: Final = 1000  # that are read at once
PAGE: Final = 200  # packages
AT_ONCE: Final = 32  # packages that are compared in one call on a thread


class WheelFollower:
    """Follows the wheels beside all channels. ``format_name`` is the name of the format that channels have."""

    def __init__(self, services: Services, format_name: str) -> None:
        self._services = services
        self._format_name = format_name
        self._seen: tuple[int, int] | None = None
        self._failures: dict[int, str] = {}  # what was logged last, by the id of the channel

    def service(self, reactor: Any) -> IService:
        """The service that follows while the server runs."""
        return PeriodicTask(self.follow, reactor, every_s=EVERY_S, what="the conversion of wheels for conda channels")

    async def follow(self) -> None:
        """Bring all channels up to date with what has happened until now."""
        services = self._services
        await services.registry.refresh()
        begun: set[int] = await services.catalog.look(followed_wheels.begun_channels)
        now = (services.registry.serial, await services.catalog.look(events.last_seq))
        if now == self._seen and not begun:
            return
        changed: set[int] | None = None  # not known: all channels are looked at
        if self._seen is not None and self._seen[0] == now[0]:
            changed = await services.catalog.scan(events.changed_repositories, self._seen[1])
        failed = False
        for each in services.registry.all():
            follows = each.format == self._format_name and each.active and each.is_companion
            parent = each.parent if follows else None
            if parent is not None and (changed is None or parent.id in changed or each.id in begun):
                failed |= not await self._try_channel(each, parent)
        self._seen = None if failed else now

    async def _try_channel(self, channel: Repository, parent: Repository) -> bool:
        """Whether a channel could be brought up to date; one that fails does not hold up the others."""
        try:
            await self._follow_channel(channel, parent)
        except (RepositoryInactive, NotFound):
            return True  # it was switched off or removed meanwhile, which the next look finds
        except PkgrepoError as error:
            if self._failures.get(channel.id) != str(error):  # it is tried again every ``EVERY_S``
                self._failures[channel.id] = str(error)
                log.warn("channel {path} lacks wheels: {error}", path=channel.path, error=str(error))
            return False
        self._failures.pop(channel.id, None)
        return True

    async def _follow_channel(self, channel: Repository, parent: Repository) -> None:
        catalog = self._services.catalog
        followed = await catalog.look(followed_wheels.find_followed, channel.id)
        converting = configuration.converts_wheels(parent, read=followed is not None and followed.converting)
        if followed is None or not followed.complete or followed.converting != converting:
            seq = await catalog.look(events.last_seq_of_repository, parent.id)
            try:
                if converting or followed is not None:
                    await self._compare_all(channel, parent, converting=converting)
            except PkgrepoError:
                if followed is not None and followed.seq == BEGUN:
                    await catalog.write(followed_wheels.put_followed, channel.id, Followed(TRIED, converting))
                raise
            if converting or followed is not None:
                await catalog.write(followed_wheels.put_followed, channel.id, Followed(seq, converting))
            return
        seq = followed.seq
        while converting:
            keys, seq = await catalog.scan(events.changed_packages, parent.id, seq, EVENTS)
            await self._compare(channel, parent, keys, converting=True)
            if seq == followed.seq:
                return
            followed = Followed(seq, converting)
            await catalog.write(followed_wheels.put_followed, channel.id, followed)

    async def _compare_all(self, channel: Repository, parent: Repository, *, converting: bool) -> None:
        after = ""
        while page := await self._services.catalog.scan(packages.list_packages, parent.id, after=after, limit=PAGE):
            await self._compare(channel, parent, [each.key for each in page], converting=converting)
            after = page[-1].key

    async def _compare(self, channel: Repository, parent: Repository, keys: Sequence[str], *, converting: bool) -> None:
        """Make the conda packages of Python packages what they shall be."""
        for some in batches(keys, AT_ONCE):
            found: Mapping[str, Difference] = await self._services.catalog.scan(
                compare_packages, parent.id, channel.id, some, converting
            )
            for difference in found.values():
                await self._withdraw(channel, difference)
            missing = {wheel.path: (key, wheel) for key, each in found.items() for wheel in each.missing}
            if missing:
                await self._convert(channel, missing)

    async def _withdraw(self, channel: Repository, found: Difference) -> None:
        """Remove what the channel has too much of a package, and set the states of its versions."""
        change, admitted = self._services.content.change, admit_server(Road.CONVERSION, channel)
        for version, paths in found.surplus.items():
            await change(_remove, channel, found.package, version, paths)
        for version, (state, reason) in found.states.items():
            await change(set_version_state, channel, found.package, version, state, reason, admitted, index_package)
        for path in found.forgotten:
            await self._services.catalog.write(followed_wheels.remove_unconverted, channel.id, path)

    async def _convert(self, channel: Repository, missing: Mapping[str, tuple[str, File]]) -> None:
        """Publish the packages of wheels, given by path with the keys of their projects, or record why not."""
        failed = await publish_wheels(self._services, channel, [wheel for _, wheel in missing.values()])
        records = []
        for path, error in failed.items():
            key, wheel = missing[path]
            if is_final(error):
                records.append(Unconverted(path, wheel.sha256, key, _reason(error)))
        if records:
            await self._services.catalog.write(followed_wheels.put_unconverted, channel.id, records)
        for error in failed.values():
            if not is_final(error):
                raise error


def _reason(error: Exception) -> str:
    return str(error)[:500] if isinstance(error, Invalid) else "the channel has another package of this name"


def _remove(
    tx: Transaction, channel: Repository, package: str, version: str, paths: Sequence[str], now_ms: int
) -> None:
    """Remove packages whose wheels are gone: their names are not burned, since the wheels may come again."""
    remove_files(tx, channel, package, version, paths, SYSTEM, index_package, False, now_ms)


DOCUMENT: Final = "unconverted.json"
MOST_SHOWN: Final = 1000  # wheels in a response
LONGEST_CURSOR: Final = 1000  # characters


async def list_unconverted(context: ChannelContext, request: Request) -> Response:
    """
    Up to ``MOST_SHOWN`` wheels after the path in the query ``after``, each with path, sha256 and reason;
    ``next`` is the next ``after``, or null. The caller needs the right to read the whole repository.

    :raises NotFound: the channel belongs to no other repository; :raises Invalid: ``after`` is too long
    """
    services, repository = context.services, context.repository
    await services.access.admit(request, Action.READ, repository)
    if not repository.is_companion:
        raise NotFound("document", DOCUMENT)
    after = request.parameter(b"after") or ""
    if len(after) > LONGEST_CURSOR:
        raise Invalid(f"after is longer than {LONGEST_CURSOR} characters", "after")
    found = await services.catalog.scan(
        followed_wheels.list_unconverted, repository.id, after=after, limit=MOST_SHOWN + 1
    )
    shown = [{"path": each.path, "sha256": each.sha256, "reason": each.reason} for each in found[:MOST_SHOWN]]
    following = found[MOST_SHOWN - 1].path if len(found) > MOST_SHOWN else None
    headers = ((b"Cache-Control", document_cache_control(repository)),)
    return json_response({"wheels": shown, "next": following}, headers=headers)
