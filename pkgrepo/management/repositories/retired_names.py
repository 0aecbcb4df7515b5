"""The routes of the names of packages that a hosted repository had."""

from __future__ import annotations

from datetime import datetime

from pkgrepo.errors import NotFound
from pkgrepo.interfaces import Transaction
from pkgrepo.management.api.access_rules import EDITORS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Body, Record
from pkgrepo.storage.catalog.packages.retired_names import list_retired, release
from pkgrepo.storage.catalog.server import repositories


class RetiredNameRecord(Record):
    """The name (key) of a package that was removed. Virtual repositories around this one ask no upstream for it."""

    key: str
    retired_at: datetime


class Release(Body):
    """The name of a package that was removed here, and that upstreams may be asked for from now on."""

    package: str


class Released(Record):
    """The key of the package whose name was released."""

    key: str


table = Table("repositories")


@table.route(
    "GET",
    "/repository/<repository>/retired-names",
    access=EDITORS,
    summary="List the names of packages that were removed from a repository",
    answer=RetiredNameRecord,
    paged=True,
)
async def list_retired_names(call: Call) -> Page[RetiredNameRecord]:
    """Only names that no package has now. Repositories that are not hosted have none."""
    return await call.page(
        list_retired, call.repository.id, by=lambda each: each.key, show=RetiredNameRecord.from_attributes
    )


@table.route(
    "POST",
    "/repository/<repository>/retired-names/release",
    access=EDITORS,
    summary="Release the name of a package that was removed",
    body=Release,
    answer=Released,
    audit="name.release",
)
async def release_name(call: Call, body: Release) -> Released:
    """From then on virtual repositories around this one ask upstreams for it, whoever publishes it there."""
    key = call.services.formats[call.repository.format].package_key(body.package)
    await call.write(call.entry(f"{call.repository.path}/{key}"), _release, call.repository.id, key)
    return Released(key=key)


def _release(tx: Transaction, repository_id: int, key: str) -> None:
    """:raises NotFound: the name is not retired"""
    if not release(tx, repository_id, key):
        raise NotFound("retired name", key)
    repositories.bump_names_serial(tx, repository_id)  # lists of virtual repositories show it from now on
