"""The readable layout of images, and the commands that check it and restore from it."""

from __future__ import annotations

import json
from pathlib import Path

from pkgrepo.repositories.upkeep.jobs import NoProgress
from pkgrepo.repositories.upkeep.mending import Mender
from pkgrepo.repositories.upkeep.reindex import Reindexer, ReindexReport
from pkgrepo.repositories.upkeep.verify import Verifier, VerifyReport
from tests.support.images import Registry

REF_NAME = "org.opencontainers.image.ref.name"


def top(registry: Registry, image: str = "app") -> Path:
    """The directory of an image."""
    return registry.stack.folder / "data/storages/main/repositories/images" / image


def tags(folder: Path) -> dict[str, str]:
    """The tags in an image's directory, with their digests."""
    found = json.loads((folder / "index.json").read_bytes())["manifests"]
    return {each["annotations"][REF_NAME]: each["digest"] for each in found if "annotations" in each}


def untagged(folder: Path) -> set[str]:
    """The digests of the manifests in the index that have no tag."""
    found = json.loads((folder / "index.json").read_bytes())["manifests"]
    return {each["digest"] for each in found if "annotations" not in each}


async def verify(registry: Registry, *, repair: bool = False) -> VerifyReport:
    """Compare the layout with the catalog."""
    context = registry.stack.assembly.core.context
    return await Verifier(context, progress=NoProgress(), repair=repair, mender=Mender(context)).run()


def lose_catalog(data: Path) -> None:
    """Delete the database in a data folder, and each storage's owner file, so that L{reindex} may use the storages."""
    for path in (*data.glob("*.db*"), *data.glob("storages/*/owner.json")):
        path.unlink()


async def reindex(registry: Registry) -> ReindexReport:
    """Restore the catalog from the layout."""
    return await Reindexer(registry.stack.assembly.core.context, progress=NoProgress()).run()
