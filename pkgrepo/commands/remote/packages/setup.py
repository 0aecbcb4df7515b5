"""``pkgrepo setup``: what to write into the configuration of a client."""

from __future__ import annotations

import click

from pkgrepo.commands.remote.session import Session, remote
from pkgrepo.errors import NotFound


@click.command()
@click.argument("repository", metavar="STORAGE/REPOSITORY")
@click.option("--client", default="", help="Only for this client, such as pip or npm.")
@click.option("--package", default="", help="With --version: how to install it.")
@click.option("--version", default="", help="The version to install.")
@remote
async def setup(session: Session, repository: str, client: str, package: str, version: str) -> None:
    """Print what clients need to use a repository; <TOKEN> stands for an access token."""
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
