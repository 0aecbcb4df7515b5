"""The group ``pkgrepo storage``: the storages of a server by its API, and commands on its data folder."""

from __future__ import annotations

import click

from .groups import LazyGroup

LAZY = {
    "list": ("remote.repositories.storages", "list_storages"),
    "show": ("remote.repositories.storages", "show_storage"),
    "create": ("remote.repositories.storages", "create_storage"),
    "edit": ("remote.repositories.storages", "edit_storage"),
    "delete": ("remote.repositories.storages", "delete_storage"),
    "check": ("remote.repositories.storages", "check_storage"),
    # on the machine of the server
    "adopt": ("storages", "adopt_storage"),
    "move": ("storages", "move_storage"),
}


@click.group(cls=LazyGroup, lazy=LAZY)
def storage() -> None:
    """
    Storages of a server, by its API.

    "adopt" and "move" work on the data folder, for storages that were moved or belong to another catalog; stop the
    server first.
    """
