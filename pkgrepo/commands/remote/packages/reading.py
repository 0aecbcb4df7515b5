"""List and show packages and versions."""

from __future__ import annotations

from typing import Any

import click

from pkgrepo.commands.remote.printer import Column, aged, moment, sized
from pkgrepo.commands.remote.session import Session, remote
from pkgrepo.web.rendering.filters import size

PACKAGES = (
    Column("PACKAGE", "name"),
    Column("LATEST", "latest"),
    Column("VERSIONS", "versions", right=True),
    Column("SIZE", sized("size"), right=True),
    Column("DOWNLOADS", "downloads", right=True),
    Column("CHANGED", aged("updated_at")),
    Column("FROM", lambda each: each["route"] or "here"),
)
VERSIONS = (
    Column("VERSION", "version"),
    Column("STATE", lambda each: f"{each['state']}: {each['reason']}" if each["reason"] else each["state"]),
    Column("FILES", "files", right=True),
    Column("SIZE", sized("size"), right=True),
    Column("PUBLISHED", aged("published_at")),
    Column("BY", "publisher"),
)
MOST = click.option("--limit", type=click.IntRange(min=1), help="At most so many.")


@click.command("list")
@click.argument("repository")
@click.option("-q", "--query", default="", help="Only packages whose name contains this text.")
@MOST
@remote
async def list_packages(session: Session, repository: str, query: str, limit: int | None) -> None:
    """List the packages of a repository."""
    found = await session.client.all_items("repository", repository, "packages", most=limit, q=query)
    session.printer.table(PACKAGES, found, "there are no such packages")


@click.command("show")
@click.argument("repository")
@click.argument("name")
@click.argument("version", required=False)
@remote
async def show_package(session: Session, repository: str, name: str, version: str | None) -> None:
    """Show a package, or one of its versions with its files."""
    if version is not None:
        _show_version(session, await session.client.get("package", repository, name, "versions", version))
        return
    record = await session.client.get("package", repository, name)
    flags = [f"{count} {flag}" for flag, count in record["flags"].items() if count]
    session.printer.record(
        record,
        [
            ("package", record["name"]),
            ("latest", record["latest"]),
            ("versions", f"{record['versions']}{' (' + ', '.join(flags) + ')' if flags else ''}"),
            ("files", record["files"]),
            ("size", size(record["size"])),
            ("downloads", record["downloads"]),
            ("source", record["source"]),
            ("route", record["route"]),
            ("created", moment(record["created_at"])),
            ("changed", moment(record["updated_at"])),
        ],
    )


@click.command("versions")
@click.argument("repository")
@click.argument("name")
@MOST
@remote
async def list_versions(session: Session, repository: str, name: str, limit: int | None) -> None:
    """List the versions of a package, the highest first; of an image its tags, the newest first."""
    found = await session.client.all_items("package", repository, name, "versions", most=limit)
    session.printer.table(VERSIONS, found, "there are no versions")


def _show_version(session: Session, record: Any) -> None:
    files = [f"{each['name']} ({size(each['size'])})\n  {_digest(each['digests'])}" for each in record["files"]]
    session.printer.record(
        record,
        [
            ("package", record["package"]),
            ("version", record["version"]),
            ("state", record["state"]),
            ("reason", record["reason"]),
            ("published", moment(record["published_at"])),
            ("by", record["publisher"]),
            ("digest", record["digest"]),
            ("licence", record["license"]),
            ("keywords", record["keywords"] or None),
            ("tags", record["tags"] or None),
            ("links", "\n".join(f"{label}: {url}" for label, url in record["links"].items())),
            ("dependencies", "\n".join(record["dependencies"])),
            ("files", "\n".join(files)),
        ],
    )


def _digest(digests: dict[str, str]) -> str:
    name = "sha256" if "sha256" in digests else next(iter(digests), "")
    return f"{name}:{digests[name]}" if name else ""
