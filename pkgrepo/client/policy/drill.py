"""``pkgrepo drill``: what rules would have done in published incidents."""

from __future__ import annotations

from typing import IO, Any

import click

from pkgrepo.client.printer import Column
from pkgrepo.client.session import Session, remote
from pkgrepo.display import lasting, plural

from .rehearsal import Unknown, read_rules


def _rules(each: dict[str, Any]) -> str:
    """The rules that held it, with how many versions of how many if not all."""
    texts = []
    for rule in each["rules"]:
        some = "" if rule["versions"] == rule["of"] else f" {rule['versions']} of {rule['of']}"
        texts.append(f"{rule['rule']}{some}{' (missing)' if rule['missing'] else ''}")
    return ", ".join(texts) or "none"


def _served(each: dict[str, Any]) -> str:
    return lasting(each["served_s"]) if each["served_s"] else ""


def _fetched(each: dict[str, Any]) -> str:
    requests = sum(package["requests"] for package in each["fetched"])
    return f"{requests} ({each['taken']} while served)" if each["taken"] else str(requests or "")


INCIDENTS = (
    Column("INCIDENT", "incident"),
    Column("FORMAT", "format"),
    Column("DAY", lambda each: each["published_at"][:10]),
    Column("OUTCOME", "outcome"),
    Column("SERVED FOR", _served),
    Column("HELD AT FIRST BY", _rules),
    Column("FETCHED HERE", _fetched, right=True),
    Column("RECALL", lambda each: each["recalled"]["requests"] or "", right=True),
)
SPANS = (
    Column("VERSION", "version"),
    Column("FROM", "from_at"),
    Column("UNTIL", "until_at"),
    Column("WHAT", lambda each: "served" if each["served"] else each["action"]),
    Column("RULE", lambda each: f"{each['rule']} ({each['missing']} not known)" if each["missing"] else each["rule"]),
)


@click.command()
@click.argument("incident", default="", metavar="[INCIDENT]")
@click.option(
    "--repository", "-r", default="", metavar="STORAGE/NAME", help="With all rules that hold for this repository."
)
@click.option("--rules", "-f", "file", type=click.File("rb"), metavar="FILE", help="With these rules, in place of all.")
@click.option("--days", type=click.IntRange(1, 366), default=30, show_default=True, help="Requests of so many days.")
@remote
async def drill(session: Session, incident: str, repository: str, file: IO[bytes] | None, days: int) -> None:
    """
    Play published incidents with the rules of the server, and tell what would have been served.

    Of a single INCIDENT each version is shown. FILE has rules as "pkgrepo rehearse" takes them. Nothing is refused.
    Exit code 1 if requests of some of the days are not known.
    """
    body: dict[str, Any] = {"incident": incident, "repository": repository, "days": days}
    if file is not None:
        body["rules"] = read_rules(file.read())
    found = await session.client.change("POST", "policy", "drill", body=body, wait="true")
    if "incidents" not in found:
        session.printer.done(f"The drill goes on as job {found['job_id']}.", found)
        return
    if session.printer.as_json:
        session.printer.record(found, [])
    else:
        _show(session, found, several=not incident)
    if found["problem"]:
        raise Unknown(found["problem"])


def _show(session: Session, found: dict[str, Any], *, several: bool) -> None:
    printer = session.printer
    for each in found["incidents"] if not several else ():
        printer.line(f"{each['title']}. What differed: {each['changed']}.")
        printer.line(f"Sources: {'; '.join(each['sources'])}.")
        printer.line("")
        rows = [
            {**span, "version": f"{version['package']}@{version['version']}"}
            for version in each["versions"]
            for span in version["spans"]
        ]
        printer.table(SPANS, rows)
        printer.line("")
    repository = (Column("REPOSITORY", "repository"),) if any(each["repository"] for each in found["incidents"]) else ()
    printer.table(
        (*INCIDENTS[:1], *repository, *INCIDENTS[1:]), found["incidents"], "no incident is about such packages"
    )
    printer.note(
        f"{plural(found['held'], 'incident')} held, {found['opened']} opened before the versions were removed, "
        f"{found['served']} served from the first minute"
    )
