"""``pkgrepo repo``: list, show, create, change and delete repositories, and their jobs, which are waited for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pkgrepo.client.api import at
from pkgrepo.client.apply.definitions import read_value, with_assignments
from pkgrepo.client.http import Failed
from pkgrepo.client.printer import Printer, time_with_age
from pkgrepo.client.session import Session, confirmed, remote
from pkgrepo.display import plural, size
from pkgrepo.errors import Invalid

CONFIG = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    help="The whole configuration: JSON or TOML, - is stdin.",
)
TYPES = click.Choice(["Hosted", "Proxy", "Virtual"], case_sensitive=False)
SET = click.option(
    "--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Set a value of the configuration, a.b=JSON."
)


def path_of(record: dict[str, str]) -> str:
    """The path of a repository, from its record."""
    return f"{record['storage_name']}/{record['name']}"


@click.command("show")
@click.argument("path", metavar="STORAGE/REPOSITORY")
@remote
async def show_repository(session: Session, path: str) -> None:
    """Show a repository, and its configuration if you may change it."""
    record = await session.client.get("repository", path)
    try:
        config = await session.client.get("repository", path, "config")
    except Failed as error:
        if error.status not in (401, 403):
            raise
        config = None
    session.printer.warnings(record)
    session.printer.record(
        {**record, "config": config},
        [
            ("repository", path_of(record)),
            ("id", record["id"]),
            ("address", record["url"]),
            ("format", record["format"]),
            ("type", record["type"]),
            ("visibility", record["visibility"]),
            ("active", record["active"]),
            ("description", record["description"]),
            ("packages", record["package_count"]),
            ("size", size(record["usage_bytes"])),
            ("created", time_with_age(record["created_at"])),
            ("changed", time_with_age(record["updated_at"])),
            ("configuration", config),
        ],
    )


@click.command("create")
@click.argument("path", metavar="STORAGE/REPOSITORY")
@click.option(
    "--format",
    "format_",
    required=True,
    help="Its format, such as npm or docker; an unknown one is answered with the list.",
)
@click.option("--upstream", multiple=True, metavar="URL", help="Make a proxy of this address; repeat for more routes.")
@click.option("--member", multiple=True, metavar="STORAGE/REPOSITORY", help="Make a virtual repository of members.")
@click.option(
    "--publish-to", default="", metavar="STORAGE/REPOSITORY", help="The member that packages are published to."
)
@click.option("--type", "type_", type=TYPES, help="Hosted unless --upstream, --member or --config say otherwise.")
@click.option("--visibility", default="private", show_default=True, help="public, private or hidden.")
@click.option("--description", default="", help="A text for people.")
@CONFIG
@SET
@remote
async def create_repository(
    session: Session,
    path: str,
    format_: str,
    upstream: tuple[str, ...],
    member: tuple[str, ...],
    publish_to: str,
    type_: str | None,
    visibility: str,
    description: str,
    config_file: Path | None,
    assignments: tuple[str, ...],
) -> None:
    """Create a repository: a hosted one, a proxy of upstreams, or a virtual one of members."""
    storage, name = split_path(path)
    config = _new_config(upstream, member, publish_to, config_file, assignments)
    if type_ is not None and config.setdefault("type", type_) != type_:
        if upstream or member or config_file is not None or config["type"] != "Hosted":
            raise Invalid(f"--type {type_} contradicts the configuration, which is of the type {config['type']}")
        config["type"] = type_
    body = {
        "name": name,
        "storage": storage,
        "format": format_,
        "visibility": visibility,
        "description": description,
        "config": config,
    }
    record = await session.client.change("POST", "repository", body=body)
    session.printer.warnings(record)
    session.printer.done(f"created {path_of(record)} at {record['url']}", record)


@click.command("edit")
@click.argument("path", metavar="STORAGE/REPOSITORY")
@click.option("--visibility", help="public, private or hidden.")
@click.option("--description", help="A text for people.")
@click.option("--active/--inactive", default=None, help="Whether the repository is served.")
@CONFIG
@SET
@remote
async def edit_repository(
    session: Session,
    path: str,
    visibility: str | None,
    description: str | None,
    *,
    active: bool | None,
    config_file: Path | None,
    assignments: tuple[str, ...],
) -> None:
    """Change a repository, and values of its configuration."""
    given = {"visibility": visibility, "description": description, "active": active}
    fields = {key: value for key, value in given.items() if value is not None}
    if not fields and config_file is None and not assignments:
        raise Invalid("say what to change: see --help")
    if config_file is not None or assignments:
        place = at("repository", path, "config")
        current = await session.client.call("GET", place)
        whole = current.value if config_file is None else read_value(config_file)
        config = with_assignments(_object(whole), assignments)
        changed = await session.client.call("PUT", place, value=config, headers=current.unchanged)
        session.printer.warnings(changed.value)
    if fields:
        await session.client.change("PATCH", "repository", path, body=fields)
    session.printer.done(f"changed {path}", await session.client.get("repository", path))


def split_path(path: str) -> tuple[str, str]:
    """Storage and name. :raises Invalid: there is no slash between them"""
    storage, slash, name = path.partition("/")
    if not slash or not storage or not name or "/" in name:
        raise Invalid(f"a repository is written as STORAGE/REPOSITORY, not {path!r}")
    return storage, name


def _new_config(
    upstream: tuple[str, ...],
    member: tuple[str, ...],
    publish_to: str,
    config_file: Path | None,
    assignments: tuple[str, ...],
) -> dict[str, Any]:
    if sum((bool(upstream), bool(member), config_file is not None)) > 1:
        raise Invalid("--upstream, --member and --config exclude each other")
    config: dict[str, Any] = {"type": "Hosted"}
    if config_file is not None:
        config = _object(read_value(config_file))
    elif upstream:
        config = {"type": "Proxy", "proxy": {"routes": [{"url": each} for each in upstream]}}
    elif member:
        config = {"type": "Virtual", "members": list(member)}
    if publish_to:
        config["publish_to"] = publish_to
    return with_assignments(config, assignments)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Invalid("a configuration is an object")
    return value


@click.command("gc")
@click.argument("path", metavar="STORAGE/REPOSITORY")
@click.option("--dry-run", is_flag=True, help="Print what would be removed, and remove nothing.")
@click.option(
    "--grace", "grace_s", type=click.IntRange(min=0), metavar="SECONDS", help="Keep what was used within this."
)
@click.option("--delete-untagged", is_flag=True, help="Also remove manifests without a tag.")
@click.option(
    "--uploads-idle",
    "idle_s",
    type=click.IntRange(min=0, max=86400),
    metavar="SECONDS",
    help="Also remove unfinished uploads that were not used within this; a day without it.",
)
@remote
async def collect_garbage(
    session: Session, path: str, *, dry_run: bool, grace_s: int | None, delete_untagged: bool, idle_s: int | None
) -> None:
    """Let the server remove bytes of a repository that nothing refers to, and wait until it has."""
    body: dict[str, Any] = {"dry_run": dry_run, "delete_untagged": delete_untagged}
    if grace_s is not None:
        body["grace_seconds"] = grace_s
    if idle_s is not None:
        body["upload_idle_seconds"] = idle_s
    _show(session.printer, await session.run_job(body, "repository", path, "gc"))


@click.command("purge")
@click.argument("path", metavar="STORAGE/REPOSITORY")
@click.option("--package", help="Only what is kept of this package.")
@click.option("--pattern", help="Only packages whose names match, such as @team/*.")
@click.option("--older-than", metavar="AGE", help="Only what no upstream has confirmed for so long, such as 30d.")
@click.option("--documents-only", is_flag=True, help="Keep the files.")
@click.option("--dry-run", is_flag=True, help="Print what would be removed, and remove nothing.")
@confirmed("Remove what {path} keeps of its upstreams?")
@remote
async def purge_cache(session: Session, /, path: str, **given: Any) -> None:
    """Let a proxy repository forget what it keeps of its upstreams."""
    body = {key: value for key, value in given.items() if value}
    found = await session.run_job(body, "repository", path, "cache", "purge")
    verb = "would remove" if found["dry_run"] else "removed"
    session.printer.done(
        f"{verb} {plural(found['files'], 'file')} of {plural(found['packages'], 'package')} and "
        f"{plural(found['documents'], 'document')} ({size(found['freed_bytes'])})",
        found,
    )


@click.command("rebuild")
@click.argument("path", metavar="STORAGE/REPOSITORY")
@remote
async def rebuild(session: Session, path: str) -> None:
    """Let the server make the documents of all packages of a repository anew."""
    found = await session.run_job({}, "repository", path, "rebuild")
    session.printer.done(f"compared {plural(found['packages'], 'package')} and changed {found['changed']}", found)


@click.command("verify")
@click.argument("path", metavar="STORAGE/REPOSITORY")
@remote
async def verify(session: Session, path: str) -> None:
    """Let the server read every stored file of a repository and compare its digest, and wait until it has."""
    found = await session.run_job({}, "repository", path, "verify")
    session.printer.done(
        f"read {plural(found['blobs'], 'blob')} ({size(found['size_bytes'])}): {found['missing']} missing, "
        f"{found['damaged']} damaged",
        found,
    )
    for sentence in found["errors"]:
        session.printer.note(sentence)
    if found["errors"]:
        raise Failed(f"{plural(len(found['errors']), 'problem')} found")


def _show(printer: Printer, found: dict[str, Any]) -> None:
    verb = "would remove" if found["dry_run"] else "removed"
    removed, scanned = found["removed"], found["scanned"]
    printer.done(
        f"{verb} {removed['blobs']} of {scanned['blobs']} blobs ({size(found['freed_bytes'])}), "
        f"{removed['manifests']} of {scanned['manifests']} manifests and {removed['uploads']} unfinished uploads",
        found,
    )
    for sentence in dict.fromkeys((*(each["message"] for each in found["kept"]), *found["errors"])):
        printer.note(sentence)
