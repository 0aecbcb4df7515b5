"""
The past of repositories: times as addresses name them, and what the event log tells of a package at such a time.

=====================  ================================================================================================
of a package           what a view shows
=====================  ================================================================================================
versions               those that are still there, and were published until then; of an upstream, that were published
                       or, if it does not say when, first seen here
tags                   those of then, if the log had begun; otherwise those of now that name a version of then
yanked, deprecated     as then, if the version was in the repository; otherwise as now
files                  as now: a file has the same bytes at any time
what was removed       nothing, as its bytes are gone
=====================  ================================================================================================

Versions that were imported are as old as they were where they came from, and the log knows nothing of the time before
they came. Those that were promoted came then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from attrs import Factory, define, evolve, frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.errors import Invalid
from pkgrepo.interfaces import Reader
from pkgrepo.model import DatedView, Repository, RepositoryType, VersionState
from pkgrepo.storage.catalog.packages import files, packages, tags, versions
from pkgrepo.storage.catalog.packages.events import PackageEvent, package_history, removed_package
from pkgrepo.untrusted.text import quoted

_DATE: Final = re.compile(r"(\d{4}-\d{2}-\d{2})(?:T(\d{2}):?(\d{2})(?::?(\d{2})(?:\.(\d{3}))?)?Z?)?", re.ASCII)
_DAY_MS: Final = 24 * 3600 * 1000
_STATES: Final = {
    "yanked": VersionState.YANKED,
    "deprecated": VersionState.DEPRECATED,
    "restored": VersionState.LIVE,
}
_CAME: Final = frozenset({"published", "imported", "cached", "package.promoted", "restored"})
_GONE: Final = frozenset({"deleted", "evicted"})

State = tuple[VersionState, str]  # with the reason
Highest = Callable[[Iterable[str]], str | None]  # the version that gets the tag latest when there is none


@frozen
class Moment:
    """A time in the past: the last millisecond that counts, and when its day (UTC) ends."""

    at_ms: int
    day_ends_ms: int

    def settled(self, now_ms: int) -> bool:
        """Whether the day is past."""
        return now_ms > self.day_ends_ms


def read_moment(text: str, now_ms: int) -> Moment:
    """
    The time that a date such as ``2026-09-01`` (the end of that day) or ``2026-09-01T12:00Z`` names, in UTC.

    Seconds and milliseconds may follow, and the colons and the Z may be missing.

    :raises Invalid: the text is no date or time, or it is in the future
    """
    found = _DATE.fullmatch(text)
    try:
        if found is None:
            raise ValueError(text)
        day = datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
        hour, minute, second, ms = (int(each or 0) for each in found.groups()[1:])
        time = day.replace(hour=hour, minute=minute, second=second, microsecond=ms * 1000)
    except ValueError:
        raise Invalid(
            f"{quoted(text)} is no date such as 2026-09-01, or time such as 2026-09-01T12:00Z (UTC)"
        ) from None
    begins_ms = round(day.timestamp()) * 1000
    if begins_ms > now_ms:
        raise Invalid(f"{text} is in the future: nothing is known of it yet")
    ends_ms = begins_ms + _DAY_MS - 1
    if found[2] is None:
        return Moment(ends_ms, ends_ms)
    at_ms = round(time.timestamp() * 1000)
    if at_ms > now_ms:
        raise Invalid(f"{text} is in the future: nothing is known of it yet")
    return Moment(at_ms, ends_ms)


def view_of(live: Repository, text: str, now_ms: int) -> Repository:
    """A repository as it was known at a time; see L{read_moment}."""
    moment = read_moment(text, now_ms)
    return evolve(live, view=DatedView(text, moment.at_ms, moment.settled(now_ms), live))


@define
class PackagePast:
    """
    What the log tells of a package at a time.

    ``states`` are those of then of the versions (by key) that had another one. ``tags`` are by name, each with the text
    of a version, which may be gone; None if the log had not begun. ``unknown`` are the keys of versions that came here
    later, although they are older. ``removed`` are the texts of versions that were removed since. ``changed_ms`` is
    the time of the last change until then; None if the log had not begun.
    """

    states: dict[str, State] = Factory(dict)
    tags: dict[str, str] | None = None
    unknown: set[str] = Factory(set)
    removed: list[str] = Factory(list)
    changed_ms: int | None = None


def package_past(
    reader: Reader,
    package_id: int,
    at_ms: int,
    *,
    present: Mapping[str, State],
    highest: Highest | None = None,
) -> PackagePast:
    """
    Read the past of a package; ``present`` are its versions by key as they are now.

    ``highest`` is that of a format with tags.
    """
    states, tags, changed_ms = _States(at_ms), None if highest is None else _Tags(highest), None
    gil = GilReleaser()
    for each in package_history(reader, package_id):
        gil.release_if_due()
        states.follow(each)
        if each.at_ms <= at_ms:
            changed_ms = each.at_ms if changed_ms is None else max(changed_ms, each.at_ms)
            if tags is not None:
                tags.follow(each)
    past = PackagePast(tags=tags.now if tags is not None and tags.begun else None, changed_ms=changed_ms)
    for key, now in present.items():
        then = states.of(key, now)
        if then is None:
            past.unknown.add(key)
        elif then != now:
            past.states[key] = then
    past.removed = [str(each.data().get("version", key)) for key, each in states.there.items() if key not in present]
    return past


@frozen(kw_only=True)
class Changes:
    """
    How a package differs from what it was at a time.

    ``added`` and ``removed`` are texts of versions. ``tags`` are by name, each with the version of then and that of
    now, or None; ``states`` are by the text of a version. ``unknown`` are older versions that came here later. The
    package is ``gone`` if it was removed whole.
    """

    name: str
    added: Sequence[str] = ()
    removed: Sequence[str] = ()
    tags: Mapping[str, tuple[str | None, str | None]] = Factory(dict)
    states: Mapping[str, tuple[VersionState, VersionState]] = Factory(dict)
    unknown: Sequence[str] = ()
    gone: bool = False

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.tags or self.states)


def changes_since(reader: Reader, repository: Repository, key: str, at_ms: int, highest: Highest) -> Changes:
    """What was changed in a package since a time, as far as the log knows it. Call it on a reader thread."""
    package = packages.find_package(reader, repository.id, key)
    if package is None:
        removed_id = removed_package(reader, repository.id, key)
        gone = [] if removed_id is None else package_past(reader, removed_id, at_ms, present={}).removed
        return Changes(name=key, removed=gone, gone=True)
    there = versions.list_versions(reader, package.id)
    came = published_times(reader, repository, package.id)
    present = {each.key: (each.state, each.reason) for each in there}
    tagged = tags.tagged_versions(reader, package.id)
    past = package_past(reader, package.id, at_ms, present=present, highest=highest if tagged else None)
    texts = {each.key: each.text for each in there}
    added = [each.text for each in there if came.get(each.id, _ms(each.published_at)) > at_ms]
    then = past.tags
    if then is None:
        then = {name: text for name, text in tagged.items() if text not in {*added}}
    return Changes(
        name=package.name,
        added=added,
        removed=past.removed,
        tags={
            name: (then.get(name), tagged.get(name))
            for name in sorted(then.keys() | tagged.keys())
            if then.get(name) != tagged.get(name)
        },
        states={
            texts[each]: (state, present[each][0])
            for each, (state, _) in past.states.items()
            if state is not present[each][0]
        },
        unknown=[each.text for each in there if each.key in past.unknown and _ms(each.published_at) <= at_ms],
    )


def published_times(reader: Reader, repository: Repository, package_id: int) -> dict[int, int]:
    """
    When the versions of a package were published, in ms by the id of the version, for what views show.

    That of a hosted one is that of its first file; of an upstream's it is what that says, or when it was kept.
    """
    found: dict[int, int] = {}
    hosted = repository.type is RepositoryType.HOSTED
    for each in files.files_of_package(reader, package_id):
        if each.version_id is None or each.role is not None:
            continue
        at_ms = _ms(each.created_at)
        if not hosted and each.origin is not None and each.origin.published_ms is not None:
            at_ms = each.origin.published_ms
        found[each.version_id] = min(found.get(each.version_id, at_ms), at_ms)
    if hosted:
        for version in versions.list_versions(reader, package_id):
            found[version.id] = max(found.get(version.id, 0), _ms(version.published_at))
    return found


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)


@define
class _States:
    """The states of versions at a time, while the events of their package are followed."""

    at_ms: int
    came_ms: dict[str, int] = Factory(dict)
    then: dict[str, State] = Factory(dict)
    later: dict[str, str] = Factory(dict)  # the kind of the first change that came later
    there: dict[str, PackageEvent] = Factory(dict)  # by which the versions came that were there

    def follow(self, event: PackageEvent) -> None:
        key = event.version_key
        if event.kind in _CAME and key:
            self.came_ms.setdefault(key, event.at_ms)
            if event.at_ms <= self.at_ms:
                self.there[key] = event
        if event.kind in _STATES and event.at_ms > self.at_ms:
            self.later.setdefault(key, event.kind)
        elif event.kind in _STATES:
            self.then[key] = _STATES[event.kind], str(event.data().get("reason", ""))
        elif event.kind in _GONE and event.at_ms <= self.at_ms:
            self.then.pop(key, None)
            self.there.pop(key, None)

    def of(self, key: str, now: State) -> State | None:
        """The state of a version that is in the state ``now``; None if it came here later."""
        if self.came_ms.get(key, self.at_ms + 1) > self.at_ms:
            return None
        if key in self.then or self.later.get(key, "restored") == "restored":
            # a version may have been published as deprecated, of which there is no event of its own
            return self.then.get(key, now)
        return VersionState.LIVE, ""


@define
class _Tags:
    """The tags of a package while its events are followed."""

    highest: Highest
    begun: bool = False
    now: dict[str, str] = Factory(dict)
    present: dict[str, str] = Factory(dict)  # texts of versions by key

    def follow(self, event: PackageEvent) -> None:
        self.begun = True
        if event.kind in _CAME:
            data = event.data()
            text = data.get("version")
            if isinstance(text, str):
                self.present[event.version_key] = text
                self.now.update(dict.fromkeys(data.get("tagged") or (), text))
        elif event.kind in _GONE:
            text = self.present.pop(event.version_key, "")
            self.now = {tag: each for tag, each in self.now.items() if each != text}
        elif event.kind == "tagged":
            self._move(event.data())
        elif event.kind == "untagged":
            self.now.pop(str(event.data().get("tag", "")), None)
        if "latest" not in self.now and self.present:
            text = self.highest(self.present.values())
            if text is not None:
                self.now["latest"] = text

    def _move(self, data: Mapping[str, Any]) -> None:
        named = data.get("tags", ())
        if isinstance(named, dict):  # all tags, as npm writes them back
            self.now = {str(tag): str(text) for tag, text in named.items()}
        elif "version" in data:
            self.now.update(dict.fromkeys(named, str(data["version"])))
        for tag, text in (data.get("targets") or {}).items():
            self.now[tag] = str(text)
        if "tag" in data:
            self.now[str(data["tag"])] = str(data.get("target", ""))
