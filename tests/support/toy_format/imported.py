"""What imports take, and where a repository has what lock files name."""

from __future__ import annotations

import re
from typing import Final

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid
from pkgrepo.gateway.imported.described import with_names
from pkgrepo.gateway.imported.items import Item, SourcePackage, Taking
from pkgrepo.gateway.imported.kinds import Imported, take_files
from pkgrepo.gateway.imported.sources import DocumentSource, PathFolder
from pkgrepo.gateway.mirrored.locks import Lock, Wanted, parse_hashes
from pkgrepo.gateway.mirrored.places import LockFile, Mirrored, by_listing, is_version
from pkgrepo.model import BlobInfo
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged

from .index import document_request, make_release
from .names import NAME, check_name, parse_path

_LINE: Final = re.compile(r"(\S+)==(\S+)((?:\s+sha256:[0-9a-f]{64})*)\s*")


async def _take(_package: SourcePackage, item: Item, _staged: Staged, blob: BlobInfo, _pools: Pools) -> Release:
    return make_release(item.path, blob)


def read_lock(text: str) -> Lock:
    """A lock file: lines of ``name==version sha256:HEX ...``. :raises Invalid: it is another file"""
    lock = Lock()
    for line in text.splitlines():
        found = _LINE.fullmatch(line)
        if found is None:
            raise Invalid("it has a line that is not name==version sha256:HEX")
        lock.want(Wanted(format=NAME, name=found[1], version=found[2], digests=parse_hashes(found[3].split())))
    return lock


IMPORTED: Final = Imported(
    kind=NAME,
    about="Toy packages: a toy repository by its address, or a folder of <name>/<version>/<file>.",
    address=lambda site, request: with_names(
        DocumentSource(site, lambda name: document_request(check_name(name))), request.names
    ),
    folder=lambda folder, _: PathFolder(folder, parse_path),
    taker=take_files(Taking(take=_take)),
    listed=False,
)
MIRRORED: Final = Mirrored(
    lock_files=(LockFile(("toy.lock",), read_lock, frozenset({NAME})),),
    read_list=read_lock,
    text_sign=re.compile(r"^\S+==\S+ sha256:", re.MULTILINE),
    document_keys=lambda wanted: iter([check_name(wanted.name)]),
    places=by_listing(lambda wanted: check_name(wanted.name)),
    is_wanted=is_version,
)
