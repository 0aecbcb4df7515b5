"""Write a configuration file, serve, print the version, and make a shell complete the command line."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from pkgrepo import __version__, build
from pkgrepo.client.terminal import fail
from pkgrepo.commands.settings import Sources
from pkgrepo.config import template
from pkgrepo.sentences import sentence_of
from pkgrepo.storage.catalog.engine.schema import load_schema

TWISTD = "from twisted.scripts.twistd import run; run()"

PROGRAM = "pkgrepo"
VARIABLE = "_PKGREPO_COMPLETE"
_INSTALLED_AT = "/opt/pkgrepo"  # in the units


@click.command()
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option("--systemd", is_flag=True, help="The systemd units: write them into the folder PATH, or print them.")
@click.option("--starter", default="", metavar="FORMATS", help="Begin with repositories of these formats, or of all.")
def init(path: Path | None, *, systemd: bool, starter: str) -> None:
    """Write a configuration file (pkgrepo.toml) with every setting, its default and its meaning."""
    if not systemd:
        formats = [each.strip() for each in starter.split(",") if each.strip()]
        _write_new({path or Path("pkgrepo.toml"): template({"bootstrap.starter": formats} if formats else {})})
        return
    here = sys.prefix.replace("%", "%%")  # in a unit "%" begins a specifier
    folder = files("pkgrepo").joinpath("systemd")
    units = {unit.name: unit.read_text("utf-8").replace(_INSTALLED_AT, here) for unit in folder.iterdir()}
    if path is not None:
        _write_new({path / name: text for name, text in sorted(units.items())})
        return
    for name, text in sorted(units.items()):
        click.echo(f"# /etc/systemd/system/{name}\n{text}")


def _write_new(texts: Mapping[Path, str]) -> None:
    """Write files, none of which may be there."""
    if taken := [path for path in texts if path.exists()]:
        fail(f"{taken[0]} is there already", 5)
    try:
        for path, text in texts.items():
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            click.echo(f"wrote {path}")
    except OSError as error:
        fail(sentence_of(error), 1)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def serve(sources: Sources, arguments: tuple[str, ...]) -> None:
    """Run the server in the foreground, like twistd --nodaemon pkgrepo."""
    options = [f"--config={sources.file}"] if sources.file else []
    options += [f"--set={each}" for each in sources.assignments]
    command = [sys.executable, "-c", TWISTD, "--nodaemon", "--pidfile=", "pkgrepo", *options, *arguments]
    os.execv(sys.executable, command)  # noqa: S606 - the very program that runs this


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish", "powershell"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    r"""
    Print a script that completes commands and options in a shell.

    \b
    bash:  pkgrepo completion bash > ~/.local/share/bash-completion/completions/pkgrepo
    zsh:   pkgrepo completion zsh > "${fpath[1]}/_pkgrepo"
    fish:  pkgrepo completion fish > ~/.config/fish/completions/pkgrepo.fish
    powershell:  pkgrepo completion powershell >> $PROFILE
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click has three, and pkgrepo the fourth"
    click.echo(kind(context.find_root().command, {}, PROGRAM, VARIABLE).source())


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object, with the versions of all dependencies.")
def version(*, as_json: bool) -> None:
    """Print the version of this program, its commit and the schema of its catalog."""
    commit, schema = build.commit(), load_schema().version
    if not as_json:
        click.echo(f"pkgrepo {__version__} (commit {commit or 'unknown'}, schema {schema})")
        return
    found = {
        "version": __version__,
        "commit": commit or None,
        "schema": schema,
        "python": platform.python_version(),
        "dependencies": build.dependencies(),
    }
    click.echo(json.dumps(found, indent=2))
