"""The records that the pages of a repository begin with."""

from __future__ import annotations

from typing import Any

from .visits import Visit


async def find_repository(visit: Visit, storage: str, name: str) -> Any:
    """The record of a repository. :raises NotFound: there is none that the caller may read"""
    return await visit.api("GET", "/repository/<repository>", {"repository": f"{storage}/{name}"})
