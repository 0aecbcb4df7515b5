"""Commands on what is served: blocks, rules, and versions in quarantine."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import click

from pkgrepo.client.generated import add_operations
from pkgrepo.client.session import Session, remote
from pkgrepo.errors import Invalid

SERVER = "server"


@click.group("rules")
def rules() -> None:
    """Rules about what is served, of a repository or of the server."""


add_operations(rules, "rules")


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


@rules.command("suggest")
@click.option("--format", "format_", default="", metavar="FORMAT", help="For repositories of this format.")
@click.option("--exempt", multiple=True, metavar="PATTERN", help="Names that are served from the first minute.")
@click.option("--write", "file", type=click.Path(path_type=Path), metavar="FILE", help="Write them to a new file.")
@remote
async def suggest_rules(session: Session, format_: str, exempt: tuple[str, ...], file: Path | None) -> None:
    """
    Show rules to begin with, as JSON that "pkgrepo rules set" takes.

    Without --format they are for all repositories, and do not ask for the age. "pkgrepo drill --rules FILE" tells what
    they would have done in published incidents.
    """
    found = await session.client.get("policy", "suggested", format=format_, exempt=" ".join(exempt))
    if file is None:
        session.printer.json(found)
        return
    try:
        with file.open("x", encoding="utf-8") as target:
            target.write(json.dumps(found, indent=2) + "\n")
    except OSError as error:
        raise Invalid(f"{file}: {error.strerror}") from None
    session.printer.done(f"{len(found['rules'])} rules are in {file}", found)


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
