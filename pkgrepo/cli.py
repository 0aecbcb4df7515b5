"""
The administrator's command line: ``pkgrepo``.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 not found, 4 refused, 5 conflict.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

from pkgrepo.commands.settings import Sources

from . import __version__

# Command: the module below pkgrepo.commands and the name in it.
COMMANDS = {
    "init": ("setup", "init"),
    "serve": ("setup", "serve"),
    "check-config": ("checks", "check_config"),
    "migrate": ("maintenance", "migrate"),
    "migrate-catalog": ("catalogs", "migrate_catalog"),
    "verify": ("maintenance", "verify"),
    "reindex": ("maintenance", "reindex"),
    "gc": ("maintenance", "collect_garbage"),
    "compact": ("compaction", "compact"),
    "import": ("imports", "import_group"),
    "admin": ("administrators", "admin"),
    "storage": ("storages", "storage"),
    "deploy": ("deploy.command", "deploy"),
}


class LazyGroup(click.Group):
    """Imports a command when it is called: ``init`` does not need the server, whose import takes most of a second."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click calls it by keyword
        """The names of all commands, in the order of ``COMMANDS``."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of this name, or None."""
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(f"pkgrepo.commands.{module}"), name)
        return command


@click.group(cls=LazyGroup)
@click.version_option(__version__, prog_name="pkgrepo")
@click.option(
    "--config", "-c", "file", type=click.Path(path_type=Path), envvar="PKGREPO_CONFIG", help="TOML file with settings."
)
@click.option(
    "--set", "-s", "assignments", multiple=True, metavar="KEY=VALUE", help="Override one setting; may be repeated."
)
@click.pass_context
def main(context: click.Context, file: Path | None, assignments: tuple[str, ...]) -> None:
    """Administer a pkgrepo server on the machine where its data is; "deploy" sends artifacts to any server."""
    context.obj = Sources(file, assignments)
