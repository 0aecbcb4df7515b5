"""Publishers: pipelines that publish without a stored token to a repository, a package of it, or all of a project."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Self

import msgspec
from msgspec import Meta

from pkgrepo.auth.permissions.publishers import entry_id
from pkgrepo.errors import Invalid
from pkgrepo.gateway.publishing import publishers as gateway
from pkgrepo.management.api.access_rules import EDITORS, PROJECT_VIEWERS, SYSTEM_MANAGERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import ObjectId
from pkgrepo.management.api.route import Created, Table
from pkgrepo.management.api.schema import Record
from pkgrepo.management.projects.access import check_may_list_members, find_project
from pkgrepo.model.structs import meaning
from pkgrepo.oidc import publishers
from pkgrepo.oidc.issuers import Issuers
from pkgrepo.oidc.publishers import (
    Stored,
    check_given,
    described,
    known_issuer,
    package_of,
    source_claims,
    stored_in,
    that_cover,
    warnings_about,
)
from pkgrepo.repositories.configuration import PipelinePublisher

table = Table("repositories")
PUBLISHERS = "/repository/<repository>/publishers"
OF_PACKAGE = "/package/<repository>/<package>/publishers"
OF_PROJECT = "/project/<key>/publishers"


class PublisherGiven(PipelinePublisher, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """
    Which pipelines publish, and what.

    source is a repository or project at the issuer, such as acme/widget, and file the name of the file there that
    defines the pipeline: they stand for the claims that say so. All fit together with the other claims.
    """

    claims: Annotated[
        dict[str, str | list[str]],
        meaning("The claims that the identity token must have, each with a pattern or several."),
    ] = {}
    source: Annotated[
        str,
        Meta(max_length=300),
        meaning("A repository or project at the issuer, such as acme/widget, instead of its claims."),
    ] = ""
    file: Annotated[
        str,
        Meta(max_length=200),
        meaning("The name of the file there that defines the pipeline, instead of its claims."),
    ] = ""


class PublisherRecord(Record):
    """A publisher with its id."""

    id: ObjectId
    issuer: Annotated[str, meaning("The address of the issuer of identity tokens.")]
    claims: Annotated[
        dict[str, str | list[str]],
        meaning("The claims that the identity token must have, each with a pattern or several."),
    ]
    audience: Annotated[str, meaning("What the identity token must name; by default the address of the server.")]
    environment: Annotated[str, meaning("The environment of the pipeline, if it must be one.")]
    packages: Annotated[list[str], meaning("Patterns of the names that it may publish; all packages without any.")]
    actions: Annotated[list[str], meaning("What it may do with them.")]
    package: Annotated[str | None, meaning("The only package that it is for; null for those of the repository.")]
    of_project: Annotated[
        bool, meaning("Whether it is one of the project that owns the package, and is removed there.")
    ]
    warnings: Annotated[list[str], meaning("Sentences about what is doubtful about it.")]

    @classmethod
    def of(cls, issuers: Issuers, stored: Stored, *, of_project: bool = False) -> Self:
        """The record of a publisher."""
        given = msgspec.convert(stored, PipelinePublisher)  # with the defaults of fields that it was stored without
        return cls.from_attributes(
            given,
            id=entry_id(stored),
            package=package_of(stored),
            of_project=of_project,
            warnings=warnings_about(issuers, stored),
        )


SHOWN: Final[Mapping[str, Any]] = {
    "columns": "ID: id | ISSUER: issuer | CLAIMS: :claims | PACKAGES: packages or 'all':spaced | "
    "ACTIONS: actions:spaced",
    "nothing": "no pipelines publish here",
    "warned": True,
    "about": "List the publishers of a repository or a project, or those that publish PACKAGE.",
    "unfit": "a project has no publishers of single packages: name the repository of the package",
}
ADDED: Final[Mapping[str, Any]] = {
    "done": "{:claims} of {issuer} publishes to {repository} ({id})",
    "options": "issuer!, claim:claims: claims, source, file, environment, audience, packages, action: actions",
    "about": "Let pipelines publish to a repository, or PACKAGE in it, which need not exist yet; "
    "or all that a project owns.",
    "more": "Your own rights there are needed: a publisher has no actions that you do not have.",
    "unfit": SHOWN["unfit"],
}
REMOVED: Final[Mapping[str, Any]] = {
    "done": "removed the publisher {id}",
    "ask": "Remove the publisher {id} of {repository}? Its tokens end.",
    "about": "Remove a publisher; the tokens of its pipelines end.",
    "said": {"--id": "The id, as publisher list shows it."},
    "unfit": SHOWN["unfit"],
}


@table.command("publisher list REPOSITORY", **SHOWN)
@table.get(PUBLISHERS, EDITORS, "List the publishers of a repository")
async def list_publishers(call: Call) -> list[PublisherRecord]:
    """Those of single packages are among them."""
    return await _listed(call)


@table.command("publisher add REPOSITORY", **ADDED)
@table.post(PUBLISHERS, EDITORS, "Add a publisher to a repository", audit="publisher.add")
async def add_publisher(call: Call, body: PublisherGiven) -> Created[PublisherRecord]:
    """
    Also needs the actions that the publisher gives. The packages need not exist.

    Where everybody has pipelines (422), a claim must say without an asterisk who owns the source.
    """
    return await _added(call, body)


@table.command("publisher remove REPOSITORY --id ID", **REMOVED)
@table.delete(f"{PUBLISHERS}/<id>", EDITORS, "Remove a publisher from a repository", audit="publisher.remove")
async def remove_publisher(call: Call, id: str) -> None:
    """The tokens of its pipelines end."""
    await _removed(call, id)


@table.command("publisher list REPOSITORY PACKAGE", **SHOWN)
@table.get(OF_PACKAGE, EDITORS, "List the publishers of a package")
async def list_package_publishers(call: Call) -> list[PublisherRecord]:
    """The package need not exist. Those of the repository, and of its project, that are for it are among them."""
    return await _listed(call)


@table.command("publisher add REPOSITORY PACKAGE", **ADDED)
@table.post(OF_PACKAGE, EDITORS, "Add a publisher to a package", audit="publisher.add")
async def add_package_publisher(call: Call, body: PublisherGiven) -> Created[PublisherRecord]:
    """
    Also needs the actions that the publisher gives.

    The package need not exist: the first publish of the pipeline makes it.
    """
    return await _added(call, body)


@table.command("publisher remove REPOSITORY PACKAGE --id ID", **REMOVED)
@table.delete(f"{OF_PACKAGE}/<id>", EDITORS, "Remove a publisher from a package", audit="publisher.remove")
async def remove_package_publisher(call: Call, id: str) -> None:
    """The tokens of its pipelines end. One that is for other packages, too, cannot be removed here (403)."""
    await _removed(call, id)


@table.command("publisher list project:KEY", **SHOWN)
@table.get(OF_PROJECT, PROJECT_VIEWERS, "List the publishers of a project")
async def list_project_publishers(call: Call, key: str) -> list[PublisherRecord]:
    """Also needs membership in the project, unless the caller is a system manager."""
    project = await find_project(call, key)
    await check_may_list_members(call, project)
    return [PublisherRecord.of(call.shared.pipelines.issuers, each, of_project=True) for each in project.publishers]


@table.command("publisher add project:KEY", **ADDED)
@table.post(OF_PROJECT, SYSTEM_MANAGERS, "Add a publisher to a project", audit="publisher.add")
async def add_project_publisher(call: Call, body: PublisherGiven, key: str) -> Created[PublisherRecord]:
    """It is for the packages that the project owns, in all repositories; they need not exist."""
    project, issuers = await find_project(call, key), call.shared.pipelines.issuers
    given = _publisher(issuers, body)
    check_given(issuers, msgspec.to_builtins(given))
    entry = call.entry(project.key, {"project": project.key, "publishers": [msgspec.to_builtins(given)]})
    stored = await call.write(entry, publishers.add_project_publisher, project.id, given, now_ms=call.now_ms)
    record = PublisherRecord.of(issuers, stored, of_project=True)
    return Created(record, f"/api/project/{project.key}/publishers/{record.id}")


@table.command("publisher remove project:KEY --id ID", **REMOVED)
@table.delete(f"{OF_PROJECT}/<id>", SYSTEM_MANAGERS, "Remove a publisher from a project", audit="publisher.remove")
async def remove_project_publisher(call: Call, key: str, id: str) -> None:
    """The tokens of its pipelines end."""
    project = await find_project(call, key)
    entry = call.entry(project.key, {"project": project.key, **described(project.publishers, id)})
    await call.write(entry, publishers.remove_project_publisher, project.id, id, now_ms=call.now_ms)


async def _listed(call: Call) -> list[PublisherRecord]:
    await gateway.check_may_change(call.shared, call.identity, call.repository, call.package)
    issuers = call.shared.pipelines.issuers
    found = [PublisherRecord.of(issuers, each) for each in gateway.listed(await call.fresh_repository(), call.package)]
    if call.package is not None:
        project = await call.services.callers.authorizer.owning_project(call.repository, call.package)
        of_project = () if project is None else that_cover(project.publishers, call.package)
        found += [PublisherRecord.of(issuers, each, of_project=True) for each in of_project]
    return found


async def _added(call: Call, body: PublisherGiven) -> Created[PublisherRecord]:
    await gateway.check_may_change(call.shared, call.identity, call.repository, call.package)
    given = _publisher(call.shared.pipelines.issuers, body)
    command = await gateway.prepare(call.shared, call.identity, call.repository, call.package, given)
    entry = call.entry(detail={"package": call.package, "publishers": [msgspec.to_builtins(given)]})
    record = PublisherRecord.of(call.shared.pipelines.issuers, await call.write(entry, command, call.now_ms))
    await call.registry.refresh()
    return Created(record, f"/api/repository/{call.repository.uid}/publishers/{record.id}")


def _publisher(issuers: Issuers, body: PublisherGiven) -> PipelinePublisher:
    fields = msgspec.to_builtins(body)
    source, file = fields.pop("source"), fields.pop("file")
    if file and not source:
        raise Invalid("the file of a pipeline is in a source: name that, too", "/source")
    if source:
        fields["claims"] |= source_claims(known_issuer(issuers, body.issuer), source, file)
    return msgspec.convert(fields, PipelinePublisher)


async def _removed(call: Call, id: str) -> None:
    await gateway.check_may_change(call.shared, call.identity, call.repository, call.package)
    detail = described(stored_in(await call.fresh_repository()), id)
    entry = call.entry(detail={"package": call.package, **detail})
    await call.write(entry, gateway.removal(call.repository, call.package, id), call.now_ms)
    await call.registry.refresh()
