"""Write a configuration file, and serve."""

from __future__ import annotations

import os
import sys
from importlib.resources import files
from pathlib import Path

import click

from pkgrepo.config import template
from pkgrepo.startup.announcements import sentence_of

from .exits import fail
from .settings import Sources

TWISTD = "from twisted.scripts.twistd import run; run()"


@click.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path("pkgrepo.toml"))
@click.option("--systemd", is_flag=True, help="Print the systemd units instead of writing a file.")
def init(path: Path, *, systemd: bool) -> None:
    """Write a configuration file with every setting, its default and its meaning."""
    if systemd:
        for unit in sorted(files("pkgrepo").joinpath("systemd").iterdir(), key=lambda each: each.name):
            click.echo(f"# /etc/systemd/system/{unit.name}\n{unit.read_text('utf-8')}")
        return
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(template())
    except FileExistsError:
        fail(f"{path} is there already", 5)
    except OSError as error:
        fail(sentence_of(error), 1)
    click.echo(f"wrote {path}")


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def serve(sources: Sources, arguments: tuple[str, ...]) -> None:
    """Run the server in the foreground, like twistd --nodaemon pkgrepo."""
    options = [f"--config={sources.file}"] if sources.file else []
    options += [f"--set={each}" for each in sources.assignments]
    command = [sys.executable, "-c", TWISTD, "--nodaemon", "--pidfile=", "pkgrepo", *options, *arguments]
    os.execv(sys.executable, command)  # noqa: S606 - the very program that runs this
