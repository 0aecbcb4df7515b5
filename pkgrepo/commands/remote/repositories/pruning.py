"""What ``pkgrepo repo apply --prune`` removes: the repositories that a file does not name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from pkgrepo.commands.remote.client import Client
from pkgrepo.web.rendering.filters import plural, size

from .definitions import Definition


@frozen
class Surplus:
    """A repository of the server that the file does not name."""

    path: str
    packages: int
    size: int

    def __str__(self) -> str:
        return f"{self.path}: delete, with {plural(self.packages, 'package')} ({size(self.size)})"

    def to_json(self, *, dry_run: bool) -> dict[str, Any]:
        """It for programs; ``dry_run`` tells that nothing was done."""
        return {"repository": self.path, "action": "delete", "dry_run": dry_run, "packages": self.packages}


async def find_surplus(client: Client, definitions: Sequence[Definition]) -> list[Surplus]:
    """
    The repositories that the file does not name, in the storages that it names; virtual ones first.

    Those of other storages are none of its business, and companions go with the repository that they belong to.
    """
    storages = {each.storage.casefold() for each in definitions}
    named = {each.path.casefold() for each in definitions}
    found = [
        each
        for each in await client.all_items("repository", include_usage=True)
        if each["storage_name"].casefold() in storages and "/" not in each["name"]
    ]
    found.sort(key=lambda each: each["type"] != "Virtual")  # which may have others as members
    every = [
        Surplus(f"{each['storage_name']}/{each['name']}", each["package_count"] or 0, each["usage_bytes"] or 0)
        for each in found
    ]
    return [each for each in every if each.path.casefold() not in named]


async def remove_surplus(client: Client, surplus: Sequence[Surplus]) -> None:
    """Delete the repositories; their content is kept for seven days."""
    for each in surplus:
        await client.change("DELETE", "repository", each.path, confirm=each.path)
