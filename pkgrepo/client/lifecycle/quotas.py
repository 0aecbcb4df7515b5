"""``pkgrepo quota``: what the server, storages, repositories, projects and users may hold."""

from __future__ import annotations

from typing import Any

import click

from pkgrepo.client.printer import Column
from pkgrepo.client.session import Session, remote
from pkgrepo.display import number, size
from pkgrepo.errors import Invalid
from pkgrepo.untrusted.text import bytes_of

SIZES = ("bytes", "file_size")
LIMITS = ("bytes", "packages", "versions", "file_size")
OWNERS = {"project": "project", "user": "users"}  # the places that are written with their kind, and their paths


def place_of(record: dict[str, Any]) -> str:
    """The place of a quota as people write it."""
    name = record["name"] or "server"
    return f"{record['kind']}:{name}" if record["kind"] in OWNERS else name


def _used(what: str) -> Any:
    show = size if what in SIZES else number

    def column(record: dict[str, Any]) -> str:
        limit = record["limits"][what]
        return show(record["usage"][what]) + ("" if limit is None else f" of {show(limit)}")

    return column


COLUMNS = (
    Column("PLACE", place_of),
    Column("BYTES", _used("bytes")),
    Column("PACKAGES", _used("packages")),
    Column("VERSIONS", _used("versions")),
    Column("LARGEST FILE", lambda each: "" if (most := each["limits"]["file_size"]) is None else size(most)),
    Column("NEARLY USED", "nearly_used"),
)


@click.group()
def quota() -> None:
    """Quotas: what the server, storages, repositories, projects and users may hold."""


@quota.command("list")
@remote
async def list_quotas(session: Session) -> None:
    """List the quotas of the server and of all storages, and of all else that has one."""
    session.printer.table(COLUMNS, await session.client.get("system", "quotas"), "there are none")


@quota.command("show")
@click.argument("place")
@remote
async def show_quota(session: Session, place: str) -> None:
    """Show the quota of PLACE: storage/repository, a storage, "project:KEY", "user:NAME", or "server"."""
    _show(session, await session.client.get(*path_of(place)))


@quota.command("set")
@click.argument("place")
@click.option("--bytes", "bytes_", metavar="SIZE", help="Of all content, such as 10GiB.")
@click.option("--packages", metavar="NUMBER", help="Packages or images.")
@click.option("--versions", metavar="NUMBER", help="Versions, of images manifests.")
@click.option("--file-size", metavar="SIZE", help="Of a single file.")
@remote
async def set_quota(
    session: Session, place: str, bytes_: str | None, packages: str | None, versions: str | None, file_size: str | None
) -> None:
    """
    Set limits of PLACE: storage/repository, a storage, "project:KEY", "user:NAME", or "server". "none" removes a limit.

    What is stored already stays, also if it is more than that.
    """
    given = {"bytes": bytes_, "packages": packages, "versions": versions, "file_size": file_size}
    body = {name: parse_limit(name, text) for name, text in given.items() if text is not None}
    if not body:
        raise Invalid("say what to limit: see --help")
    _show(session, await session.client.change("PATCH", *path_of(place), body=body))


def path_of(place: str) -> tuple[str, ...]:
    """Where the quota of a place is in the API."""
    if place == "server":
        return ("system", "quota")
    kind, colon, name = place.partition(":")
    if colon and kind in OWNERS:
        return (OWNERS[kind], name, "quota")
    return ("repository" if "/" in place else "storage", place, "quota")


def parse_limit(name: str, text: str) -> int | None:
    """A limit as people write it, None for "none". :raises Invalid: it is no number, and no size"""
    if text == "none":
        return None
    found = bytes_of(text) if name in SIZES else int(text) if text.isascii() and text.isdigit() else None
    if found is None or found != int(found):
        raise Invalid(f"--{name.replace('_', '-')} takes a number or none, not {text!r}")
    return int(found)


def _show(session: Session, record: dict[str, Any]) -> None:
    rows = [(each, _used(each)(record)) for each in ("bytes", "packages", "versions")]
    largest = record["limits"]["file_size"]
    session.printer.record(
        record,
        [
            ("place", place_of(record)),
            *rows,
            ("largest file", "" if largest is None else size(largest)),
            ("nearly used", ", ".join(record["nearly_used"])),
        ],
    )
