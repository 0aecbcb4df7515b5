"""``pkgrepo retention``: which versions of a repository go by themselves, and what would go now."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from pkgrepo.client.http import Failed
from pkgrepo.client.printer import Column
from pkgrepo.client.session import Session, confirmed, remote
from pkgrepo.display import plural, size, without_blanks
from pkgrepo.errors import Invalid

COLUMNS = (
    Column("PACKAGE", "package"),
    Column("VERSION", "version"),
    Column("ACTION", "action"),
    Column("SIZE", lambda each: size(each["size"]), right=True),
    Column("REASON", "reason"),
)
SERVER = "server"
SHOWN = 20  # versions that "set" shows
WAITS = 409  # the status that stands for a run that waits, for its exit code


@click.group()
def retention() -> None:
    """
    Rules by which old versions of hosted repositories go, and cached ones of proxies.

    REPOSITORY is written as STORAGE/REPOSITORY; "server" stands for the rules that hold for every repository.
    """


@retention.command("show")
@click.argument("repository")
@remote
async def show(session: Session, repository: str) -> None:
    """Show the rules of a repository."""
    if repository == SERVER:
        rules = (await session.client.get("system", "retention"))["retention"]
    else:
        rules = await session.client.get("repository", repository, "config", "retention")
    if session.printer.as_json or rules is not None:
        shown = rules if session.printer.as_json else without_blanks(rules)
        click.echo(msgspec.json.format(msgspec.json.encode(shown), indent=2).decode())
    else:
        session.printer.note(f"{repository} has no rules: nothing goes by itself")


def ruled(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say what is kept by one rule, in place of a file."""
    options = (
        click.option("--last", type=click.IntRange(min=0), help="Keep so many versions of each package."),
        click.option("--newer-than", type=click.IntRange(min=0), metavar="DAYS", help="Keep what is not older."),
        click.option("--downloaded-within", type=click.IntRange(min=1), metavar="DAYS", help="Keep what was fetched."),
        click.option("--packages", multiple=True, metavar="PATTERN", help="Only packages with such names; repeat."),
    )
    for each in reversed(options):
        command = each(command)
    return command


@retention.command("set")
@click.argument("repository")
@click.argument("file", required=False, type=click.Path(path_type=Path, allow_dash=True))
@ruled
@click.option("--schedule", help="When it runs: a cron text, in UTC.")
@click.option("--off", is_flag=True, help="Remove all rules.")
@click.option("--yes", is_flag=True, help="Do not ask, and do not show what would go.")
@remote
async def set_rules(
    session: Session, /, repository: str, file: Path | None, schedule: str | None, *, off: bool, yes: bool, **keep: Any
) -> None:
    """
    Set the rules of a repository: those in FILE (JSON or TOML, - for standard input), or one rule by options.

    If a run would remove something now, it is shown, and you are asked.
    """
    value = _rules(file, keep)
    if (value is None) is not off:
        raise Invalid("give a file, or what to keep by options, or --off")
    if value is not None and schedule is not None:
        value["schedule"] = schedule
    if repository == SERVER:
        changed = await session.client.change("PUT", "system", "retention", body={"retention": value})
    else:
        if (await session.client.get("repository", repository))["type"] == "Virtual":
            raise Invalid(f"{repository} is virtual, and has no rules: those of its members hold")
        if value is not None and not yes:
            await _ask(session, repository, value)
        changed = await session.client.change("PUT", "repository", repository, "config", "retention", body=value)
    what = "has no rules any more" if value is None else f"has {plural(len(value.get('rules', ())), 'rule')}"
    session.printer.done(f"{repository} {what}", changed)


async def _ask(session: Session, repository: str, rules: Mapping[str, Any]) -> None:
    """Show what rules would remove now, and ask whether they are to hold; they do if nothing would go."""
    place = ("repository", repository, "retention")
    found = await session.client.change("POST", *place, body={"retention": rules}, dry_run=True, limit=SHOWN)
    if found["count"]:
        for each in found["victims"]:
            session.printer.note(f"{each['package']} {each['version']}: {each['reason']}")
        session.printer.note(_count(found))
        click.confirm(f"Set these rules for {repository}?", abort=True, err=True)


@retention.command("preview")
@click.argument("repository")
@click.option("--file", type=click.Path(path_type=Path, allow_dash=True), help="Rules to try, instead of those set.")
@ruled
@click.option("--limit", type=click.IntRange(0, 100_000), default=1000, show_default=True, help="List at most so many.")
@remote
async def preview(session: Session, /, repository: str, file: Path | None, limit: int, **keep: Any) -> None:
    """List what a run would remove now, with the reasons: by the rules that are set, a file, or one rule by options."""
    rules = _rules(file, keep)
    body = {} if rules is None else {"retention": rules}
    place = ("repository", repository, "retention")
    found = await session.client.change("POST", *place, body=body, dry_run=True, limit=limit)
    printer = session.printer
    if printer.as_json:
        printer.json(found)
        return
    printer.table(COLUMNS, found["victims"], "nothing would go")
    if found["count"]:
        printer.note(_count(found))
    if found["over_limits_bytes"]:
        printer.table(COLUMNS, found["over_limits"], "")
        printer.note(f"{size(found['over_limits_bytes'])} exceed the limits of the cache, and go within the hour")
    if found["needs_confirmation"]:
        printer.note(f"that is more than {found['max_delete_percent']} %: a run needs --confirm")


def _count(found: Mapping[str, Any]) -> str:
    more = f" (of which {len(found['victims'])} are listed)" if found["truncated"] else ""
    return f"{found['count']} of {found['examined']}{more} would go: {found['percent']} %, {size(found['bytes'])}"


@retention.command("run")
@click.argument("repository")
@click.option("--confirm", is_flag=True, help="Remove also more than max_delete_percent of the repository.")
@confirmed("Remove what the rules of {repository} select?")
@remote
async def run(session: Session, repository: str, *, confirm: bool) -> None:
    """Remove what the rules select."""
    place = ("repository", repository, "retention")
    done = await session.client.change("POST", *place, body={}, confirm=confirm, wait=True)
    if done["needs_confirmation"]:
        raise Failed(
            f"nothing was removed: {done['count']} of {done['examined']} would go, which is more than "
            f"{done['max_delete_percent']} %; look at the preview, and add --confirm",
            status=WAITS,
        )
    session.printer.done(f"removed {done['removed']} of {done['examined']} ({size(done['freed_bytes'])})", done)
    if done["errors"]:
        raise Failed("; ".join(done["errors"]))


def _rules(file: Path | None, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """The rules in a file, or the one that options name; None without any. :raises Invalid: there are both"""
    names = {"last": "last", "newer_than": "newer_than_days", "downloaded_within": "downloaded_within_days"}
    keep = {name: given[option] for option, name in names.items() if given[option] is not None}
    if file is not None and keep:
        raise Invalid("give a file, or what to keep by options, or --off")
    if file is not None:
        return _read(file)
    if keep:
        return {"rules": [{"name": "old versions", "match": {"packages": list(given["packages"])}, "keep": keep}]}
    return None


def _read(file: Path) -> dict[str, Any]:
    """The rules in a file. :raises Invalid: it has none"""
    data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    try:
        value = tomllib.loads(data.decode()) if file.suffix == ".toml" else msgspec.json.decode(data)
    except (ValueError, msgspec.MsgspecError) as error:
        raise Invalid(f"{file}: {error}") from None
    if not isinstance(value, dict):
        raise Invalid(f"{file}: rules of retention are an object")
    return value
