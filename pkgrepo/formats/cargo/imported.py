"""Crates from elsewhere: a registry by the address of its index, and folders of crates, perhaps with an index."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from attrs import evolve

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid
from pkgrepo.formats.cargo.changes import make_release
from pkgrepo.formats.cargo.crate import read_crate
from pkgrepo.formats.cargo.index import INDEX, IS_YANKED
from pkgrepo.formats.cargo.names import crate_path, package_key, prefix
from pkgrepo.formats.cargo.proxied import index_question
from pkgrepo.gateway.imported.described import with_names
from pkgrepo.gateway.imported.items import Item, SourcePackage, State, Taking
from pkgrepo.gateway.imported.kinds import Imported, take_files
from pkgrepo.gateway.imported.sources import DocumentSource, FolderDocuments, PathFolder
from pkgrepo.model import BlobInfo, VersionState
from pkgrepo.proxy.parts.values import Entry
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.repositories.semver import parse_version

OF_REGISTRY: Final = frozenset({"cksum", "pubtime", "yanked"})  # the fields that are not of the publisher
_FILE: Final = re.compile(r"(?:.*/)?(?P<name>[A-Za-z_][A-Za-z0-9_-]*?)-(?P<version>\d+\.\d+\.\d+.*)\.crate")


def read_path(path: str) -> tuple[str, str]:
    """The crate (a key) and the version of a file in a folder. :raises Invalid: it is no crate"""
    found = _FILE.fullmatch(path)
    if found is None:
        raise Invalid("its name is not <name>-<version>.crate")
    return package_key(found["name"]), parse_version(found["version"]).text


def _state_of(entry: Entry) -> State | None:
    return (VersionState.YANKED, "") if IS_YANKED.search(entry.fragments[INDEX]) else None


async def take(_package: SourcePackage, item: Item, staged: Staged, blob: BlobInfo, pools: Pools) -> Release:
    """The release of a crate, with its line in the index of the source; see L{Take}."""
    crate = await staged.inspect(pools.cpu, blob, read_crate)
    if crate_path(crate.key, crate.version.text) != item.path:
        raise Invalid(f"it says of itself that it is {crate.name} {crate.version.text}")
    if item.about is not None:
        line: dict[str, Any] = msgspec.json.decode(item.about[INDEX])
        crate = evolve(crate, line={key: value for key, value in line.items() if key not in OF_REGISTRY})
    return make_release(crate, blob)


IMPORTED: Final = Imported(
    kind="cargo",
    about="Crates of Rust: a registry by the address of its sparse index, or a folder of crates.",
    address=lambda site, request: with_names(
        DocumentSource(site, lambda name: index_question(package_key(name)), _state_of), request.names
    ),
    folder=lambda folder, _: PathFolder(
        folder,
        read_path,
        path_of=lambda path: crate_path(*read_path(path)),
        documents=FolderDocuments(
            below="index",
            path=lambda key: f"{prefix(key)}/{key}",
            request=index_question,
            service={"dl": "http://localhost"},  # which is not asked
            state_of=_state_of,
        ),
    ),
    taker=take_files(Taking(take=take)),
    read=read_path,
    listed=False,
    states=True,
)
