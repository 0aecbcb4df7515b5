"""``pkgrepo repo apply``: makes repositories, groups, rights, projects and upkeep of a server those of a file."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from attrs import Factory, frozen
from msgspec import UNSET

from pkgrepo.client.api import Client, at
from pkgrepo.client.apply.definitions import HIDDEN, Definition, Difference, differences, read_definitions
from pkgrepo.client.apply.rights import Change, plan_rights, surplus_rights
from pkgrepo.client.apply.upkeep import plan_upkeep, surplus_upkeep
from pkgrepo.client.session import Session, remote
from pkgrepo.client.terminal import printable
from pkgrepo.display import plural, size
from pkgrepo.errors import Conflict, Invalid, PkgrepoError

FIELDS = ("visibility", "description", "active", "quota")


@frozen
class Plan:
    """
    What has to be done for one repository.

    ``fields`` and ``config`` are the new values of what changes, with ``unchanged``, see L{Response}, of the
    configuration that was compared. ``creates``: the repository does not exist.
    """

    definition: Definition
    creates: bool
    found: list[Difference]
    fields: dict[str, Any]
    config: dict[str, Any] | None
    unchanged: Mapping[str, str] = Factory(dict)

    @property
    def title(self) -> str:
        """What it is about."""
        return self.definition.path

    @property
    def verb(self) -> str:
        """What is done, in a word."""
        return "create" if self.creates else "change" if self.found else "unchanged"

    def __str__(self) -> str:
        return f"{self.title}: {self.verb}"

    def to_json(self, *, dry_run: bool) -> dict[str, Any]:
        """The plan for programs; ``dry_run`` tells that nothing was done."""
        found = {each.pointer: each.to_json() for each in self.found}
        return {"repository": self.definition.path, "action": self.verb, "dry_run": dry_run, "differences": found}


@frozen
class Surplus:
    """A repository of the server that the file does not name."""

    path: str
    packages: int
    size: int
    found: Sequence[Difference] = ()
    verb: str = "delete"

    @property
    def title(self) -> str:
        """What it is about."""
        return self.path

    def __str__(self) -> str:
        return f"{self.title}: {self.verb}, with {plural(self.packages, 'package')} ({size(self.size)})"

    def to_json(self, *, dry_run: bool) -> dict[str, Any]:
        """It for programs; ``dry_run`` tells that nothing was done."""
        return {"repository": self.path, "action": self.verb, "dry_run": dry_run, "packages": self.packages}


Step = Plan | Change | Surplus


@click.command("apply")
@click.option("--file", "-f", "path", required=True, type=click.Path(path_type=Path), help="TOML or JSON; - is stdin.")
@click.option("--dry-run", is_flag=True, help="Print the differences, and change nothing.")
@click.option("--prune", is_flag=True, help="Delete what the file does not name, in the storages that it names.")
@click.option("--yes", is_flag=True, help="Delete what --prune finds.")
@remote
async def apply(session: Session, path: Path, *, dry_run: bool, prune: bool, yes: bool) -> None:
    """
    Create and change repositories, groups, rights, projects, quotas, retention, webhooks and pins as a file has them.

    The file has a table [[repositories]] for each, with name, format, storage ("main"), visibility, description,
    active, quota (bytes) and config, as in the API. What a table does not have is left as it is, but a config replaces
    the whole configuration. Repositories that the file does not name are left alone. With --prune and --yes they are
    deleted, and they go to the trash.

    [[groups]] have name, description, members (user names) and grants; [[users]], who must exist, have username, grants
    and default_actions; [[projects]] have key, name, description, visibility, quota, members (user or group, and role)
    and bindings (repository and pattern). A grant has repository ("main/py", or a pattern: "main/*") and actions. Each
    list replaces the whole list. With --prune and --yes, groups and projects that the file does not name are deleted,
    if it has any.

    [[quotas]] have place (as in "pkgrepo quota set"), bytes, packages, versions and file_size; [retention] has the
    rules of the server, those of repositories are in their config; [[webhooks]] have name, url, events, and repository
    or project, if they are not of the server; [[pins]] have repository, package, version and reason. With --prune and
    --yes, those that the file does not name are deleted, if it has any: webhooks and pins in the places that it names.

    All is compared and checked first. If the server refuses a change nevertheless, the command ends there, and says
    what is done; so it does if somebody else changes a config, grants or retention meanwhile, which are not replaced.
    """
    # All are compared before the first is changed, so that a mistake in the file changes nothing.
    given = read_definitions(path)
    plans = await plan_repositories(session.client, given.repositories)
    changes = await plan_rights(session.client, given)
    changes += await plan_upkeep(session.client, given)
    surplus = await find_surplus(session.client, given.repositories) if prune else []
    removals = await surplus_rights(session.client, given) if prune else []
    removals += await surplus_upkeep(session.client, given) if prune else []
    if (surplus or removals) and not yes and not dry_run:
        names = [*(each.path for each in surplus), *(f"{each.kind} {each.name}" for each in removals)]
        raise Invalid(f"--prune deletes {', '.join(names)}: add --yes if that is meant")
    steps: list[Step] = [*plans, *changes, *removals, *surplus]
    if not dry_run:
        await _carry_out(session, steps)
    elif not session.printer.as_json:
        for each in steps:
            _print(session, each)
    if session.printer.as_json:
        session.printer.json([each.to_json(dry_run=dry_run) for each in steps])
        return
    done: list[Plan | Change] = [*plans, *changes]
    counts = [sum(each.verb == verb for each in done) for verb in ("create", "change", "unchanged")]
    tense = ("to create", "to change") if dry_run else ("created", "changed")
    gone = len(removals) + len(surplus)
    deleted = f", {gone} {'to delete' if dry_run else 'deleted'}" if prune else ""
    session.printer.line(f"{counts[0]} {tense[0]}, {counts[1]} {tense[1]}, {counts[2]} unchanged{deleted}")


async def plan_repositories(client: Client, definitions: Sequence[Definition]) -> list[Plan]:
    """
    Compare the definitions with the server, in the order in which they can be carried out.

    :raises Conflict: a repository has another format or type; :raises Invalid: a definition has something that the
        server does not know, such as a member that is neither on the server nor before it in the file
    """
    formats = await client.get("repository", "types")
    plans: list[Plan] = []
    for each in definitions:
        names = next(([one["name"], *one["aliases"]] for one in formats if _is_called(one, each.format)), [])
        if not names:
            known = ", ".join(one["name"] for one in formats)
            raise Invalid(f"there is no format {each.format!r}, which {each.path} has; there are {known}")
        plan = await _plan(client, each, names)
        if any(one.pointer.startswith("/config") for one in plan.found):
            await _check_members(client, each, {one.title.casefold() for one in plans})
        plans.append(plan)
    return plans


def _is_called(format_: Mapping[str, Any], name: str) -> bool:
    return name.casefold() in (format_["name"], *format_["aliases"])


async def _check_members(client: Client, definition: Definition, made: Container[str]) -> None:
    """:raises Invalid: a member of a virtual repository is neither on the server nor among those that are ``made``"""
    members = definition.config.get("members") if definition.config and definition.type == "Virtual" else None
    for each in members if isinstance(members, list) else ():
        if isinstance(each, str) and each.casefold() not in made and await client.find("repository", each) is None:
            raise Invalid(
                f"there is no repository {each!r}, on the server or before {definition.path} in the file, which has it "
                "as a member"
            )


async def _plan(client: Client, definition: Definition, formats: Sequence[str]) -> Plan:
    """Compare a definition with the server; ``formats`` are the names of its format. It raises what is said above."""
    given = {name: value for name in FIELDS if (value := getattr(definition, name)) is not UNSET}
    record = await client.find("repository", definition.path)
    if record is None:
        storage = await client.find("storage", definition.storage)
        if storage is None:
            raise Invalid(f"there is no storage {definition.storage!r}, which {definition.path} is to be in")
        if not storage["active"]:
            raise Conflict(f"storage {definition.storage!r} is switched off")
        wanted = await _normalised(client, definition)
        shown = {"format": definition.format, **given, **({} if wanted is None else {"config": wanted})}
        return Plan(definition, True, differences({}, shown), given, _config(definition))
    if record["format"] not in formats:
        raise Conflict(f"{definition.path} has the format {record['format']}, not {definition.format}")
    if definition.config is not UNSET and definition.type != record["type"]:
        raise Conflict(f"{definition.path} is of the type {record['type']}, which cannot be changed")
    found = differences({name: record[name] for name in given}, given)
    fields = {name: value for name, value in given.items() if record[name] != value}
    wanted = await _normalised(client, definition)
    if wanted is None:
        return Plan(definition, False, found, fields, None)
    reply = await client.call("GET", at("repository", definition.path, "config"))
    changed = differences(reply.value, wanted, "/config")
    config = _config(definition) if changed else None
    return Plan(definition, False, [*found, *changed], fields, config, reply.unchanged)


async def _normalised(client: Client, definition: Definition) -> dict[str, Any] | None:
    """
    The configuration with all defaults, as the server stores it; None if the definition has none.

    :raises Invalid: the server would refuse it
    """
    config = _config(definition)
    if config is None:
        return None
    found = await client.change("POST", "repository", "config", definition.format, "validate", body=config)
    if not found["valid"]:
        faults = "; ".join(f"{each['pointer'] or '/'}: {each['message']}" for each in found["errors"])
        raise Invalid(f"the configuration of {definition.path} is not valid: {faults}")
    normalised: dict[str, Any] = _with_secrets(found["config"], config)
    return normalised


async def _carry_out(session: Session, steps: Sequence[Step]) -> None:
    """Make the changes, and print each when it is made. If one fails, what was done until then is said."""
    for number, step in enumerate(steps):
        try:
            if isinstance(step, Plan):
                session.printer.warnings(await _configure(session.client, step))
            elif isinstance(step, Change):
                await step.carry_out()
            else:  # it goes to the trash
                await session.client.change("DELETE", "repository", step.path, confirm=step.path)
        except PkgrepoError:
            _tell_done(session, steps, number)
            raise
        if not session.printer.as_json:
            _print(session, step)


def _tell_done(session: Session, steps: Sequence[Step], failed: int) -> None:
    """Say which steps were done before the one at the index ``failed``."""
    if session.printer.as_json:
        session.printer.json([each.to_json(dry_run=False) for each in steps[:failed]])
    done, every = [[each.title for each in some if each.verb != "unchanged"] for some in (steps[:failed], steps)]
    names = f": {', '.join(done)}" if done else ""
    click.echo(
        printable(f"{len(done)} of {len(every)} done{names}; not, or not wholly: {steps[failed].title}"), err=True
    )


async def _configure(client: Client, plan: Plan) -> Any:
    """Make the changes of a repository. Returns an answer with the warnings about the repository, if there was one."""
    definition, answered = plan.definition, None
    if plan.creates:
        body = {"name": definition.name, "storage": definition.storage, "format": definition.format, **plan.fields}
        if plan.config is not None:
            body["config"] = plan.config
        quota = body.pop("quota", None)
        made = await client.change("POST", "repository", body=body)
        if quota is not None:
            await client.change("PATCH", "repository", definition.path, body={"quota": quota})
        return made
    if plan.config is not None:
        place = at("repository", definition.path, "config")
        reply = await client.call("PUT", place, value=plan.config, headers=plan.unchanged)
        answered = reply.value
    if plan.fields:
        answered = await client.change("PATCH", "repository", definition.path, body=plan.fields)
    return answered


def _config(definition: Definition) -> dict[str, Any] | None:
    return None if definition.config is UNSET else definition.config


def _with_secrets(normalised: Any, given: Any) -> Any:
    """The normalised value, in which secrets are those that were given instead of ``***``, so that they differ."""
    if isinstance(normalised, dict) and isinstance(given, dict):
        return {key: _with_secrets(value, given.get(key)) for key, value in normalised.items()}
    if isinstance(normalised, list) and isinstance(given, list) and len(normalised) == len(given):
        return [_with_secrets(*pair) for pair in zip(normalised, given, strict=True)]
    return given if normalised == HIDDEN and isinstance(given, str) else normalised


def _print(session: Session, step: Step) -> None:
    printer = session.printer
    click.echo(printer.bold(printable(str(step))))
    for line in _lines(step.found):
        colour = {"-": "red", "+": "green"}.get(line[2]) if printer.coloured else None
        click.echo(click.style(line, fg=colour) if colour else line)


def _lines(found: Sequence[Difference]) -> list[str]:
    return [line for each in found for line in each.lines()]


async def find_surplus(client: Client, definitions: Sequence[Definition]) -> list[Surplus]:
    """
    The repositories that the file does not name, in the storages that it names; virtual ones first.

    Those of other storages are none of its business, and companions go with the repository that they belong to.
    """
    storages = {each.storage.casefold() for each in definitions}
    named = {each.path.casefold() for each in definitions}
    found = [
        each
        for each in await client.all_items("repository", include_usage=True)
        if each["storage_name"].casefold() in storages and "/" not in each["name"]
    ]
    found.sort(key=lambda each: each["type"] != "Virtual")  # which may have others as members
    every = [
        Surplus(f"{each['storage_name']}/{each['name']}", each["package_count"] or 0, each["usage_bytes"] or 0)
        for each in found
    ]
    return [each for each in every if each.path.casefold() not in named]
