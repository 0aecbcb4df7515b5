"""``pkgrepo recall``: who fetched a version."""

from __future__ import annotations

from typing import Any

import click

from pkgrepo.client.named_versions import maybe_version
from pkgrepo.client.printer import Column, parse_time
from pkgrepo.client.session import Session, remote
from pkgrepo.display import plural
from pkgrepo.errors import PkgrepoError

MOST = 10_000  # users and tokens that are printed; the CSV document has more


class Unknown(PkgrepoError):  # noqa: N818 - named for what is the case
    """What is shown is not all: nothing was logged, or nothing has this name."""


def _time(name: str) -> Any:
    def text(each: dict[str, Any]) -> str:
        at = parse_time(each[name])
        return "" if at is None else f"{at:%Y-%m-%d %H:%M}"

    return text


COLUMNS = (
    Column("USER", lambda each: each.get("user") or "anonymous"),
    Column("TOKEN", lambda each: each.get("token") or ""),
    Column("NETWORK", lambda each: each["address"] or ""),
    Column("FIRST (UTC)", _time("first_at")),
    Column("LAST (UTC)", _time("last_at")),
    Column("FETCHES", "count", right=True),
)


@click.command()
@click.argument(
    "what", nargs=-1, required=True, metavar="PURL | sha256:DIGEST | STORAGE/NAME NAME[==VERSION] | report ADVISORY"
)
@click.option("--csv", "as_csv", is_flag=True, help="Print all rows as comma-separated values.")
@remote
async def recall(session: Session, what: tuple[str, ...], *, as_csv: bool) -> None:
    """
    Show who fetched a version, and when, by the log of downloads.

    "pkgrepo recall report MAL-2026-1" prints all that is known of what an advisory names, as Markdown, or with --csv or
    --json: what was served and until when, since when it is refused, from which upstream, and who fetched it.

    For system managers. Exit code 1 if that nobody is shown means nothing: the server logs no downloads, or has nothing
    of this name.
    """
    if what[0] == "report" and len(what) == 2:
        await _report(session, what[1], as_csv=as_csv)
        return
    query = _query(what)
    if as_csv:
        answer = await session.client.call("GET", "/api/recall", query={**query, "format": "csv"})
        click.echo(answer.body, nl=False)
        return
    found = await session.client.get("recall", **query, limit="1000")
    while found["next"] and len(found["items"]) < MOST:
        page = await session.client.get("recall", **query, limit="1000", cursor=found["next"])
        found = {**found, "items": found["items"] + page["items"], "next": page["next"]}
    if session.printer.as_json:
        session.printer.record(found, [])
    elif found["count"] or not found["problem"]:
        session.printer.table(
            COLUMNS, [*found["items"], *found["anonymous_items"]], "nobody is known to have fetched it"
        )
        session.printer.note(_summary(found))
    if found["problem"]:
        raise Unknown(found["problem"])


async def _report(session: Session, advisory: str, *, as_csv: bool) -> None:
    if session.printer.as_json:
        found = await session.client.get("recall", "report", id=advisory, limit="1000")
        while found["next"] and len(found["items"]) < MOST:
            page = await session.client.get("recall", "report", id=advisory, limit="1000", cursor=found["next"])
            found = {**found, "items": found["items"] + page["items"], "next": page["next"]}
        session.printer.record(found, [])
        return
    query = {"id": advisory, "format": "csv" if as_csv else "markdown"}
    answer = await session.client.call("GET", "/api/recall/report", query=query)
    click.echo(answer.body, nl=False)


def _query(what: tuple[str, ...]) -> dict[str, str]:
    match what:
        case [place, named, *rest] if len(rest) < 2:
            package, version = maybe_version(named, rest[0] if rest else None)
            at = named.find("@", 1)  # an npm scope begins with one
            if version is None and at > 0:
                package, version = named[:at], named[at + 1 :]
            return {"repository": place, "package": package, **({"version": version} if version else {})}
        case [text] if text.startswith("pkg:"):
            return {"purl": text}
        case [text]:
            return {"digest": text}
    raise click.UsageError("name a package URL, a digest, or a repository and a package")


def _summary(found: dict[str, Any]) -> str:
    fetches, files = plural(found["count"], "fetch", "fetches"), plural(found["files"], "file")
    sums = f"{fetches} of {files}, {found['anonymous']} by anonymous clients"
    since = parse_time(found["since"] or "")
    return sums if since is None else f"{sums}; what was fetched before {since:%Y-%m-%d} is not known"
