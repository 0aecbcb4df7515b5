"""Check the settings and the environment of the server without starting it."""

from __future__ import annotations

import sys

import click
from twisted.internet import reactor

from pkgrepo.composition.core import Core
from pkgrepo.config import Config, explain
from pkgrepo.startup.announcements import sentence_of
from pkgrepo.startup.checks import start_problems
from pkgrepo.storage.catalog.engine.connections import CatalogUnusable

from .settings import Sources


@click.command("check-config")
@click.option("--explain", "explained", is_flag=True, help="Print every setting with its value and origin.")
@click.pass_obj
def check_config(sources: Sources, *, explained: bool) -> None:
    """Check the settings and the environment of the server, and print all problems."""
    config = sources.read()
    problems = _start_problems(config)
    for problem in problems:
        click.echo(problem, err=True)
    if problems:
        sys.exit(2)
    if not explained:
        click.echo("the configuration is valid")
        return
    for each in explain(config):
        click.echo(f"{each.name} = {each.value}".rstrip() + f"  # {each.origin}")


def _start_problems(config: Config) -> list[str]:
    try:
        return list(start_problems(Core(config, reactor), config))
    except CatalogUnusable as error:  # its library is not installed
        return [f"database.url: {error}"]
    except OSError as error:
        return [sentence_of(error)]
