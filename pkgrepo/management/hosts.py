"""The host names and path prefixes that stand for repositories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pkgrepo.auth.permissions.format_rights import has_images
from pkgrepo.errors import Conflict, Invalid
from pkgrepo.interfaces import Transaction
from pkgrepo.management.api.access_rules import SYSTEM_MANAGERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Body, Record
from pkgrepo.model import Repository
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.addresses import (
    AddressTable,
    check_alias,
    check_host,
    pointer,
    store_addresses,
    stored_addresses,
)

Hosts = Annotated[dict[str, str], meaning("Host names, each with the repository that it stands for, as storage/name.")]
Prefixes = Annotated[
    dict[str, str], meaning("Path prefixes, each with the repository that it stands for, as storage/name.")
]

table = Table("server")

Given = dict[str, str]


class AddressesGiven(Body):
    """Host names and path prefixes, each with the repository that it stands for, as storage/name."""

    hosts: Hosts
    aliases: Prefixes


class AddressChanges(Body):
    """Host names and path prefixes to set, each with a repository as storage/name, or to remove: null."""

    hosts: Annotated[
        dict[str, str | None], meaning("Host names to set, each with a repository as storage/name, or to remove: null.")
    ] = {}
    aliases: Annotated[
        dict[str, str | None],
        meaning("Path prefixes to set, each with a repository as storage/name, or to remove: null."),
    ] = {}


class ConfiguredRecord(Record):
    """The tables hosts and aliases of the configuration file, which only that file changes."""

    hosts: Hosts
    aliases: Prefixes


class AddressesRecord(Record):
    """The host names and path prefixes that stand for repositories, each with its repository as storage/name."""

    hosts: Hosts
    aliases: Prefixes
    configured: Annotated[
        ConfiguredRecord, meaning("The tables of the configuration file, which only that file changes.")
    ]
    missing: Annotated[list[str], meaning("Those whose repository does not exist, at which nothing is served.")]


@table.command(
    "host list",
    columns="NAME: name | REPOSITORY: repository | SET BY: source",
    rows=":addresses",
    nothing="there are none",
    about="List the names, each with its repository.",
)
@table.get("/system/hosts", SYSTEM_MANAGERS, "Show the host names and path prefixes of repositories")
async def show_hosts(call: Call) -> AddressesRecord:
    """At a host a repository is at the root, images at /v2/; path prefixes are on all other hosts."""
    return _record(call, await call.catalog.look(stored_addresses))


@table.put(
    "/system/hosts",
    SYSTEM_MANAGERS,
    "Replace the host names and path prefixes of repositories",
    audit="hosts.update",
    conditional=True,
)
async def replace_hosts(call: Call, body: AddressesGiven) -> AddressesRecord:
    """
    The repositories must exist. What the configuration file sets cannot be set here.

    A name by which the caller, or server.public_url, reaches the server can only be that of a container repository
    (409): the API and the console are not at a host of another one.
    """
    call.check_unchanged(_record(call, await call.catalog.look(stored_addresses)))
    wanted = AddressTable.checked(body.hosts, body.aliases)
    _check(call, wanted)
    return await _store(call, wanted, {}, {"hosts": body.hosts, "aliases": body.aliases}, whole=True)


@table.command(
    "host set NAME= REPOSITORY=hosts.{name}",
    "{name} stands for {repository}",
    about="Let NAME stand for REPOSITORY (storage/name).",
    more="NAME is a host such as npm.corp.example, also with a port, or a path prefix such as /repository/npm-all/ or, "
    "for images, /v2/docker-all/.",
)
@table.command("host set /PREFIX= REPOSITORY=aliases.{name}", "{name} stands for {repository}")
@table.command(
    "host remove NAME=",
    "{name} stands for no repository",
    sends={"hosts.{name}": None},
    about="Remove NAME, at which nothing of a repository is then.",
)
@table.command("host remove /PREFIX=", "{name} stands for no repository", sends={"aliases.{name}": None})
@table.patch(
    "/system/hosts",
    SYSTEM_MANAGERS,
    "Add or remove host names and path prefixes of repositories",
    audit="hosts.update",
)
async def change_hosts(call: Call, body: AddressChanges) -> AddressesRecord:
    """What is not named stays."""
    given = {"hosts": body.hosts, "aliases": body.aliases}
    added = AddressTable.checked(_kept(body.hosts), _kept(body.aliases))
    _check(call, added)
    gone = {
        kind: [check(name) for name, path in given[kind].items() if path is None]
        for kind, check in (("hosts", check_host), ("aliases", check_alias))
    }
    stored = await call.catalog.look(stored_addresses)
    for kind, names in gone.items():
        for name in names:
            if name not in getattr(stored, kind):
                raise Invalid(f"{name} is not set", pointer(kind, name))
    return await _store(call, added, gone, given)


def _check_view(call: Call, repository: Repository, text: str, place: str) -> None:
    try:
        call.view_of(repository, text)
    except Invalid as error:
        raise Invalid(str(error), place) from None


def _kept(given: Mapping[str, str | None]) -> Given:
    return {name: path for name, path in given.items() if path is not None}


def _check(call: Call, wanted: AddressTable) -> None:
    """Check that names can be set. :raises Invalid, Conflict: one cannot"""
    configured = call.registry.configured
    own = {call.shared.public_url.partition("//")[2].partition("/")[0].lower(), call.request.asked_host}
    for kind in ("hosts", "aliases"):
        for name, path in getattr(wanted, kind).items():
            named, at, text = path.partition("@")
            repository = call.registry.find_path(named)
            if repository is None or repository.parent is not None:
                raise Invalid(f"there is no repository {named}", pointer(kind, name))
            if at:
                _check_view(call, repository, text, pointer(kind, name))
            if name in getattr(configured, kind):
                raise Conflict(f"{name} is set in the configuration file")
            if name.startswith("/v2/") and not has_images(repository):
                raise Invalid(f"{path} is no container repository, as names below /v2/ are of", pointer(kind, name))
    for host in own:
        found = wanted.of_host(host)
        repository = None if found is None else call.registry.find_path(found.partition("@")[0])
        if repository is not None and not has_images(repository):
            raise Conflict(f"{host} is the name of the server itself, whose API and console would not be there")


async def _store(
    call: Call,
    added: AddressTable,
    gone: Mapping[str, list[str]],
    detail: Mapping[str, Mapping[str, str | None]],
    *,
    whole: bool = False,
) -> AddressesRecord:
    stored: AddressTable = await call.write(call.entry("hosts", detail), _change, added, gone, whole=whole)
    await call.registry.refresh()  # so that the next request finds what this one has set
    return _record(call, stored)


def _change(tx: Transaction, added: AddressTable, gone: Mapping[str, list[str]], *, whole: bool) -> AddressTable:
    before = AddressTable() if whole else stored_addresses(tx)
    joined = before.joined(added)
    table = AddressTable.checked(
        {name: path for name, path in joined.hosts.items() if name not in gone.get("hosts", ())},
        {name: path for name, path in joined.aliases.items() if name not in gone.get("aliases", ())},
    )
    store_addresses(tx, table)
    return table


def _record(call: Call, stored: AddressTable) -> AddressesRecord:
    configured = call.registry.configured
    every = stored.joined(configured)
    named = {**every.hosts, **every.aliases}
    return AddressesRecord(
        hosts=dict(stored.hosts),
        aliases=dict(stored.aliases),
        configured=ConfiguredRecord(hosts=dict(configured.hosts), aliases=dict(configured.aliases)),
        missing=sorted(name for name, path in named.items() if not call.registry.find_path(path.partition("@")[0])),
    )
