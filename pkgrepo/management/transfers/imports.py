"""The route that takes in packages from elsewhere."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from msgspec import Meta, field

from pkgrepo.http.responses import Response
from pkgrepo.management.api.access_rules import PUBLIC, AccessRule
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.names import get_repository
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Body, Record, Word
from pkgrepo.management.jobs.maintenance import STILL_RUNNING, WAIT, answer_job
from pkgrepo.model import Action
from pkgrepo.repositories.upkeep.imports import ImportRequest
from pkgrepo.untrusted.text import ONE_LINE

IMPORTERS = AccessRule("the action admin in the repository that the body names", scope="api")
Source = Annotated[str, Meta(min_length=1, max_length=4096, pattern=ONE_LINE)]
Secret = Annotated[str, Meta(max_length=4096, pattern=ONE_LINE)]
Many = Annotated[list[Word], Meta(max_length=10_000)]

table = Table("repositories")


class CredentialsGiven(Body):
    """Credentials for the host of the source: a password with a user name, or a token without one."""

    username: Annotated[str, Meta(max_length=200, pattern=ONE_LINE)] = ""
    password: Secret = ""
    token: Secret = ""


class ImportGiven(Body):
    """
    What to take in.

    kind is that of the source, which is an address (http or https) or the path of a folder on the machine of the
    server; into is the repository (its id, or storage/name). only are globs of the names of packages; without them all
    are taken. names are names of packages, for a source that does not list them. repositories are those of the source,
    where it has several. renamed maps beginnings of names there to those here, for images. With dry_run nothing is
    fetched. With again packages are compared with what is here although the source says what it said the last time.
    keys are public keys (PEM), of which one has to have signed a bundle; without any those of imports.keys.
    """

    kind: Word
    source: Source
    into: Word
    credentials: CredentialsGiven | None = None
    only: Many = field(default_factory=list)
    names: Many = field(default_factory=list)
    repositories: Many = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    dry_run: bool = False
    again: bool = False
    keys: Annotated[list[Annotated[str, Meta(max_length=4096)]], Meta(max_length=20)] = field(default_factory=list)


class LeftOutRecord(Record):
    """Something that was not taken in. item is the name of a file, empty for a whole package."""

    package: str
    item: str
    reason: str


class Imported(Record):
    """
    What was taken in, or would be with dry_run.

    packages were looked at, of which unchanged were taken in before and are the same at the source. files were taken
    in, size_bytes together; present were there already. facts are yanks, deprecations, tags and download
    counts that were set. left_out lists what was not taken in, up to 1000 of left_out_count.
    """

    job_id: str
    dry_run: bool
    packages: int
    unchanged: int
    files: int
    size_bytes: int
    present: int
    facts: int
    left_out_count: int
    left_out: list[LeftOutRecord]
    errors: list[str]


class SourceRecord(Record):
    """
    A kind of source. addresses and folders are formats of repositories into which one at an address, or in a folder, is
    taken in. one_repository says what repositories has to name; empty: nothing.
    """

    name: str
    about: str
    one_repository: str
    addresses: list[str]
    folders: list[str]


@table.get("/import", PUBLIC, "List the kinds of sources of imports")
async def list_kinds(call: Call) -> list[SourceRecord]:
    """What the kind of an import may be, and for repositories of which formats."""
    return [
        SourceRecord.from_attributes(each, addresses=list(each.addresses), folders=list(each.folders))
        for each in call.services.imports.kinds
    ]


@table.post(
    "/import",
    IMPORTERS,
    "Take in packages from another registry or from a folder",
    query=(WAIT,),
    audit="repository.import",
    further=STILL_RUNNING,
)
async def take_in(call: Call, body: ImportGiven) -> Imported | Response:
    """
    Needs the action admin in the repository. Packages keep their times, publishers, yanks, deprecations and tags.

    Each file is verified with the digests that the source announces. What is here already is not fetched, and nothing
    is replaced, so that an import that was interrupted is continued by the next one. One runs at a time for each
    repository: while another one does, the answer is 409 with its Location.

    Addresses are subject to proxy.allow_private. Credentials are sent to the host of the source alone, and forgotten
    with the end of the job. The server reads only folders that imports.folders lists.
    """
    repository = await get_repository(call.registry, body.into, "/into", call.knows)
    await call.shared.access.require(call.identity, Action.ADMIN, repository)
    call.object = repository.path
    given = body.credentials or CredentialsGiven()
    request = ImportRequest(
        kind=body.kind,
        source=body.source,
        username=given.username,
        secret=given.password or given.token,
        only=body.only,
        names=body.names,
        renamed=body.renamed,
        repositories=body.repositories,
        dry_run=body.dry_run,
        again=body.again,
        keys=body.keys,
    )
    job = await answer_job(call, partial(call.services.imports, repository, request, call.actor), repository)
    return job if isinstance(job, Response) else imported(job.uid, job.result)


def imported(job_id: str, result: Any) -> Imported:
    """The record of what was taken in."""
    left_out = [LeftOutRecord(**each) for each in result["left_out"]]
    return Imported(job_id=job_id, **{**result, "left_out": left_out})
