"""
The starter set: repositories with everyday names, so that clients of any format can begin.

===================  ==========================================================================  ======================
repository           what it is                                                                  of npm
===================  ==========================================================================  ======================
``NAME``             virtual: the address of a team, where it installs from and publishes to     ``main/npm``
``NAME-hosted``      what is published by that                                                   ``main/npm-hosted``
``NAME-proxy``       what is kept of an upstream, if its address is known                        ``main/npm-proxy``
===================  ==========================================================================  ======================

What exists is not changed. A proxy that is made later is not a member of a virtual repository that was there before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from attrs import frozen
from msgspec import Meta

from pkgrepo.errors import Invalid
from pkgrepo.gateway.format import Format
from pkgrepo.management.api.access_rules import SYSTEM_MANAGERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import RepositoryPath
from pkgrepo.management.api.names import get_format
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Body, Record
from pkgrepo.management.repositories.definitions import define
from pkgrepo.management.repositories.routes import create_repository, find_place
from pkgrepo.management.repositories.schema import NewRepository
from pkgrepo.model import RepositoryType
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.format import load_formats

EVERY: Final = "all"  # in place of the names of formats
OPEN_TO: Final = {
    "public": "everybody who reaches the server may read them; those with the permission to write publish",
    "private": "those with a permission may read them, and publish",
}

table = Table("repositories")


@frozen(kw_only=True)
class StarterRepository:
    """A repository of the starter set, with its configuration as in the API."""

    name: str
    format: str
    description: str
    config: Mapping[str, Any]


def starter_set(format_: Format, storage: str, upstream: str | None) -> Iterator[StarterRepository]:
    """The repositories of a format in a storage, members first; a proxy only if there is an ``upstream`` (URL)."""
    name = format_.look.starter
    hosted, proxy = f"{name}-hosted", f"{name}-proxy"
    members = [f"{storage}/{hosted}"]
    yield _repository(format_, hosted, f"What is published to {storage}/{name}", {"type": "Hosted"})
    if upstream is not None:
        members.append(f"{storage}/{proxy}")
        routes = {"type": "Proxy", "proxy": {"routes": [{"url": upstream}]}}
        yield _repository(format_, proxy, "What is kept of the public registry", routes)
    virtual = {"type": "Virtual", "members": members, "publish_to": members[0]}
    yield _repository(format_, name, "Install from here, and publish to here", virtual)


def _repository(format_: Format, name: str, description: str, config: Mapping[str, Any]) -> StarterRepository:
    return StarterRepository(name=name, format=format_.name, description=description, config=config)


def starter_formats(formats: Mapping[str, Format], names: Sequence[str], upstreams: Mapping[str, str]) -> list[Format]:
    """
    The formats of these names, of which none or ``EVERY`` means all; ``upstreams`` are their addresses by name.

    :raises Invalid: there is no such format, or it has no starter set
    """
    given = {get_format(formats, each, "/upstreams").name for each in upstreams}
    if not names or EVERY in names:
        found = [each for _, each in sorted(formats.items()) if each.look.starter]
    else:
        found = [get_format(formats, each, "/formats") for each in dict.fromkeys(names)]
    if bare := next((each.name for each in found if not each.look.starter), None):
        raise Invalid(f"the format {bare} has no starter set", "/formats")
    if surplus := given - {each.name for each in found}:
        raise Invalid(f"an upstream is given for {sorted(surplus)[0]}, which is not among the formats", "/upstreams")
    return found


def upstream_of(formats: Mapping[str, Format], upstreams: Mapping[str, str], format_: Format) -> str | None:
    """The address for a format, which may be written by any of its names; None if there is none."""
    found = (url for name, url in upstreams.items() if get_format(formats, name).name == format_.name)
    return next(found, None)


class Starter(Body):
    """The formats that clients are to begin with."""

    formats: Annotated[
        Annotated[list[str], Meta(max_length=50)], meaning("Names of formats, such as npm; all without any.")
    ] = []
    upstreams: Annotated[
        dict[str, str],
        meaning(
            "Addresses of public registries by format, of which proxies are made; those that are not given are those "
            "of the settings (bootstrap.upstreams)."
        ),
    ] = {}
    storage: Annotated[str, meaning("The name of the storage.")] = "main"
    visibility: Annotated[
        Literal["public", "private"],
        meaning("public: everybody who reaches the server may read; private: those with a permission."),
    ] = "public"


class StarterRecord(Record):
    """A repository of the starter set."""

    repository: RepositoryPath
    format: Annotated[str, meaning("The name of the format.")]
    type: Annotated[str, meaning("Hosted, Proxy or Virtual.")]
    url: Annotated[str, meaning("The address of the repository, for clients.")]
    made: Annotated[bool, meaning("Whether it was made now; false if it was there.")]
    warnings: Annotated[list[str], meaning("What is wrong with it, such as an upstream that cannot be reached.")]


class StarterSet(Record):
    """The repositories of the starter set; open_to says who may use them, hints what is left to do."""

    items: Annotated[list[StarterRecord], meaning("The repositories, members before the virtual ones.")]
    open_to: Annotated[str, meaning("Who may read those that were made, and publish to them.")]
    hints: Annotated[list[str], meaning("What is left to do, as sentences.")]


class StarterUpstreams(Record):
    """The addresses of public registries that the settings have."""

    upstreams: Annotated[dict[str, str], meaning("Addresses by the names of formats.")]


@table.get("/system/starter", SYSTEM_MANAGERS, "List the addresses of public registries in the settings")
async def list_upstreams(call: Call) -> StarterUpstreams:
    """Of which proxies are made (bootstrap.upstreams)."""
    given = call.services.starter_upstreams.items()
    return StarterUpstreams(upstreams={get_format(call.services.formats, name).name: url for name, url in given})


@table.command(
    "repo starter FORMATS...",
    rows="items",
    columns="REPOSITORY: repository | FORMAT: format | TYPE: type | MADE: made:now/before | ADDRESS: url",
    options="upstream: upstreams:addresses, storage main, visibility public",
    whole=True,
    notes="hints",
    warned=True,
    about="Make a hosted repository, a proxy and a virtual one of both for each of some formats.",
    more='FORMATS are names such as npm, or "all".',
)
@table.post("/system/starter", SYSTEM_MANAGERS, "Make repositories to begin with", audit="repository.create")
async def make_starter(call: Call, body: Starter) -> StarterSet:
    """
    For each format a hosted repository, a proxy of the public registry, whose address is given or a setting, and a
    virtual one of both, by which a team installs and publishes. What exists is not changed.
    """
    formats = call.services.formats
    found = starter_formats(formats, body.formats, body.upstreams)
    await load_formats(found, call.shared.pools.cpu)
    storage = (await find_place(call, body.storage)).name
    given = [*call.services.starter_upstreams.items(), *body.upstreams.items()]
    upstreams = {get_format(formats, name, "/upstreams").name: url for name, url in given}
    wanted = [
        (format_, each)
        for format_ in found
        for each in starter_set(format_, storage, upstream_of(formats, upstreams, format_))
    ]
    for format_, each in wanted:  # nothing is made if one of them cannot be
        try:
            define(format_, call.shared.pipelines.issuers, storage, each.name, each.config)
        except Invalid as error:
            raise Invalid(error.message, f"/upstreams/{format_.name}") from None
    items, hints = list[StarterRecord](), list[str]()
    for format_, each in wanted:
        path = f"{storage}/{each.name}"
        there = call.registry.find(storage, each.name)
        if there is None:
            new = NewRepository(
                name=each.name,
                storage=storage,
                format=format_.name,
                visibility=body.visibility,
                description=each.description,
                config=dict(each.config),
            )
            made = (await create_repository(call, new)).value
            warnings, type_ = list(made.warnings), str(made.type)
        else:
            warnings, type_ = [], str(there.type)
            added = [one.repository for one in items if one.made and one.format == format_.name]
            if there.type is RepositoryType.VIRTUAL and added:
                hints.append(f"{path} was there: make {' and '.join(added)} a member of it")
        url = f"{call.shared.base_url(call.request)}/repositories/{path}"
        record = {"repository": path, "format": format_.name, "type": type_, "url": url}
        items.append(StarterRecord(**record, made=there is None, warnings=warnings))
    bare = [
        each.name
        for each in found
        if upstream_of(formats, upstreams, each) is None
        and call.registry.find(storage, f"{each.look.starter}-proxy") is None
    ]
    if bare:
        hints.append(f"no upstream is known for {', '.join(bare)}: give its address, and its proxy is made")
    return StarterSet(items=items, open_to=OPEN_TO[body.visibility], hints=hints)
