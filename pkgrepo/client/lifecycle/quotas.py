"""``pkgrepo quota``: what the server, storages, repositories, projects and users may hold."""

from __future__ import annotations

import click

from pkgrepo.client.generated import add_operations


@click.group()
def quota() -> None:
    """Quotas: what the server, storages, repositories, projects and users may hold."""


add_operations(quota, "quota")
