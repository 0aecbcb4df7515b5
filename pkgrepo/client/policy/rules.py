"""Commands on what is served: blocks, rules, and versions in quarantine."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import click

from pkgrepo.client.printer import Column, aged
from pkgrepo.client.session import Session, remote
from pkgrepo.errors import Invalid

SERVER = "server"
BLOCKS = (
    Column("ID", "id"),
    Column("REPOSITORY", "repository"),
    Column("PACKAGE", lambda each: each["package"] or ", ".join(each["digests"])),
    Column("VERSIONS", lambda each: each["versions"] or "all"),
    Column("REFUSED", "count", right=True),
    Column("BY", "by"),
    Column("SINCE", aged("created_at")),
    Column("REASON", "reason"),
)
QUARANTINED = (
    Column("ID", "id"),
    Column("REPOSITORY", "repository"),
    Column("PACKAGE", "package"),
    Column("VERSION", "version"),
    Column("RULE", "rule"),
    Column("STATE", "state"),
    Column("SINCE", aged("since")),
    Column("REASON", lambda each: each["comment"] or each["reason"]),
)


@click.command("block")
@click.argument("repository")
@click.argument("package", required=False, default="", metavar="[PACKAGE[@VERSIONS]]")
@click.option("--versions", default="", help="A range in the order of the format, a version or a pattern.")
@click.option("--digest", "digests", multiple=True, help="A digest, such as sha256:...; may be repeated.")
@click.option("--reason", default="", help="Why, for those who are refused.")
@click.option("--until", default="", metavar="TIME", help="When it ends by itself, such as 2026-12-31T00:00:00Z.")
@remote
async def block(
    session: Session, repository: str, package: str, versions: str, digests: tuple[str, ...], reason: str, until: str
) -> None:
    """
    Block a package, versions of it, or digests at once, as in "block main/mirror left-pad@1.3.1".

    REPOSITORY is a path, or for system managers a pattern such as "main/*".
    """
    body = {
        "repository": repository,
        "package": package,
        "versions": versions,
        "digests": list(digests),
        "reason": reason,
        "until": until or None,
    }
    made = await session.client.change("POST", "policy", "blocks", body=body)
    what = " ".join(filter(None, (made["package"], made["versions"], *made["digests"])))
    about = f"{made['stored']} stored versions"
    if made["known"] is not None:
        about += f" and {made['known']} that upstreams list"
    session.printer.done(
        f"{what} is blocked in {made['repository']}, which is about {about}; the id of the block is {made['id']}", made
    )
    if made["warning"]:
        session.printer.note(made["warning"])


@click.command("unblock")
@click.argument("id")
@remote
async def unblock(session: Session, id: str) -> None:
    """Remove a block: what it refused is served again at once."""
    await session.client.change("DELETE", "policy", "blocks", id)
    session.printer.done(f"block {id} is removed", None)


@click.command("blocks", short_help="List the blocks, and what they have refused")
@remote
async def list_blocks(session: Session) -> None:
    """List the blocks, with what they refused in the last 30 days."""
    session.printer.table(BLOCKS, await session.client.get("policy", "blocks"), "nothing is blocked")


@click.group("rules")
def rules() -> None:
    """Rules about what is served, of a repository or of the server."""


@rules.command("show")
@click.argument("place", metavar="REPOSITORY|server")
@remote
async def show_rules(session: Session, place: str) -> None:
    """Show the rules of a repository, or those for all repositories, as JSON."""
    if place == SERVER:
        found = (await session.client.get("policy", "rules"))["rules"]
    else:
        found = (await session.client.get("repository", place, "config", "policy") or {}).get("rules", [])
    session.printer.json({"rules": found})


@rules.command("set")
@click.argument("place", metavar="REPOSITORY|server")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@remote
async def set_rules(session: Session, place: str, file: Path) -> None:
    """
    Set the rules of a repository, or those for all repositories: those in FILE (JSON or TOML, - for standard input).

    "pkgrepo rehearse" tells before what they would have refused.
    """
    value = {"rules": _read(file)}
    path = ("policy", "rules") if place == SERVER else ("repository", place, "config", "policy")
    stored = await session.client.change("PUT" if place == SERVER else "PATCH", *path, body=value)
    session.printer.done(f"{len(value['rules'])} rules hold for {place}", stored)


@rules.command("counts")
@remote
async def show_counts(session: Session) -> None:
    """Show how often each rule matched what was asked for in the last 30 days."""
    columns = [
        Column("REPOSITORY", "repository"),
        Column("RULE", "rule"),
        Column("ACTION", "action"),
        Column("COUNT", "count", right=True),
    ]
    session.printer.table(columns, await session.client.get("policy", "counts"), "there are no rules")


@click.group("quarantine")
def quarantine() -> None:
    """Versions that a rule holds back until they are approved."""


@quarantine.command("list")
@click.option(
    "--state", type=click.Choice(["waiting", "approved", "denied", "all"]), default="waiting", show_default=True
)
@remote
async def list_quarantine(session: Session, state: str) -> None:
    """List the versions in quarantine, the newest first."""
    found = await session.client.all_items("policy", "quarantine", state=state)
    session.printer.table(QUARANTINED, found, "nothing is in quarantine")


@quarantine.command("approve")
@click.argument("id")
@click.option("--reason", default="", help="Why it is served.")
@remote
async def approve(session: Session, id: str, reason: str) -> None:
    """Approve a version: rules with the action quarantine let it pass."""
    await _decide(session, id, "approve", reason)


@quarantine.command("deny")
@click.argument("id")
@click.option("--reason", default="", help="Why it is not served.")
@remote
async def deny(session: Session, id: str, reason: str) -> None:
    """Deny a version: it stays refused, also without the rule."""
    await _decide(session, id, "deny", reason)


async def _decide(session: Session, id: str, decision: str, reason: str) -> None:
    found = await session.client.change("POST", "policy", "quarantine", id, decision, body={"reason": reason})
    session.printer.done(f"{found['package']} {found['version']} of {found['repository']} is {found['state']}", found)


def _read(file: Path) -> list[Any]:
    """The rules in a file: a list, or an object with one. :raises Invalid: it has none"""
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text("utf-8")
        value = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    except (OSError, ValueError) as error:
        raise Invalid(f"{file}: {error}") from None
    found = value.get("rules") if isinstance(value, dict) else value
    if not isinstance(found, list):
        raise Invalid(f"{file}: rules are a list, or an object with rules")
    return found
