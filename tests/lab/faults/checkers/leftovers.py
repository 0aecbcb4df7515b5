"""What a collection of garbage without a time of grace leaves that nothing refers to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from tests.support.data_folder import DataFolder
from tests.support.first_publishes import Publisher

from .contents import listed

SETTLED_S: Final = 60  # of what a server removes by itself after a start
BODY: Final = {"grace_seconds": 0, "delete_untagged": False, "upload_idle_seconds": 0}
REFERRING: Final = ("file", "manifest", "package_blob", "trash_blob", "deployment_file", "upstream_document")
# Blobs that were claimed while a clock was ahead are young until that time comes.
UNREFERENCED: Final = "SELECT locator FROM blob b WHERE touched_at <= {now_ms} AND " + " AND ".join(
    f"NOT EXISTS (SELECT 1 FROM {each} x WHERE x.sha256 = b.sha256)" for each in REFERRING
)


def collect(api: Publisher) -> None:
    """Collect the garbage of all hosted repositories."""
    for each in listed(api, "api/repository"):
        if each["type"].lower() != "hosted":
            continue
        place = f"api/repository/{quote(each['storage_name'] + '/' + each['name'], safe='')}/gc?wait=60"
        ends_at = time.monotonic() + SETTLED_S
        while (answer := api.send("POST", place, json=BODY)).status_code == 409 and time.monotonic() < ends_at:
            time.sleep(0.5)  # the lease of a collection that a fault ended
        assert answer.ok, f"POST {place}: {answer.status_code} {answer.text[:300]}"


def leftovers(api: Publisher, data: DataFolder) -> Iterator[str]:
    """Bytes that no row names, rows that nothing refers to, and files of uploads, after a collection."""
    collect(api)
    ends_at = time.monotonic() + SETTLED_S
    while (found := [*_found(data)]) and time.monotonic() < ends_at:
        time.sleep(0.5)
    yield from found


def _found(data: DataFolder) -> Iterator[str]:
    named, copies = data.named(), set(data.copies())
    yield from (f"the storage has {each}, which the catalog does not name" for each in sorted(copies - named))
    yield from (f"the catalog names {each}, which the storage does not have" for each in sorted(named - copies))
    old = UNREFERENCED.format(now_ms=int(time.time() * 1000))
    yield from (f"nothing refers to {row[0]}" for row in data.rows(old))
    yield from (f"an upload has left {each.name}" for each in data.unfinished())
