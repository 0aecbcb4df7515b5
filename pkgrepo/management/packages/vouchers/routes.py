"""The route that shows who vouches for the files of a version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pkgrepo.errors import BlobMissing
from pkgrepo.interfaces import Reader
from pkgrepo.management.api.access_rules import CONTENT_READERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.route import Table
from pkgrepo.management.packages.handlers import find_version
from pkgrepo.management.packages.schema import Vouchers
from pkgrepo.model import File
from pkgrepo.storage.catalog.packages.files import list_files_of_version

from .documents import LARGEST, kind_of, read_vouchers

MOST_FILES: Final = 2000  # of a version, among which documents are looked for
MOST_DOCUMENTS: Final = 20


table = Table("packages")


@table.route(
    "GET",
    "/package/<repository>/<package>/versions/<version>/vouchers",
    access=CONTENT_READERS,
    summary="Show who vouches for the files of a version",
    answer=Vouchers,
)
async def list_attestations(call: Call, version: str) -> Vouchers:
    """
    From OpenPGP signatures, Sigstore bundles and attestations (PEP 740) that are stored with the files.

    Nothing is verified: by is who the document says has signed. For images, see their referrers.
    """
    _, found = await find_version(call, version)
    documents = await call.catalog.scan(_documents, found.id)
    shared = call.services.shared
    items = []
    for each in documents[:MOST_DOCUMENTS]:
        if each.size > LARGEST:
            continue
        try:
            data = await shared.files.read(each.storage_id, each.locator, each.size)
        except BlobMissing:
            continue
        items += await shared.pools.cpu(read_vouchers, each.path, data)
    return Vouchers(items=items, complete=len(documents) <= MOST_DOCUMENTS)


def _documents(r: Reader, version_id: int) -> Sequence[File]:
    return [each for each in list_files_of_version(r, version_id, limit=MOST_FILES) if kind_of(each.path)]
