"""``pkgrepo stats``: what a repository contains and how it is used."""

from __future__ import annotations

from typing import Any

import click

from pkgrepo.commands.remote.printer import moment
from pkgrepo.commands.remote.session import Session, remote
from pkgrepo.web.rendering.filters import size


@click.command()
@click.argument("repository", metavar="STORAGE/REPOSITORY")
@remote
async def stats(session: Session, repository: str) -> None:
    """Show statistics of a repository."""
    found = await session.client.get("repository", repository, "stats")
    session.printer.warnings(found)
    downloads, uploads = found["downloads"], found["uploads"]
    top = [
        f"{each['name']}: {each['downloads']} downloads, {each['versions']} versions, {size(each['bytes'])}"
        for each in found["top_packages"]
    ]
    session.printer.record(
        found,
        [
            ("repository", repository),
            ("format", found["format"]),
            ("type", found["type"]),
            ("packages", found["total_packages"]),
            ("versions", found["total_versions"]),
            ("files", found["total_files"]),
            ("stored", size(found["storage_used_bytes"])),
            ("with repetitions", size(found["logical_bytes"])),
            ("shared", size(found["shared_bytes"])),
            ("unreferenced", size(found["unreferenced_bytes"])),
            ("downloads", "{total} ({day} today, {week} in 7 days, {month} in 30)".format(**downloads)),
            ("uploads", "{total} ({day} in 24 hours)".format(**uploads)),
            ("last activity", moment(found["last_activity"])),
            ("cache", _cache(found["cache"])),
            ("last gc", _job(found["gc"])),
            ("most used", "\n".join(top)),
        ],
    )


def _cache(counts: dict[str, Any] | None) -> str | None:
    if counts is None:
        return None
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in counts.items())


def _job(job: dict[str, Any] | None) -> str | None:
    return None if job is None else f"{job['state']}, {moment(job['created_at'])}"
