"""The route that lists the packages that need a package, in all repositories that the caller may see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.management.api.access_rules import CONTENT_READERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.model import Action, Repository
from pkgrepo.storage.catalog.packages import dependencies
from pkgrepo.storage.catalog.packages.dependencies import spelling_of

from .schema import DependentRecord
from .search import BEHIND

ACCEPTED: Final = Parameter(
    "version", "A version of the package: accepts tells of each dependency whether it accepts that."
)
DEPENDENTS: Final = "PACKAGE: name | REPOSITORY: repository | LATEST: latest | NEEDS: text | KIND: kind"

table = Table("packages")


@table.command(
    "package dependents REPOSITORY NAME",
    options="limit",
    columns=DEPENDENTS,
    nothing="no package that you may see needs it",
    notes=BEHIND,
    about="List the packages on the server that need a package: those of their highest versions that say so.",
    more="With a version it tells which of them accept that.",
)
@table.command(
    "package dependents REPOSITORY NAME==VERSION",
    options="limit",
    columns=f"{DEPENDENTS} | ACCEPTS IT: accepts",
    nothing="no package that you may see needs it",
    notes=BEHIND,
)
@table.get(
    "/package/<repository>/<package>/dependents",
    CONTENT_READERS,
    "List the packages that need a package",
    query=(ACCEPTED,),
)
async def list_dependents(call: Call) -> Page[DependentRecord]:
    """
    Sorted by name. They are those of all active repositories of the same format that the caller may see, also of
    others than the one with this package; of each, the dependencies of its highest version count. accepts tells whether
    a dependency accepts the version of the query, in the order of the format.

    Images have none. Some more than these may be counted in total: names that look alike.
    """
    package = await call.find_package()
    own = call.repository.format
    fitting = [each for each in call.registry.all() if each.active and each.format == own and each.stage is None]
    visible = {each.id: each for each in await call.services.callers.authorizer.visible(call.identity, fitting)}
    described = await call.services.shared.descriptions.current()
    place = described, spelling_of(package.key), sorted(visible)
    found = await call.page(
        dependencies.list_dependents,
        *place,
        by=dependencies.DEPENDENT_ORDER,
        show=lambda each: each,
        count=(dependencies.count_dependents, *place),
    )
    may = await call.services.callers.authorizer.may_each(
        call.identity, [(Action.READ, visible[each.repository_id], each.key) for each in found.items]
    )
    version = call.query("version")
    accepts = call.format.accepts
    items = [
        _dependent(each, visible[each.repository_id], _verdict(accepts, each.needed.text, version))
        for each, readable in zip(found.items, may, strict=True)
        if readable and _is_meant(call, each, package.key)
    ]
    return Page(items=items, next=found.next, total=found.total, behind=described.is_behind)


def _is_meant(call: Call, dependent: dependencies.Dependent, key: str) -> bool:
    """Whether the name in a dependency is that of the package."""
    try:
        return call.format.package_key(dependent.needed.name) == key
    except Invalid:
        return False


def _verdict(accepts: Callable[[str, str], bool | None], text: str, version: str) -> bool | None:
    """Whether a dependency accepts a version; None for one that is cut, or says nothing of versions."""
    return accepts(text, version) if version and len(text) < dependencies.LONGEST else None


def _dependent(found: dependencies.Dependent, repository: Repository, accepts: bool | None) -> DependentRecord:
    return DependentRecord(
        name=found.package,
        repository_id=repository.uid,
        repository=repository.path,
        latest=found.latest,
        text=found.needed.text,
        kind=found.needed.kind,
        accepts=accepts,
    )
