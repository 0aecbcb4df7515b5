"""Tags: the dist-tags of npm packages, and the tags of images; other formats have none."""

from __future__ import annotations

from urllib.parse import quote

import click
import msgspec

from pkgrepo.commands.remote.images import Registry
from pkgrepo.commands.remote.session import Session, remote
from pkgrepo.errors import Invalid

NPM, IMAGES = "npm", "docker"


@click.command("tag")
@click.argument("repository")
@click.argument("name")
@click.argument("version")
@click.argument("tag")
@remote
async def set_tag(session: Session, repository: str, name: str, version: str, tag: str) -> None:
    """Let a tag stand for a version: a dist-tag of an npm package, or a tag of an image."""
    client = session.client
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


async def _format(session: Session, repository: str) -> str:
    format_ = str((await session.client.get("repository", repository))["format"])
    if format_ not in (NPM, IMAGES):
        raise Invalid(f"packages of the format {format_} have no tags")
    return format_


def _dist_tag(repository: str, name: str, tag: str) -> str:
    package, label = quote(name, safe="@"), quote(tag, safe="")
    return f"/repositories/{quote(repository)}/-/package/{package}/dist-tags/{label}"
