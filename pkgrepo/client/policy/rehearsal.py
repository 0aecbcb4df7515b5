"""``pkgrepo rehearse``: what rules would have refused."""

from __future__ import annotations

import json
import tomllib
from typing import IO, Any

import click

from pkgrepo.client.printer import Column
from pkgrepo.client.session import Session, remote
from pkgrepo.errors import Invalid, PkgrepoError


def _users(each: dict[str, Any]) -> str:
    return ", ".join(each["users"]) + (" and others" if each["more_users"] else "") or "anonymous"


RULES = (
    Column("RULE", "rule"),
    Column("ACTION", "action"),
    Column("REQUESTS", "requests", right=True),
    Column("STORED VERSIONS", "versions", right=True),
    Column("BY MISSING DATA", lambda each: each["missing_requests"] + each["missing_versions"], right=True),
    Column("NOT KNOWN, PASSED", lambda each: each["passed_requests"] + each["passed_versions"], right=True),
)
REFUSED = (
    Column("RULE", "rule"),
    Column("REPOSITORY", "repository"),
    Column("PACKAGE", "package"),
    Column("VERSION", lambda each: f"{each['version']} ({each['file']})" if each["file"] else each["version"]),
    Column("REQUESTS", "requests", right=True),
    Column("USERS", _users),
)


class Unknown(PkgrepoError):  # noqa: N818 - named for what is the case
    """Requests of some days are not known."""


@click.command()
@click.argument("file", type=click.File("rb"))
@click.option("--repository", "-r", default="", metavar="STORAGE/NAME", help="Only in this repository.")
@click.option("--days", type=click.IntRange(1, 366), default=30, show_default=True, help="Requests of so many days.")
@remote
async def rehearse(session: Session, file: IO[bytes], repository: str, days: int) -> None:
    """
    Try rules on the requests of the last days and on what is stored. Nothing is refused.

    FILE has rules as JSON or TOML: a list of them, or an object with "rules", or with the "policy" of a repository; "-"
    reads it from the input. Exit code 1 if requests of some of the days are not known.
    """
    body = {"rules": read_rules(file.read()), "days": days, "repository": repository}
    found = await session.client.change("POST", "policy", "rehearse", body=body, wait="true")
    if "refused" not in found:
        session.printer.done(f"The rehearsal goes on as job {found['job_id']}.", found)
        return
    if session.printer.as_json:
        session.printer.record(found, [])
    else:
        session.printer.table(RULES, found["rules"])
        if found["refused"]:
            session.printer.line("")
        session.printer.table(REFUSED, found["refused"], "no request would have been refused")
        session.printer.note(
            f"{found['refused_requests']} of {found['requests']} requests of {days} days would have been refused, and "
            f"{found['refused_stored']} stored versions would be"
        )
    if found["problem"]:
        raise Unknown(found["problem"])


def read_rules(data: bytes) -> Any:
    """The rules in a file, JSON or TOML, as ``rehearse`` says. :raises Invalid: it is neither"""
    found: Any
    try:
        found = json.loads(data)
    except ValueError as of_json:
        try:
            found = tomllib.loads(data.decode())
        except ValueError as of_toml:
            raise Invalid(f"this is neither JSON ({of_json}) nor TOML ({of_toml})") from None
    if isinstance(found, dict) and isinstance(found.get("policy"), dict):
        found = found["policy"]
    return found.get("rules") if isinstance(found, dict) else found
