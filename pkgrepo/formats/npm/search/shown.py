"""What rules let searches show of packages: each in the latest version that is served."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from attrs import evolve

from pkgrepo.formats.npm.search.rows import Row, make_row
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import Reader
from pkgrepo.model import Version, VersionState
from pkgrepo.proxy.resolving.flat_members import FlatMember
from pkgrepo.repositories.policy.judge import Judge
from pkgrepo.storage.catalog.packages import packages, versions


async def shown_rows(services: Services, flat: FlatMember, rows: Sequence[Row]) -> dict[str, Row | None]:
    """
    The rows of those packages of a member of which the version in the row is hidden, by name.

    They have the latest version that is left; None if none is.
    """
    judges = await services.proxy.judges.of_each(flat, [each.name for each in rows])
    if not judges:
        return {}
    found: dict[str, Row | None] = await services.catalog.scan(
        _replaced, flat.repository.id, [each for each in rows if each.name in judges], judges
    )
    return found


def _replaced(r: Reader, repository_id: int, rows: Sequence[Row], judges: Mapping[str, Judge]) -> dict[str, Row | None]:
    found: dict[str, Row | None] = {}
    for row in rows:
        package = packages.find_package(r, repository_id, row.name)
        hidden = {} if package is None else judges[row.name].hidden_files(r, package.id)[0]
        if package is None or row.version not in hidden:
            continue
        latest = latest_left(versions.list_versions(r, package.id), row.version, hidden)
        found[row.name] = None
        if latest is not None:
            new = make_row(package, latest, deprecated=latest.state is not VersionState.LIVE)
            found[row.name] = evolve(new, downloads=row.downloads)
    return found


def latest_left(every: Sequence[Version], before: str, hidden: Container[str]) -> Version | None:
    """The highest release below the one that was the latest ``before``, or else above it, or else a prerelease."""
    texts = [each.text for each in every]
    below = every[: texts.index(before)] if before in texts else every
    left = [[each for each in some if each.text not in hidden] for some in (below, every)]
    released = [[each for each in some if "-" not in each.text.partition("+")[0]] for some in left]
    return next((some[-1] for some in (*released, *left) if some), None)
