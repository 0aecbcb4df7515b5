"""Groups of commands whose members are in several modules; some of them also work on the data folder."""

from __future__ import annotations

import click

from pkgrepo.client.groups import LazyGroup

_REPO = {
    "list": None,
    "show": ("client.repositories.commands.show_repository", "Show a repository and its configuration"),
    "create": ("client.repositories.commands.create_repository", "Create a repository: hosted, proxy or virtual"),
    "starter": None,
    "edit": ("client.repositories.commands.edit_repository", "Change a repository, and values of its configuration"),
    "delete": None,
    "apply": ("client.apply.commands.apply", "Create and change repositories, groups, rights"),
    "gc": ("client.repositories.commands.collect_garbage", "Remove bytes of a repository that nothing refers to"),
    "uploads": ("", "Unfinished uploads of a repository of images"),
    "purge": ("client.repositories.commands.purge_cache", "Let a proxy forget what it keeps of its upstreams"),
    "replication": None,
    "promote-replica": ("client.repositories.replication.promote_replica", "Make a replica a hosted repository"),
    "rebuild": ("client.repositories.commands.rebuild", "Make the documents of all packages anew"),
    "verify": ("client.repositories.commands.verify", "Read every stored file and compare its digest"),
}
_PACKAGE = {
    "list": None,
    "show": None,
    "versions": None,
    "diff": None,
    "dependents": None,
    "yank": None,
    "unyank": None,
    "pin": None,
    "unpin": None,
    "pins": None,
    "promote": None,
    "delete": None,
    "tag": ("client.packages.changes.set_tag", "Let a tag stand for a version: a dist-tag of an npm package"),
    "untag": ("client.packages.changes.remove_tag", "Remove a tag; the version stays"),
    "history": None,
}
_STORAGE = {
    "list": None,
    "show": None,
    "create": ("client.server.storages.create_storage", "Add a storage to a server: an empty or new folder"),
    "edit": ("client.server.storages.edit_storage", "Change a storage of a server"),
    "delete": None,
    "check": ("client.server.storages.check_storage", "Write, read and remove a small file in a storage"),
    # on the machine of the server
    "adopt": ("commands.storages.adopt_storage", "Assign a storage that belongs to another catalog to this one"),
    "move": ("commands.storages.move_storage", "Set the folder of a storage, after it was moved or copied there"),
}
_BUNDLE = {
    "write": ("client.transfers.bundles.write", "Write what repositories have into FILE, signed by the server"),
    "read": ("commands.imports.read_bundle", "Take in a bundle; a server may run at the same time"),
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
