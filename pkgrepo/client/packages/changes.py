"""Commands that change packages: yank, delete, promote, tag."""

from __future__ import annotations

import click

from pkgrepo.client.named_versions import maybe_version, named_version
from pkgrepo.client.session import Session, confirmed, remote
from pkgrepo.client.transfers.image_layouts import Registry
from pkgrepo.display import plural
from pkgrepo.errors import Invalid


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


def _what_goes(*, repository: str, name: str, version: str | None, **_rest: object) -> str:
    name, version = maybe_version(name, version)
    return f"Delete {name} {version} from {repository}?" if version else f"Delete {name} from {repository}, all of it?"


@click.command("delete")
@click.argument("repository")
@click.argument("name", metavar="NAME[==VERSION]")
@click.argument("version", required=False)
@click.option("--purge", is_flag=True, help="Delete it for good: it cannot be restored from the trash.")
@click.option("--dry-run", is_flag=True, help="Print what would be deleted.")
@confirmed(_what_goes)
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
    if await _has_images(session, repository):
        registry = Registry(client, repository)
        manifest = await registry.manifest(name, version)
        await registry.put_manifest(name, tag, manifest)
    else:
        await client.change("PUT", "package", repository, name, "tags", tag, body={"version": version})
    session.printer.done(f"{tag} of {name} is {version}", {"package": name, "tag": tag, "version": version})


@click.command("untag")
@click.argument("repository")
@click.argument("name")
@click.argument("tag")
@remote
async def remove_tag(session: Session, repository: str, name: str, tag: str) -> None:
    """Remove a tag; the version stays."""
    is_image = await _has_images(session, repository)
    if is_image and ":" in tag:
        raise Invalid(f"{tag} is a digest and no tag")
    await session.client.change("DELETE", "package", repository, name, "versions" if is_image else "tags", tag)
    session.printer.done(f"{name} has no tag {tag} any more", {"package": name, "tag": tag, "version": None})


async def _has_images(session: Session, repository: str) -> bool:
    return bool((await session.client.get("repository", repository))["has_images"])
