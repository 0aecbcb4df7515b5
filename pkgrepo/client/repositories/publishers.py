"""``pkgrepo publisher``: the pipelines that publish to a repository, or one package, without a stored token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from pkgrepo.client.generated import add_operations
from pkgrepo.client.printer import Column
from pkgrepo.client.session import Session, confirmed, remote
from pkgrepo.errors import Invalid

ACTIONS = click.Choice(["read", "stage", "write", "overwrite", "delete"])
PLACE = click.argument("place", metavar="STORAGE/REPOSITORY|project:KEY")
PACKAGE = click.argument("package", required=False, default="")


def _claims(record: Mapping[str, Any]) -> str:
    claims = {**record["claims"], "aud": record["audience"], "environment": record["environment"]}
    given = {**claims, **record["claims"]}  # a claim of this name comes before the field
    return " ".join(f"{name}={_text(value)}" for name, value in given.items() if value)


def _text(value: str | list[str]) -> str:
    return value if isinstance(value, str) else ",".join(value)


COLUMNS = (
    Column("ID", "id"),
    Column("ISSUER", "issuer"),
    Column("CLAIMS", _claims),
    Column("PACKAGES", lambda record: " ".join(record["packages"]) or "all"),
    Column("ACTIONS", lambda record: " ".join(record["actions"])),
)


@click.group()
def publisher() -> None:
    """Pipelines that publish with the identity tokens of their forge (trusted publishing)."""


add_operations(publisher, "publisher")


@publisher.command("list")
@PLACE
@PACKAGE
@remote
async def list_publishers(session: Session, place: str, package: str) -> None:
    """List the publishers of a repository or a project, or those that publish PACKAGE."""
    found = await session.client.get(*_place(place, package))
    session.printer.table(COLUMNS, found, "no pipelines publish here")
    for each in found:
        session.printer.warnings(each)


@publisher.command("add")
@PLACE
@PACKAGE
@click.option("--issuer", required=True, help="The name of an issuer in the settings (auth.issuers).")
@click.option(
    "--claim",
    "claims",
    multiple=True,
    metavar="NAME=PATTERN",
    help="What a claim must be, such as repository=acme/*; may be repeated. ** also matches slashes.",
)
@click.option("--source", default="", help="The repository or project, such as acme/widget; it stands for the claim.")
@click.option("--file", default="", help="The file in SOURCE that defines the pipeline, such as release.yml.")
@click.option("--environment", default="", help="The environment of the job, as a pattern.")
@click.option("--audience", default="", help="The audience of the identity token, instead of that of the issuer.")
@click.option(
    "--packages", multiple=True, metavar="PATTERN", help="Names of packages, such as acme-*; may be repeated."
)
@click.option("--action", "actions", multiple=True, type=ACTIONS, help="read and write without any; may be repeated.")
@remote
async def add_publisher(
    session: Session, /, place: str, package: str, claims: tuple[str, ...], **given: str | tuple[str, ...]
) -> None:
    """
    Let pipelines publish to a repository, or PACKAGE in it, which need not exist yet; or all that a project owns.

    Your own rights there are needed: a publisher has no actions that you do not have.
    """
    body: dict[str, Any] = {name: value for name, value in given.items() if value}
    body["claims"] = {}
    for each in claims:
        name, equals, pattern = each.partition("=")
        if not equals:
            raise Invalid(f"{each!r} is no claim: write NAME=PATTERN")
        body["claims"][name] = pattern
    record = await session.client.change("POST", *_place(place, package), body=body)
    session.printer.done(f"{_claims(record)} of {record['issuer']} publishes to {place} ({record['id']})", record)
    session.printer.warnings(record)


@publisher.command("remove")
@PLACE
@PACKAGE
@click.option("--id", "uid", required=True, help="The id, as publisher list shows it.")
@confirmed("Remove the publisher {uid} of {place}? Its tokens end.")
@remote
async def remove_publisher(session: Session, place: str, package: str, uid: str) -> None:
    """Remove a publisher; the tokens of its pipelines end."""
    await session.client.change("DELETE", *_place(place, package), uid)
    session.printer.done(f"removed the publisher {uid}")


def _place(place: str, package: str) -> tuple[str, ...]:
    kind, _, key = place.partition(":")
    if kind == "project" and key:
        if package:
            raise Invalid("a project has no publishers of single packages: name the repository of the package")
        return "project", key, "publishers"
    return ("package", place, package, "publishers") if package else ("repository", place, "publishers")
