"""Commands that change packages: yank, delete, promote, tag."""

from __future__ import annotations

import click

from pkgrepo.client.named_versions import named_version
from pkgrepo.client.session import Session, remote
from pkgrepo.client.transfers.image_layouts import Registry
from pkgrepo.errors import Invalid


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
