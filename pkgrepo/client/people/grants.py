"""Grants in repositories of users and of groups: the commands that set and remove them."""

from __future__ import annotations

from collections.abc import Sequence

import click

from pkgrepo.client.printer import Column
from pkgrepo.client.session import Session, remote


def add_grant_commands(
    group: click.Group, place: tuple[str, str], columns: Sequence[Column], grant_help: str, revoke_help: str
) -> None:
    """
    Add the commands ``grant`` and ``revoke``, which print the grants that are there afterwards.

    ``place`` is where the users or groups are in the API, and what help calls the name of one.
    """
    kind, metavar = place
    name_of = click.argument("name", metavar=metavar)
    repository_of = click.argument("repository", metavar="STORAGE/REPOSITORY")

    @group.command("grant", help=grant_help)
    @name_of
    @repository_of
    @click.argument("actions", nargs=-1, required=True)
    @remote
    async def grant(session: Session, name: str, repository: str, actions: tuple[str, ...]) -> None:
        body = {"actions": [] if actions == ("none",) else list(actions)}
        changed = await session.client.change("PUT", kind, name, "permissions", repository, body=body)
        session.printer.table(columns, changed["repositories"], f"{name} has no grants")

    @group.command("revoke", help=revoke_help)
    @name_of
    @repository_of
    @remote
    async def revoke(session: Session, name: str, repository: str) -> None:
        changed = await session.client.change("DELETE", kind, name, "permissions", repository)
        session.printer.table(columns, changed["repositories"], f"{name} has no grants")
