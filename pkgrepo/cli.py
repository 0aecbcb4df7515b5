"""
The command line: ``pkgrepo``.

Some commands work on the data folder of a server, on its machine; the others talk to a server by its API.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 not found, 4 refused, 5 conflict.
"""

from __future__ import annotations

from pathlib import Path

import click

from pkgrepo.client.groups import LazyGroup
from pkgrepo.commands.settings import Sources

from . import __version__

# Command: the module below pkgrepo and the name in it; None if it is made of an operation of the API.
COMMANDS = {
    # on the machine of the server
    "init": ("commands.setup", "init"),
    "serve": ("commands.setup", "serve"),
    "check-config": ("commands.maintenance", "check_config"),
    "health": ("commands.health", "health"),
    "doctor": ("commands.doctor", "doctor"),
    "migrate": ("commands.maintenance", "migrate"),
    "migrate-catalog": ("commands.maintenance", "migrate_catalog"),
    "migrate-storage": ("commands.storages", "migrate_storage"),
    "verify": ("commands.maintenance", "verify"),
    "reindex": ("commands.maintenance", "reindex"),
    "gc": ("commands.maintenance", "collect_garbage"),
    "compact": ("commands.maintenance", "compact"),
    "backup": ("commands.backups", "backup"),
    "restore": ("commands.backups", "restore_backup"),
    "admin": ("commands.administrators", "admin"),
    # both
    "import": ("commands.imports", "import_group"),
    "bundle": ("commands.groups", "bundle"),
    "storage": ("commands.groups", "storage"),
    # by the API of a server
    "login": ("client.login", "login"),
    "logout": ("client.login", "logout"),
    "profile": ("client.login", "profile"),
    "whoami": ("client.login", "whoami"),
    "repo": ("commands.groups", "repo"),
    "package": ("commands.groups", "package"),
    "search": ("client.packages.reads", "search"),
    "explain": ("client.packages.reads", "explain"),
    "snapshot": ("client.repositories.snapshot", "snapshot"),
    "setup": ("client.packages.reads", "setup"),
    "upload": ("client.transfers.upload", "upload"),
    "download": ("client.transfers.download", "download"),
    "deploy": ("client.transfers.deploy", "deploy"),
    "mirror": ("client.transfers.mirror", "mirror"),
    "export": ("client.twins.commands", "export"),
    "twin": ("client.twins.commands", "twin"),
    "user": ("client.people.users", "user"),
    "group": ("client.people.groups", "group"),
    "token": ("client.people.tokens", "token"),
    "project": ("client.people.projects", "project"),
    "publisher": ("client.repositories.publishers", "publisher"),
    "stage": ("client.lifecycle.stages", "stage"),
    "trash": ("client.lifecycle.trash", "trash"),
    "retention": ("client.lifecycle.retention", "retention"),
    "quota": ("client.lifecycle.quotas", "quota"),
    "advisories": ("client.policy.advisories", "advisories"),
    "block": ("client.policy.rules", "block"),
    "unblock": None,
    "blocks": None,
    "rules": ("client.policy.rules", "rules"),
    "quarantine": ("client.policy.rules", "quarantine"),
    "rehearse": ("client.policy.rehearsal", "rehearse"),
    "recall": ("client.policy.recall", "recall"),
    "webhook": ("client.server.webhooks", "webhook"),
    "events": ("client.server.events", "events"),
    "host": ("client.server.hosts", "host"),
    "stats": ("client.server.activity", "stats"),
    "jobs": ("client.server.activity", "jobs"),
    "audit": ("client.server.activity", "audit"),
    "top": ("client.server.top", "top"),
    "version": ("commands.setup", "version"),
    "completion": ("commands.setup", "completion"),
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
