"""``pkgrepo host``: host names and path prefixes that stand for repositories."""

from __future__ import annotations

from typing import Any

import click

from pkgrepo.client.printer import Column
from pkgrepo.client.session import Session, remote

COLUMNS = (Column("NAME", "name"), Column("REPOSITORY", "repository"), Column("SET BY", "source"))


@click.group()
def host() -> None:
    """Host names, and path prefixes of other servers, that stand for repositories."""


@host.command("list")
@remote
async def list_hosts(session: Session) -> None:
    """List the names, each with its repository."""
    found = await session.client.get("system", "hosts")
    session.printer.table(COLUMNS, _rows(found), "there are none")


@host.command("set")
@click.argument("name")
@click.argument("repository")
@remote
async def set_host(session: Session, name: str, repository: str) -> None:
    """
    Let NAME stand for REPOSITORY (storage/name).

    NAME is a host such as npm.corp.example, also with a port, or a path prefix such as /repository/npm-all/ or, for
    images, /v2/docker-all/.
    """
    await session.client.change("PATCH", "system", "hosts", body={_kind(name): {name: repository}})
    session.printer.done(f"{name} stands for {repository}")


@host.command("remove")
@click.argument("name")
@remote
async def remove_host(session: Session, name: str) -> None:
    """Remove NAME, at which nothing of a repository is then."""
    await session.client.change("PATCH", "system", "hosts", body={_kind(name): {name: None}})
    session.printer.done(f"{name} stands for no repository")


def _kind(name: str) -> str:
    return "aliases" if name.startswith("/") else "hosts"


def _rows(found: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for source, tables in (("API", found), ("file", found["configured"])):
        for kind in ("hosts", "aliases"):
            for name, path in tables[kind].items():
                shown = f"{path} (there is none)" if name in found["missing"] else path
                rows.append({"name": name, "repository": shown, "source": source})
    return sorted(rows, key=lambda row: row["name"])
