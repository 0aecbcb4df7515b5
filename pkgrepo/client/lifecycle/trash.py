"""``pkgrepo trash``: what was deleted, its restoring, and its deletion for good."""

from __future__ import annotations

import click

from pkgrepo.client.generated import add_operations


@click.group()
def trash() -> None:
    """What was deleted and can be restored: versions, packages, tags, repositories."""


add_operations(trash, "trash")
