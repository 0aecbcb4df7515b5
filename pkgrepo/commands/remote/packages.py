"""Commands on packages: list, show, search, yank, delete, tag, explain, and set up clients."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import click
import msgspec

from pkgrepo.commands.remote.client import at
from pkgrepo.commands.remote.named_versions import maybe_version, named_version
from pkgrepo.commands.remote.printer import Column, aged, moment, sized
from pkgrepo.commands.remote.session import Session, confirmed, remote
from pkgrepo.commands.remote.transfers.image_layouts import Registry
from pkgrepo.errors import Invalid, NotFound
from pkgrepo.web.rendering.filters import plural, size

PACKAGES = (
    Column("PACKAGE", "name"),
    Column("LATEST", "latest"),
    Column("VERSIONS", "versions", right=True),
    Column("SIZE", sized("size"), right=True),
    Column("DOWNLOADS", "downloads", right=True),
    Column("CHANGED", aged("updated_at")),
    Column("FROM", lambda each: each["route"] or "here"),
)
VERSIONS = (
    Column("VERSION", "version"),
    Column("STATE", lambda each: f"{each['state']}: {each['reason']}" if each["reason"] else each["state"]),
    Column("FILES", "files", right=True),
    Column("SIZE", sized("size"), right=True),
    Column("DOWNLOADS", "downloads", right=True),
    Column("PUBLISHED", aged("published_at")),
    Column("BY", "publisher"),
)
MOVES = (
    Column("SINCE", lambda each: moment(each["at"])),
    Column("DIGEST", lambda each: each["digest"] or "none"),
    Column("BY", "by"),
    Column("STORED", lambda each: "yes" if each["stored"] else "no"),
)
FOUND = (
    Column("PACKAGE", "name"),
    Column("REPOSITORY", "repository"),
    Column("FORMAT", "format"),
    Column("LATEST", "latest"),
    Column("VERSIONS", "versions", right=True),
    Column("DOWNLOADS", "downloads", right=True),
    Column("CHANGED", aged("updated_at")),
)
DEPENDENTS = (
    Column("PACKAGE", "name"),
    Column("REPOSITORY", "repository"),
    Column("LATEST", "latest"),
    Column("NEEDS", "text"),
    Column("KIND", "kind"),
)
ACCEPTING = (*DEPENDENTS, Column("ACCEPTS IT", lambda each: {True: "yes", False: "no", None: "-"}[each["accepts"]]))
NPM, IMAGES = "npm", "docker"

MOST = click.option("--limit", type=click.IntRange(min=1), help="At most so many.")


@click.command("list")
@click.argument("repository")
@click.option("-q", "--query", default="", help="Only packages whose name contains this text.")
@MOST
@remote
async def list_packages(session: Session, repository: str, query: str, limit: int | None) -> None:
    """List the packages of a repository."""
    found = await session.client.all_items("repository", repository, "packages", most=limit, q=query)
    session.printer.table(PACKAGES, found, "there are no such packages")


@click.command("show")
@click.argument("repository")
@click.argument("name", metavar="NAME[==VERSION]")
@click.argument("version", required=False)
@remote
async def show_package(session: Session, repository: str, name: str, version: str | None) -> None:
    """Show a package, or one of its versions with its files."""
    name, version = maybe_version(name, version)
    if version is not None:
        _show_version(session, await session.client.get("package", repository, name, "versions", version))
        return
    record = await session.client.get("package", repository, name)
    flags = [f"{count} {flag}" for flag, count in record["flags"].items() if count]
    session.printer.record(
        record,
        [
            ("package", record["name"]),
            ("latest", record["latest"]),
            ("versions", f"{record['versions']}{' (' + ', '.join(flags) + ')' if flags else ''}"),
            ("files", record["files"]),
            ("size", size(record["size"])),
            ("downloads", record["downloads"]),
            ("source", record["source"]),
            ("route", record["route"]),
            ("created", moment(record["created_at"])),
            ("changed", moment(record["updated_at"])),
        ],
    )


@click.command("versions")
@click.argument("repository")
@click.argument("name")
@MOST
@remote
async def list_versions(session: Session, repository: str, name: str, limit: int | None) -> None:
    """List the versions of a package, the highest first; of an image its tags, the newest first."""
    found = await session.client.all_items("package", repository, name, "versions", most=limit)
    session.printer.table(VERSIONS, found, "there are no versions")


@click.command("dependents")
@click.argument("repository")
@click.argument("name", metavar="NAME[==VERSION]")
@click.argument("version", required=False)
@MOST
@remote
async def list_dependents(session: Session, repository: str, name: str, version: str | None, limit: int | None) -> None:
    """
    List the packages on the server that need a package: those of their highest versions that say so.

    With a version it tells which of them accept that.
    """
    name, version = maybe_version(name, version)
    found = await session.client.all_items("package", repository, name, "dependents", most=limit, version=version or "")
    session.printer.table(ACCEPTING if version else DEPENDENTS, found, "no package that you may see needs it")


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


def _show_version(session: Session, record: Any) -> None:
    files = [f"{each['name']} ({size(each['size'])})\n  {_digest(each['digests'])}" for each in record["files"]]
    session.printer.record(
        record,
        [
            ("package", record["package"]),
            ("version", record["version"]),
            ("state", record["state"]),
            ("reason", record["reason"]),
            ("published", moment(record["published_at"])),
            ("by", record["publisher"]),
            ("digest", record["digest"]),
            ("licence", record["license"]),
            ("keywords", record["keywords"] or None),
            ("tags", record["tags"] or None),
            ("links", "\n".join(f"{label}: {url}" for label, url in record["links"].items())),
            ("dependencies", "\n".join(record["dependencies"])),
            ("files", "\n".join(files)),
        ],
    )


def _digest(digests: dict[str, str]) -> str:
    name = "sha256" if "sha256" in digests else next(iter(digests), "")
    return f"{name}:{digests[name]}" if name else ""


@click.command("yank")
@click.argument("repository")
@click.argument("name", metavar="NAME==VERSION")
@click.argument("version", required=False)
@click.option("--reason", default="", help="Clients show it.")
@remote
async def yank(session: Session, repository: str, name: str, version: str | None, reason: str) -> None:
    """Yank a version: clients do not choose it any more, and its files stay."""
    package, chosen = named_version(name, version)
    place = ("package", repository, package, "versions", chosen)
    record = await session.client.change("POST", *place, "yank", body={"reason": reason})
    session.printer.done(f"{record['package']} {record['version']} is {record['state']}", record)


@click.command("unyank")
@click.argument("repository")
@click.argument("name", metavar="NAME==VERSION")
@click.argument("version", required=False)
@remote
async def unyank(session: Session, repository: str, name: str, version: str | None) -> None:
    """Undo a yank."""
    package, chosen = named_version(name, version)
    record = await session.client.change("POST", "package", repository, package, "versions", chosen, "unyank")
    session.printer.done(f"{record['package']} {record['version']} is {record['state']}", record)


@click.command("promote")
@click.argument("repository")
@click.argument("name", metavar="NAME==VERSION")
@click.argument("version", required=False)
@click.option("--to", required=True, metavar="STORAGE/REPOSITORY", help="The repository to copy it to.")
@click.option("--move", is_flag=True, help="Remove it from REPOSITORY.")
@remote
async def promote(session: Session, repository: str, name: str, version: str | None, to: str, *, move: bool) -> None:
    """
    Copy a version to another repository of the same format, with all that belongs to it; no bytes are copied.

    The version is written as the clients of the format do: demo==1.2, demo@1.2, group:artifact:1.2, image:tag,
    image@sha256:..., or as an argument of its own.
    """
    package, chosen = named_version(name, version)
    place = ("package", repository, package, "versions", chosen, "promote")
    found = await session.client.change("POST", *place, body={"to": to, "move": move})
    session.printer.warnings(found)
    what = f"{found['package']} {found['version']}"
    if not found["changed"] and not move:
        session.printer.done(f"{to} had {what} already: nothing was changed", found)
        return
    done = f"{'moved' if move else 'copied'} {what} from {repository} to {to}"
    later = "" if found["trash"] is None else f'; "pkgrepo trash restore {found["trash"]}" puts it back there, too'
    session.printer.done(f"{done}, {plural(len(found['published']), 'file')}{later}", found)


@click.command("delete")
@click.argument("repository")
@click.argument("name", metavar="NAME[==VERSION]")
@click.argument("version", required=False)
@click.option("--purge", is_flag=True, help="Delete it for good: it cannot be restored from the trash.")
@click.option("--dry-run", is_flag=True, help="Print what would be deleted.")
@confirmed("Delete {name} from {repository}?")
@remote
async def delete(
    session: Session, repository: str, name: str, version: str | None, *, purge: bool, dry_run: bool
) -> None:
    """Delete a package, or one of its versions; of an image a tag, or a manifest by its digest."""
    name, version = maybe_version(name, version)
    below = () if version is None else ("versions", version)
    gone = await session.client.change("DELETE", "package", repository, name, *below, dry_run=dry_run, purge=purge)
    printer = session.printer
    what = f"{name}{'' if version is None else ' ' + version} with {plural(len(gone['deleted']), 'file')}"
    if not printer.as_json:
        for each in gone["deleted"]:
            printer.line(f"  {each}")
    later = "" if gone["trash"] is None else f'; "pkgrepo trash restore {gone["trash"]}" restores it'
    printer.done(f"would delete {what}" if dry_run else f"deleted {what}{later}", gone)


@click.command("tag")
@click.argument("repository")
@click.argument("name", metavar="NAME==VERSION")
@click.argument("names", nargs=-1, required=True, metavar="TAG")
@remote
async def set_tag(session: Session, repository: str, name: str, names: tuple[str, ...]) -> None:
    """
    Let a tag stand for a version: a dist-tag of an npm package, or a tag of an image.

    The version may be an argument of its own, before the tag.
    """
    client = session.client
    if len(names) > 2:
        raise Invalid("one tag is set at a time")
    name, version = named_version(name, names[0] if len(names) == 2 else None)
    tag = names[-1]
    format_ = await _format(session, repository)
    if format_ == NPM:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        await client.send("PUT", _dist_tag(repository, name, tag), msgspec.json.encode(version), headers)
    else:
        registry = Registry(client, repository)
        manifest = await registry.manifest(name, version)
        await registry.put_manifest(name, tag, manifest)
    session.printer.done(f"{tag} of {name} is {version}", {"package": name, "tag": tag, "version": version})


@click.command("untag")
@click.argument("repository")
@click.argument("name")
@click.argument("tag")
@remote
async def remove_tag(session: Session, repository: str, name: str, tag: str) -> None:
    """Remove a tag; the version stays."""
    if await _format(session, repository) == NPM:
        await session.client.send("DELETE", _dist_tag(repository, name, tag), b"", {"Accept": "application/json"})
    elif ":" in tag:
        raise Invalid(f"{tag} is a digest and no tag")
    else:
        await session.client.change("DELETE", "package", repository, name, "versions", tag)
    session.printer.done(f"{name} has no tag {tag} any more", {"package": name, "tag": tag, "version": None})


@click.command("history")
@click.argument("repository")
@click.argument("name")
@click.argument("tag")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@remote
async def show_history(session: Session, repository: str, name: str, tag: str, limit: int) -> None:
    """Show what a tag of an image pointed to, the newest first; "package tag" lets it point there again."""
    place = ("package", repository, name, "tags", tag, "history")
    found = await session.client.all_items(*place, most=limit)
    session.printer.table(MOVES, found, f"nothing is known of a tag {tag}")


async def _format(session: Session, repository: str) -> str:
    format_ = str((await session.client.get("repository", repository))["format"])
    if format_ not in (NPM, IMAGES):
        raise Invalid(f"packages of the format {format_} have no tags")
    return format_


def _dist_tag(repository: str, name: str, tag: str) -> str:
    package, label = quote(name, safe="@"), quote(tag, safe="")
    return f"/repositories/{quote(repository)}/-/package/{package}/dist-tags/{label}"


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
    """Explain what clients get under the name of a package, and how that was decided."""
    package, named = maybe_version(package, version or None)
    version = named or ""
    found = await session.client.get(
        "explain", repository=repository, package=package, version=version, file=file, refresh=refresh
    )
    printer = session.printer
    if printer.as_json:
        printer.json(found)
        return
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
        place_of = f" ({each['file']})" if each["file"] else ""
        printer.heading(f"# {each['title']}{place_of}")
        for line in each["text"].splitlines():
            printer.line(line)
