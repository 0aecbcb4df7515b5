"""The steps by which the resolver came to a result, recorded while it decides, and its refusals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec
from attrs import Factory, define

from pkgrepo.errors import NotFound, RepositoryInactive, UpstreamDenied
from pkgrepo.storage.catalog.packages.packages import RETIRED


class StepKind(StrEnum):
    """What was done or decided. The values are in the API and in the catalog, and stay as they are."""

    # of a hosted repository
    OWNED = "owned"  # it has the package, so no upstream is asked
    OWNED_INACTIVE = "owned_inactive"  # it has the package, but is switched off
    MERGED = "merged"  # it has the package, and a rule joins its versions with those of upstreams
    RETIRED = "retired"  # it had the package, so no upstream is asked for it
    NOT_OWNED = "not_owned"
    # of a proxy repository
    RESERVED = "reserved"  # not asked: the name matches a pattern of reserved names
    INACTIVE = "inactive"  # not asked: it is switched off
    UNNEEDED = "unneeded"  # not asked: an earlier member has the package, or of a route: it is for other names
    WITHHELD = "withheld"  # not asked, also of a route: an earlier one failed, and might have the package
    # of a route, or of the kept response of one
    FETCHED = "fetched"
    CONFIRMED = "confirmed"  # the kept response is the present one
    ABSENT = "absent"  # it has no such package
    ASKED = "asked"  # it was asked for what the package's document can be made of, which it does not have
    FAILED = "failed"
    DENIED = "denied"  # it refuses this, so that no other route or member is asked
    STALE = "stale"  # the kept response is used, since the route failed
    CACHED = "cached"  # the kept response is used, since it is fresh
    GONE = "gone"  # the kept response is used, although no route has it any more
    # of versions and files
    HIDDEN = "hidden"  # versions are younger than policy.minimum_release_age allows
    LATER = "later"  # versions were published after the time of the view
    UNKNOWN = "unknown"  # something of the past that the view cannot show as it was
    BLOCKED = "blocked"  # a rule or a block refuses versions
    QUARANTINED = "quarantined"  # a rule holds versions back until an admin approves them
    FILE_KEPT = "file_kept"
    FILE_LISTED = "file_listed"  # an upstream lists it; it is fetched when a client asks for it
    FILE_UNLISTED = "file_unlisted"
    FILE_REMOVED = "file_removed"  # it is kept and served, although the upstream does not list it any more
    FILE_REFUSED = "file_refused"  # a rule refuses it
    UNSIGNED = "unsigned"  # readers do not see it before a trusted key has signed it


class HiddenVersion(msgspec.Struct, frozen=True, array_like=True):
    """A version that a rule refuses, until ``opens_ms``; None: until something changes."""

    version: str
    published_ms: int | None
    opens_ms: int | None


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    One step; times are in milliseconds since the epoch.

    ``repository`` is the path of the one that it is about, ``rule`` that of the one whose rule decided. ``at_ms`` is
    when an upstream said it. ``fetched_ms`` is when a kept response was fetched, ``fresh_until_ms`` when it is asked
    for again. ``why`` is a sentence without addresses. ``pattern`` and ``days`` are parts of the rule, ``named`` is its
    name. ``what`` the step is about, if not the package; ``digest`` is that of a manifest.
    """

    step: StepKind
    repository: str = ""
    route: str = ""
    at_ms: int | None = None
    fetched_ms: int | None = None
    fresh_until_ms: int | None = None
    why: str = ""
    rule: str = ""
    pattern: str = ""
    days: float | None = None
    hidden: Sequence[HiddenVersion] = ()
    path: str = ""
    what: str = ""
    digest: str = ""
    named: str = ""


def owner_step(owned: int | None, *, active: bool, merges: bool = False) -> StepKind:
    """The step that says whether a hosted repository has a package, by its ``ownership`` of the name."""
    if owned is None or (merges and owned == RETIRED):
        return StepKind.NOT_OWNED
    if merges and active:
        return StepKind.MERGED
    if owned == RETIRED:
        return StepKind.RETIRED
    return StepKind.OWNED if active else StepKind.OWNED_INACTIVE


def failed_step(error: Exception) -> StepKind:
    """The step that says how a route did not answer."""
    return StepKind.DENIED if isinstance(error, UpstreamDenied) else StepKind.FAILED


@define
class Trace:
    """A list of steps, in the order in which they were made."""

    _steps: list[Step | tuple[str, Mapping[str, Any]]] = Factory(list)
    counted: bool = False  # whether a rule counts each request for what was found

    @property
    def steps(self) -> list[Step]:
        """The steps so far."""
        return [each if isinstance(each, Step) else _restore(*each) for each in self._steps]

    def add(self, step: StepKind, **details: Any) -> None:
        """Record a step; ``details`` are further fields of L{Step}."""
        self._steps.append(Step(step=step, **details))

    def join(self, other: Trace) -> None:
        """Add the steps of another trace."""
        self._steps.extend(other._steps)

    def recall(self, repository: str, stored: Sequence[Mapping[str, Any]]) -> None:
        """Add the steps to a kept response of a repository (a path), from ``stored``. Hot reads call it, too."""
        self._steps.extend((repository, each) for each in stored)

    def store(self) -> tuple[Mapping[str, Any], ...]:
        """The steps as objects for JSON."""
        return tuple(msgspec.to_builtins(each) for each in self.steps)


def _restore(repository: str, stored: Mapping[str, Any]) -> Step:
    return msgspec.structs.replace(msgspec.convert(stored, Step), repository=repository)


@define
class NameReserved(NotFound):
    """No upstream is asked for the package, since its name matches ``pattern``, and no hosted repository has it."""

    pattern: str

    def __str__(self) -> str:
        return f"{NotFound.__str__(self)} here: {self.header_reason}"

    @property
    def header_reason(self) -> str:
        """The reason for the header of a response."""
        return f"no upstream is asked for it, since policy.reserved_names has {self.pattern!r}"


@define
class NameRetired(NotFound):
    """No upstream is asked for the package, since a hosted repository had it, and its name was not released."""

    def __str__(self) -> str:
        return f"{NotFound.__str__(self)} here: {self.header_reason}"

    @property
    def header_reason(self) -> str:
        """The reason for the header of a response."""
        return "no upstream is asked for it, since a hosted repository had it until it was removed"


@define
class MemberInactive(RepositoryInactive):
    """A member of the virtual repository at ``path`` that has the package ``name``, or may have it, is switched off."""

    name: str

    def __str__(self) -> str:
        return f"a member of repository {self.path} that has {self.name!r}, or may have it, is not active"
