"""Create, change and delete repositories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pkgrepo.commands.remote.client import at
from pkgrepo.commands.remote.session import Session, confirmed, remote
from pkgrepo.errors import Invalid
from pkgrepo.web.rendering.filters import plural, size

from .definitions import read_value, with_assignments
from .reading import path_of

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


@click.command("create")
@click.argument("path", metavar="STORAGE/REPOSITORY")
@click.option("--format", "format_", required=True, help="python, npm, maven, ruby, conda or docker.")
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
        changed = await session.client.call(
            "PUT", place, value=config, headers={"If-Match": current.headers.get("etag", "*")}
        )
        session.printer.warnings(changed.value)
    if fields:
        await session.client.change("PATCH", "repository", path, body=fields)
    session.printer.done(f"changed {path}", await session.client.get("repository", path))


@click.command("delete")
@click.argument("path", metavar="STORAGE/REPOSITORY")
@click.option("--purge", is_flag=True, help="Remove the content at once, and not after seven days.")
@click.option("--dry-run", is_flag=True, help="Print what would be deleted.")
@confirmed("Delete {path} with all its packages?")
@remote
async def delete_repository(session: Session, path: str, *, purge: bool, dry_run: bool) -> None:
    """Delete a repository with its packages."""
    query: dict[str, Any] = {"dry_run": True} if dry_run else {"confirm": path}
    gone = await session.client.change("DELETE", "repository", path, purge=purge, **query)
    what = f"{gone['path']} with {plural(gone['package_count'], 'package')} ({size(gone['usage_bytes'])})"
    later = "" if purge else "; its content is kept for seven days"
    session.printer.done(f"would delete {what}" if dry_run else f"deleted {what}{later}", gone)


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
