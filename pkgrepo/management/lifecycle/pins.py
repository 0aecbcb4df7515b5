"""Pins: versions that no rule of retention removes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Self

from msgspec import Meta

from pkgrepo.errors import Conflict, NotFound
from pkgrepo.management.api.access_rules import CONTENT_DELETERS, CONTENT_READERS, PROJECT_VIEWERS, READERS_OF_SOME
from pkgrepo.management.api.call import Call, must_do
from pkgrepo.management.api.fields import PackageName, RepositoryPath, VersionName
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Body, Record
from pkgrepo.management.packages import images
from pkgrepo.management.projects.access import find_project
from pkgrepo.model import Action, Repository, RepositoryType
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.publish.owner_quotas import pins_of_project
from pkgrepo.storage.catalog.packages import pins
from pkgrepo.storage.catalog.packages.pins import Pin

table = Table("packages")


class PinGiven(Body):
    """Why a version is to stay."""

    reason: Annotated[str, Meta(max_length=1000), meaning("Why the version is to stay.")] = ""


class PinRecord(Record):
    """A pinned version; of an image, version is a tag or the digest of a manifest."""

    repository: RepositoryPath
    package: PackageName
    version: VersionName
    reason: Annotated[str, meaning("Why the version stays.")]
    by: Annotated[str, meaning("The user who pinned it.")]
    pinned_at: Annotated[datetime, meaning("When it was pinned.")]

    @classmethod
    def of(cls, repository: Repository, pin: Pin) -> Self:
        """The record of a pin."""
        return cls(
            repository=repository.path,
            package=pin.package_key,
            version=pin.name,
            reason=pin.reason,
            by=pin.actor,
            pinned_at=pin.pinned_at,
        )


PINS: Final[Mapping[str, Any]] = {
    "columns": "REPOSITORY: repository | PACKAGE: package | VERSION: version | BY: by | PINNED: pinned_at:ago | "
    "REASON: reason",
    "nothing": "nothing is pinned",
}


@table.command(
    "package pin REPOSITORY NAME==VERSION",
    "{package} {version} is pinned",
    options="reason",
    more="Retention then keeps it. VERSION is a tag or a digest of an image.",
)
@table.put(
    "/package/<repository>/<package>/versions/<version>/pin", CONTENT_DELETERS, "Pin a version", audit="version.pin"
)
async def pin_version(call: Call, body: PinGiven, version: str) -> PinRecord:
    """
    No rule of retention removes it, unless the rule says that it does not keep what is pinned.

    Of an image it is a tag, whatever that points to, or the digest of a manifest. People and clients can still delete
    it; a version that comes back is pinned again. In the cache of a proxy neither rules nor the limits of the cache
    evict it. Virtual repositories have no pins (409): their members do.
    """
    if call.repository.type is RepositoryType.VIRTUAL:
        raise Conflict("a virtual repository has no versions of its own: pin them in its members")
    if images.are_in(call):
        package = await call.find_package()
        await images.find(call, package, version)
        name = version
    else:
        package, found = await call.find_version(version)
        name = found.text
    entry = call.entry(detail={"reason": body.reason})
    at = call.repository.id, package.key
    await call.write(entry, pins.put_pin, *at, name, " ".join(body.reason.split()), call.actor, call.now_ms)
    listed = await call.catalog.look(pins.list_pins, *at)
    return next(PinRecord.of(call.repository, each) for each in listed if each.name == name)


@table.command(
    "package unpin REPOSITORY NAME==VERSION",
    "{name} {version} is not pinned any more",
    more="Rules of retention decide about it again.",
)
@table.delete(
    "/package/<repository>/<package>/versions/<version>/pin", CONTENT_DELETERS, "Unpin a version", audit="version.unpin"
)
async def unpin_version(call: Call, version: str) -> None:
    """Rules of retention decide about it again. The version need not exist any more; 404 if it is not pinned."""
    call.object = f"{call.repository.path}/{call.package}@{version}"
    unpin = must_do(pins.remove_pin, NotFound("pin", version))
    await call.write(call.entry(), unpin, call.repository.id, call.package or "", version)


@table.get("/package/<repository>/<package>/pins", CONTENT_READERS, "List the pinned versions of a package")
async def list_pins_of_package(call: Call) -> list[PinRecord]:
    """Also those that do not exist any more."""
    found = await call.catalog.scan(pins.list_pins, call.repository.id, call.package or "")
    return [PinRecord.of(call.repository, each) for each in found]


@table.command(
    "package pins REPOSITORY", about="List the pinned versions of a repository, or of a project's packages.", **PINS
)
@table.get("/repository/<repository>/pins", READERS_OF_SOME, "List the pinned versions of a repository")
async def list_pins(call: Call) -> list[PinRecord]:
    """Ordered by package and version."""
    return await _readable(call, await call.catalog.scan(pins.list_pins, call.repository.id))


@table.command("package pins project:KEY", **PINS)
@table.get("/project/<key>/pins", PROJECT_VIEWERS, "List the pinned versions of a project's packages")
async def list_pins_of_project(call: Call, key: str) -> list[PinRecord]:
    """Of all packages that the project owns, in the repositories that the caller may read."""
    project = await find_project(call, key)
    return await _readable(call, await call.catalog.scan(pins_of_project, project))


async def _readable(call: Call, found: Sequence[Pin]) -> list[PinRecord]:
    """The records of those pins whose packages the caller may read."""
    there = [(repository, each) for each in found if (repository := call.registry.find_id(each.repository_id))]
    may = await call.services.callers.authorizer.may_each(
        call.identity, [(Action.READ, repository, each.package_key) for repository, each in there]
    )
    return [PinRecord.of(*pair) for pair, readable in zip(there, may, strict=True) if readable]
