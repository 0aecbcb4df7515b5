"""
The command line: ``pkgrepo``.

Some commands work on the data folder of a server, on its machine; the others talk to a server by its API.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 not found, 4 refused, 5 conflict.
"""

from __future__ import annotations

from pathlib import Path

import click

from pkgrepo.commands.groups import LazyGroup
from pkgrepo.commands.settings import Sources

from . import __version__

# Command: the module below pkgrepo.commands and the name in it.
COMMANDS = {
    # on the machine of the server
    "init": ("setup", "init"),
    "serve": ("setup", "serve"),
    "check-config": ("maintenance", "check_config"),
    "health": ("health", "health"),
    "doctor": ("doctor", "doctor"),
    "migrate": ("maintenance", "migrate"),
    "migrate-catalog": ("maintenance", "migrate_catalog"),
    "migrate-storage": ("storages", "migrate_storage"),
    "verify": ("maintenance", "verify"),
    "reindex": ("maintenance", "reindex"),
    "gc": ("maintenance", "collect_garbage"),
    "compact": ("maintenance", "compact"),
    "backup": ("backups", "backup"),
    "restore": ("backups", "restore_backup"),
    "admin": ("administrators", "admin"),
    # both
    "import": ("imports", "import_group"),
    "bundle": ("groups", "bundle"),
    "storage": ("groups", "storage"),
    # by the API of a server
    "login": ("remote.login", "login"),
    "logout": ("remote.login", "logout"),
    "profile": ("remote.login", "profile"),
    "whoami": ("remote.login", "whoami"),
    "repo": ("groups", "repo"),
    "package": ("groups", "package"),
    "search": ("remote.packages.reads", "search"),
    "explain": ("remote.packages.reads", "explain"),
    "snapshot": ("remote.repositories.snapshot", "snapshot"),
    "setup": ("remote.packages.reads", "setup"),
    "upload": ("remote.transfers.upload", "upload"),
    "download": ("remote.transfers.download", "download"),
    "deploy": ("deploy", "deploy"),
    "mirror": ("remote.transfers.mirror", "mirror"),
    "export": ("remote.twins.commands", "export"),
    "twin": ("remote.twins.commands", "twin"),
    "user": ("remote.people.users", "user"),
    "group": ("remote.people.groups", "group"),
    "token": ("remote.people.tokens", "token"),
    "project": ("remote.people.projects", "project"),
    "publisher": ("remote.repositories.publishers", "publisher"),
    "stage": ("remote.lifecycle.stages", "stage"),
    "trash": ("remote.lifecycle.trash", "trash"),
    "retention": ("remote.lifecycle.retention", "retention"),
    "quota": ("remote.lifecycle.quotas", "quota"),
    "advisories": ("remote.policy.advisories", "advisories"),
    "block": ("remote.policy.rules", "block"),
    "unblock": ("remote.policy.rules", "unblock"),
    "blocks": ("remote.policy.rules", "list_blocks"),
    "rules": ("remote.policy.rules", "rules"),
    "quarantine": ("remote.policy.rules", "quarantine"),
    "rehearse": ("remote.policy.rehearsal", "rehearse"),
    "recall": ("remote.policy.recall", "recall"),
    "webhook": ("remote.server.webhooks", "webhook"),
    "events": ("remote.server.events", "events"),
    "host": ("remote.server.hosts", "host"),
    "stats": ("remote.server.activity", "stats"),
    "jobs": ("remote.server.activity", "jobs"),
    "audit": ("remote.server.activity", "audit"),
    "top": ("remote.server.top", "top"),
    "version": ("setup", "version"),
    "completion": ("setup", "completion"),
}
# The first command of each part of the help: its title.
SECTIONS = {
    "init": "On the machine of the server",
    "import": "There, or by the API of a server",
    "login": "Log in to a server",
    "repo": "Repositories and packages",
    "user": "People and pipelines",
    "stage": "What comes and goes",
    "advisories": "What is served",
    "webhook": "What happens on a server",
    "version": "This program",
}


@click.group(cls=LazyGroup, lazy=COMMANDS, sections=SECTIONS)
@click.version_option(__version__, prog_name="pkgrepo")
@click.option(
    "--config", "-c", "file", type=click.Path(path_type=Path), envvar="PKGREPO_CONFIG", help="TOML file with settings."
)
@click.option(
    "--set", "-s", "assignments", multiple=True, metavar="KEY=VALUE", help="Override one setting; may be repeated."
)
@click.pass_context
def main(context: click.Context, file: Path | None, assignments: tuple[str, ...]) -> None:
    """
    Administer and use a package registry.

    Commands on the machine of the server work on its data folder, with the settings of --config and --set. The others
    talk to a server by its API, from anywhere: "pkgrepo login URL" first.
    """
    context.obj = Sources(file, assignments)
