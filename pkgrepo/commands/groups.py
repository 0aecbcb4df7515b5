"""Groups of commands whose members are in several modules; some of them also work on the data folder."""

from __future__ import annotations

import click

from pkgrepo.client.groups import LazyGroup

_REPO = {
    "list": None,
    "show": ("client.repositories.commands", "show_repository"),
    "create": ("client.repositories.commands", "create_repository"),
    "edit": ("client.repositories.commands", "edit_repository"),
    "delete": ("client.repositories.commands", "delete_repository"),
    "apply": ("client.apply.commands", "apply"),
    "gc": ("client.repositories.commands", "collect_garbage"),
    "uploads": ("client.repositories.uploads", "uploads"),
    "purge": ("client.repositories.commands", "purge_cache"),
    "replication": ("client.repositories.replication", "replication"),
    "promote-replica": ("client.repositories.replication", "promote_replica"),
    "rebuild": ("client.repositories.commands", "rebuild"),
    "verify": ("client.repositories.commands", "verify"),
}
_PACKAGE = {
    "list": None,
    "show": ("client.packages.reads", "show_package"),
    "versions": ("client.packages.reads", "list_versions"),
    "diff": ("client.packages.reads", "compare_versions"),
    "dependents": ("client.packages.reads", "list_dependents"),
    "yank": None,
    "unyank": None,
    "pin": None,
    "unpin": None,
    "pins": ("client.lifecycle.pins", "list_pins"),
    "promote": ("client.packages.changes", "promote"),
    "delete": ("client.packages.changes", "delete"),
    "tag": ("client.packages.changes", "set_tag"),
    "untag": ("client.packages.changes", "remove_tag"),
    "history": None,
}
_STORAGE = {
    "list": None,
    "show": None,
    "create": ("client.server.storages", "create_storage"),
    "edit": ("client.server.storages", "edit_storage"),
    "delete": None,
    "check": ("client.server.storages", "check_storage"),
    # on the machine of the server
    "adopt": ("commands.storages", "adopt_storage"),
    "move": ("commands.storages", "move_storage"),
}
_BUNDLE = {
    "write": ("client.transfers.bundles", "write"),
    "read": ("commands.imports", "read_bundle"),
}


@click.group("repo", cls=LazyGroup, lazy=_REPO)
def repo() -> None:
    """Repositories of a server, by its API."""


@click.group("package", cls=LazyGroup, lazy=_PACKAGE)
def package() -> None:
    """Packages and versions on a server. REPOSITORY is written as STORAGE/REPOSITORY."""


@click.group(cls=LazyGroup, lazy=_STORAGE)
def storage() -> None:
    """
    Storages of a server, by its API.

    "adopt" and "move" work on the data folder, for storages that were moved or belong to another catalog; stop the
    server first.
    """


@click.group("bundle", cls=LazyGroup, lazy=_BUNDLE)
def bundle() -> None:
    """Repositories in one signed file, for a server without a network."""
