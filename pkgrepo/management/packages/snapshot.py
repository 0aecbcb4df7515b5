"""The route that compares a repository with what it was at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Final

from pkgrepo.interfaces import Reader
from pkgrepo.management.api.access_rules import CONTENT_READERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import NextCursor, PackageName, RepositoryPath, VersionName
from pkgrepo.management.api.pages import cursor_of
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.management.api.schema import Record
from pkgrepo.management.packages.merged import is_merged, readable_members
from pkgrepo.model import DatedView, Repository, RepositoryType
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.format import VersionKinds
from pkgrepo.repositories.past import Changes, changes_since
from pkgrepo.storage.catalog.packages.packages import changed_keys

MOST_NAMED: Final = 100  # versions of each kind, of a package
MOST_PACKAGES: Final = 200  # on a page
REMOVED: Final = "Of what was removed the log has the names alone: it is in no view."
UPSTREAMS: Final = (
    "Of what comes from upstreams only versions that are kept here are compared; its tags and yanks are those of now."
)

table = Table("packages")


class TagMove(Record):
    """A tag that was moved: the versions that it named then and names now, null for none."""

    tag: Annotated[str, meaning("The tag.")]
    then: Annotated[str | None, meaning("The version that the tag named then; null for none.")]
    now: Annotated[str | None, meaning("The version that the tag names now; null for none.")]


class StateChange(Record):
    """A version whose state was changed: live, yanked or deprecated."""

    version: VersionName
    then: Annotated[str, meaning("The state then.")]
    now: Annotated[str, meaning("The state now.")]


class SinceRecord(Record):
    """
    What was changed of a package since: versions that came and went, tags and states.

    At most 100 versions of each kind are named; the counts are of all. unknown are older versions that came here later,
    such as by an import: of their tags and states of then nothing is known.
    """

    package: PackageName
    repository: Annotated[str, meaning("The repository that has the package, as storage/name.")]
    added: Annotated[list[str], meaning("Versions that came since, at most 100.")]
    added_count: Annotated[int, meaning("How many versions came since.")]
    removed: Annotated[list[str], meaning("Versions that went since, at most 100.")]
    removed_count: Annotated[int, meaning("How many versions went since.")]
    tags: Annotated[list[TagMove], meaning("Tags that were moved since.")]
    states: Annotated[list[StateChange], meaning("Versions whose state was changed since.")]
    unknown_count: Annotated[
        int, meaning("How many older versions came here later, of whose tags and states of then nothing is known.")
    ]
    gone: Annotated[bool, meaning("Whether the package was removed whole.")]


class Snapshot(Record):
    """
    How a repository differs from what it was at a time: a page of packages, by their names.

    A page may have fewer items than its limit, or none, and not be the last one: next is the cursor of the following
    page.
    """

    repository: RepositoryPath
    url: Annotated[str, meaning("The address of the view.")]
    at: Annotated[datetime, meaning("The last moment that counts.")]
    settled: Annotated[
        bool, meaning("Whether that day (UTC) is past, so that documents of the view may be kept for ever.")
    ]
    items: Annotated[list[SinceRecord], meaning("The packages that differ, by their names.")]
    next: NextCursor
    limits: Annotated[list[str], meaning("Sentences about what cannot be known.")]


@table.get(
    "/repository/<repository>/snapshot",
    CONTENT_READERS,
    "Show what was changed in a repository since a time",
    query=(
        Parameter("at", "The date (its end, UTC) or the time, such as 2026-09-01 or 2026-09-01T12:00Z."),
        Parameter("limit", f"Maximum number of changed packages on the page, 1 to {MOST_PACKAGES}; 50.", "integer"),
        Parameter("cursor", "The value of next of the previous page; absent for the first page."),
    ),
)
async def show_snapshot(call: Call) -> Snapshot:
    """
    What the view of the repository at that time shows otherwise, by the log of events.

    Of a virtual repository it is what was changed in those of its members that the caller may read.
    """
    repository, kinds = call.repository, call.format.versions
    shown = call.view_of(repository, call.query("at"))
    view = shown.view
    assert view is not None, "it is a view"
    assert kinds is not None, "formats with views have versions"
    members = await readable_members(call) if is_merged(call) else [repository]
    limit, after = call.integer("limit", 50, 1, MOST_PACKAGES), call.page_request.after("")
    read = partial(call.catalog.scan, partial(_read, kinds=kinds), members, view, after, limit)
    keys, found = await call.shared.view_turns.make(shown, read)
    upstreams = any(each.type is RepositoryType.PROXY for each in members)
    return Snapshot(
        repository=shown.address,
        url=f"{call.base_url}/repositories/{shown.address}/",
        at=from_ms(view.at_ms),
        settled=view.settled,
        items=[_record(each, changes) for each, changes in found],
        next=cursor_of(keys[limit - 1]) if len(keys) > limit else None,
        limits=[REMOVED, *([UPSTREAMS] if upstreams else [])],
    )


def _read(
    reader: Reader, members: Sequence[Repository], view: DatedView, after: str, limit: int, *, kinds: VersionKinds
) -> tuple[list[str], list[tuple[Repository, Changes]]]:
    """The keys of the next changed packages, one more than the limit if there are more, and their changes."""
    by_key: dict[str, list[Repository]] = {}
    for member in members:
        for key in changed_keys(reader, member.id, view.at_ms, after=after, limit=limit + 1):
            by_key.setdefault(key, []).append(member)
    keys = sorted(by_key)[: limit + 1]
    found: list[tuple[Repository, Changes]] = []
    for key in keys[:limit]:
        for member in by_key[key]:
            changes = changes_since(reader, member, key, view.at_ms, partial(_highest, kinds))
            if changes:
                found.append((member, changes))
    return keys, found


def _highest(kinds: VersionKinds, texts: Iterable[str]) -> str | None:
    every = sorted(texts, key=kinds.sort)
    return next((each for each in reversed(every) if not kinds.prerelease(each)), every[-1] if every else None)


def _record(repository: Repository, found: Changes) -> SinceRecord:
    return SinceRecord(
        package=found.name,
        repository=repository.path,
        added=list(found.added[-MOST_NAMED:]),
        added_count=len(found.added),
        removed=list(found.removed[-MOST_NAMED:]),
        removed_count=len(found.removed),
        tags=[TagMove(tag=tag, then=then, now=now) for tag, (then, now) in found.tags.items()][:MOST_NAMED],
        states=[StateChange(version=text, then=then, now=now) for text, (then, now) in found.states.items()][
            :MOST_NAMED
        ],
        unknown_count=len(found.unknown),
        gone=found.gone,
    )
