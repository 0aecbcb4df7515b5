"""``pkgrepo stats``: what a repository contains and how it is used, and how the whole server is."""

from __future__ import annotations

from typing import Any

import click

from pkgrepo.commands.remote.printer import Column, moment
from pkgrepo.commands.remote.session import Session, remote
from pkgrepo.errors import Invalid
from pkgrepo.web.rendering.filters import size

DAYS = (
    Column("DAY (UTC)", "day"),
    Column("DOWNLOADS", "downloads", right=True),
    Column("UPLOADS", "uploads", right=True),
    Column("FROM CACHES", "hits", right=True),
    Column("FROM UPSTREAMS", "misses", right=True),
)


@click.command()
@click.argument("repository", metavar="[STORAGE/REPOSITORY]", required=False)
@click.option("--days", type=click.IntRange(min=1), help="Of the whole server: the last so many days.")
@remote
async def stats(session: Session, repository: str | None, days: int | None) -> None:
    """Show what a repository contains and how it is used, or how the whole server was used by day."""
    if repository is None:
        found = await session.client.get("statistics", days=days)
        session.printer.table(DAYS, found if session.printer.as_json else found["days"])
        return
    if days is not None:
        raise Invalid("--days is for the whole server")
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
