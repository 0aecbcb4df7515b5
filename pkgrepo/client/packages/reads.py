"""Commands that show packages: list, search, compare, explain, and set up clients."""

from __future__ import annotations

import sys
from typing import Any

import click

from pkgrepo.client.api import at
from pkgrepo.client.named_versions import maybe_version
from pkgrepo.client.printer import Column, Printer, aged
from pkgrepo.client.session import Session, remote
from pkgrepo.client.terminal import EXIT_CODES
from pkgrepo.display import size
from pkgrepo.errors import NotFound

FOUND = (
    Column("PACKAGE", "name"),
    Column("REPOSITORY", "repository"),
    Column("FORMAT", "format"),
    Column("LATEST", "latest"),
    Column("VERSIONS", "versions", right=True),
    Column("DOWNLOADS", "downloads", right=True),
    Column("CHANGED", aged("updated_at")),
)


@click.command("diff")
@click.argument("repository")
@click.argument("name")
@click.argument("before")
@click.argument("after")
@click.option("--entry", help="Compare the text of this file, as the list of files names it.")
@remote
async def compare_versions(
    session: Session, repository: str, name: str, before: str, after: str, entry: str | None
) -> None:
    """Compare two versions of a package: files, dependencies, install scripts, licence and size."""
    if entry is not None:
        place = at("package", repository, name, "difference", "text")
        reply = await session.client.call("GET", place, query={"before": before, "after": after, "entry": entry})
        lines = reply.body.decode().split("\n")[:-1]
        if session.printer.as_json:
            session.printer.json(lines)
        for line in lines if not session.printer.as_json else ():
            session.printer.line(line)
        return
    found = await session.client.get("package", repository, name, "difference", before=before, after=after)
    files = [f"{each['change']:8} {each['name']}" for each in found["files"]]
    if found["archives"] is None:
        files = ["there are no archives of the same kind that could be compared"]
    elif not found["complete"] or found["file_count"] > len(files):
        files.append("there may be more")
    licences = [found["license_before"], found["license_after"]]
    session.printer.record(
        found,
        [
            ("size", f"{size(found['size_before'])} -> {size(found['size_after'])}"),
            ("licence", " -> ".join(dict.fromkeys(licences))),
            ("scripts", _changed_texts(found["scripts"])),
            ("dependencies", _changed_texts(found["requirements"])),
            ("files", files or "are the same"),
        ],
    )


def _changed_texts(changes: list[dict[str, str | None]]) -> list[str] | str:
    """A line for each text that was added, removed or changed."""
    return [f"{each['name']}: {each['before'] or 'none'} -> {each['after'] or 'none'}" for each in changes] or (
        "are the same"
    )


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--format", "format_", default="", help="Only packages of this format.")
@click.option("--repository", default="", metavar="STORAGE/REPOSITORY", help="Only in this repository.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="At most so many.")
@remote
async def search(session: Session, words: tuple[str, ...], format_: str, repository: str, limit: int) -> None:
    """Find packages by name or description, in all repositories that you may see."""
    found = await session.client.get(
        "search", "packages", q=" ".join(words), format=format_, repository=repository, limit=limit
    )
    if session.printer.as_json:
        session.printer.json(found)
        return
    session.printer.table(FOUND, found["items"], "no package has such a name")
    if found["truncated"]:
        session.printer.note("there are more: use --limit, or more words")


@click.command()
@click.argument("repository", metavar="STORAGE/REPOSITORY")
@click.argument("package", metavar="PACKAGE[==VERSION]")
@click.option("--version", default="", help="A version to explain as well; of an image a tag or digest.")
@click.option("--file", "file", default="", metavar="PATH", help="Instead, a file: its path below the repository.")
@click.option("--refresh", is_flag=True, help="Have upstreams confirm what is kept.")
@remote
async def explain(session: Session, repository: str, package: str, version: str, file: str, *, refresh: bool) -> None:
    """
    Explain what clients get under the name of a package, and how that was decided.

    Exit code 3 if there is no such package, version or file.
    """
    package, named = maybe_version(package, version or None)
    version = named or ""
    found = await session.client.get(
        "explain", repository=repository, package=package, version=version, file=file, refresh=refresh
    )
    printer = session.printer
    if printer.as_json:
        printer.json(found)
    else:
        _show_explanation(printer, found)
    if found["outcome"] == "not_found":
        sys.exit(EXIT_CODES[NotFound])


def _show_explanation(printer: Printer, found: Any) -> None:
    printer.heading(found["sentence"])
    for number, step in enumerate(found["steps"], 1):
        printer.line(f"  {number}. {step['sentence']}")
    if found["latest"]:
        printer.line(f"latest: {found['latest']['version']}: {found['latest']['sentence']}")
    for name in ("version", "file", "manifest"):
        if found[name]:
            printer.record(None, [(key, value) for key, value in found[name].items() if value not in (None, [])])


@click.command()
@click.argument("repository", metavar="STORAGE/REPOSITORY")
@click.option("--client", default="", help="Only for this client, such as pip or npm.")
@click.option("--package", default="", help="With --version: how to install it.")
@click.option("--version", default="", help="The version to install.")
@remote
async def setup(session: Session, repository: str, client: str, package: str, version: str) -> None:
    """Print what clients need to use a repository; <TOKEN> stands for an access token."""
    package, named = maybe_version(package, version or None)
    version = named or ""
    place = ("repository", repository, "setup")
    found = await session.client.get(*place, client=client, package=package, version=version)
    printer = session.printer
    if printer.as_json:
        printer.json(found)
        return
    if not found:
        raise NotFound("client", client or repository)
    for number, each in enumerate(found):
        if number:
            click.echo()
        place_of = f" ({each['file']})" if each["file"] and each["file"] != each["title"] else ""
        printer.heading(f"# {each['title']}{place_of}")
        for line in each["text"].splitlines():
            printer.line(line)
