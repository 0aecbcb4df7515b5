"""
The command line: ``pkgrepo``.

Some commands work on the data folder of a server, on its machine; the others talk to a server by its API.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 not found, 4 refused, 5 conflict.
"""

from __future__ import annotations

from pathlib import Path

import click

from pkgrepo.client import powershell  # noqa: F401 - makes its completion known to click
from pkgrepo.client.groups import LazyGroup
from pkgrepo.commands.settings import Sources

from . import __version__

# Command: the name below pkgrepo and what the help says of it; None if it is made of an operation of the API, and
# a group without a name is one of such commands.
COMMANDS = {
    # on the machine of the server
    "init": ("commands.setup.init", "Write a configuration file with every setting"),
    "serve": ("commands.setup.serve", "Run the server in the foreground"),
    "check-config": ("commands.maintenance.check_config", "Check the settings and the environment of the server"),
    "health": ("commands.health.health", "Ask whether the server works"),
    "doctor": ("commands.doctor.doctor", "Check what the server needs, and what is stored"),
    "migrate": ("commands.maintenance.migrate", "Migrate the catalog to the schema of this version"),
    "migrate-catalog": ("commands.maintenance.migrate_catalog", "Copy the catalog to a PostgreSQL database"),
    "migrate-storage": ("commands.storages.migrate_storage", "Move the content of a storage to a bucket, or back"),
    "verify": ("commands.maintenance.verify", "Read and check all stored blobs"),
    "reindex": ("commands.maintenance.reindex", "Rebuild a lost catalog from the stored files"),
    "gc": ("commands.maintenance.collect_garbage", "Remove stored bytes that nothing refers to"),
    "compact": ("commands.maintenance.compact", "Write the list of versions of a Ruby repository anew"),
    "backup": ("commands.backups.backup", "Back up the catalog and all stored bytes to DESTINATION"),
    "restore": ("commands.backups.restore_backup", "Restore a backup"),
    "admin": ("commands.administrators.admin", "Create administrators, reset passwords"),
    # both
    "import": ("commands.imports.import_group", "Take packages in from another registry"),
    "bundle": ("commands.groups.bundle", "Repositories in one signed file"),
    "storage": ("commands.groups.storage", "Storages of a server, by its API"),
    # by the API of a server
    "login": ("client.login.login", "Get an access token from the server at URL"),
    "logout": ("client.login.logout", "Revoke the token of a profile, and remove the profile"),
    "profile": ("client.login.profile", "Profiles: the servers that you have logged in to"),
    "whoami": None,
    "repo": ("commands.groups.repo", "Repositories of a server, by its API"),
    "package": ("commands.groups.package", "Packages and versions on a server"),
    "search": None,
    "explain": ("client.packages.reads.explain", "Explain what clients get under the name of a package"),
    "snapshot": ("client.repositories.snapshot.snapshot", "Show what was changed in a repository since a date"),
    "setup": ("client.setup.commands.setup", "Set up npm, pip, docker and others for a repository"),
    "upload": ("client.transfers.upload.upload", "Publish files in a repository: packages of any format"),
    "download": ("client.transfers.download.download", "Download the files of a version"),
    "deploy": ("client.transfers.deploy.deploy", "Publish all artifacts of FOLDER at once, or none"),
    "mirror": ("client.transfers.mirror.mirror", "Have proxies fetch packages in advance"),
    "export": ("client.twins.commands.export", "Write a repository as plain files for a web server"),
    "twin": ("client.twins.commands.twin", "Repositories as plain files, see export"),
    "user": ("client.people.users.user", "Users of a server, by its API"),
    "group": ("client.people.groups.group", "Groups of users"),
    "token": ("client.people.tokens.token", "Your access tokens"),
    "project": ("", "Projects, which own package names, with their members"),
    "publisher": ("", "Pipelines that publish without a stored token, also called trusted publishing"),
    "stage": ("client.lifecycle.stages.stage", "Releases that wait for an approval"),
    "trash": ("", "What was deleted and can be restored: versions, packages, tags, repositories"),
    "retention": ("client.lifecycle.retention.retention", "Rules by which old versions go"),
    "quota": ("", "Quotas: what the server, storages, repositories, projects and users may hold"),
    "advisories": ("client.policy.advisories.advisories", "Known vulnerabilities of stored packages"),
    "block": None,
    "unblock": None,
    "blocks": None,
    "freeze": None,
    "thaw": None,
    "freezes": None,
    "rules": ("client.policy.rules.rules", "Rules about what is served"),
    "quarantine": ("", "Versions that a rule holds back until they are approved"),
    "rehearse": ("client.policy.rehearsal.rehearse", "Try rules on the requests of the last days"),
    "drill": ("client.policy.drill.drill", "Play published incidents with your rules"),
    "recalls": None,
    "recall": ("client.policy.recall.recall", "Show who fetched a version, and when"),
    "webhook": ("", "Webhooks: of the whole server, of a repository (--repository), or of a project (--project)"),
    "events": ("client.server.events.events", "Print events that you may see; the newest is the last"),
    "host": ("", "Host names, and path prefixes of other servers, that stand for repositories"),
    "stats": None,
    "jobs": ("client.server.activity.jobs", "Background jobs of a server, such as garbage collections"),
    "audit": ("client.server.activity.audit", "Read the audit log; the newest row is the last"),
    "top": ("client.server.top.top", "Show what the server does: requests, latency, lag"),
    "version": ("commands.setup.version", "Print the version of this program"),
    "completion": ("commands.setup.completion", "Print a script that completes commands in a shell"),
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
