"""The route that takes in packages from elsewhere."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from msgspec import Meta, field

from pkgrepo.http.responses import Response
from pkgrepo.management.api.access_rules import PUBLIC, AccessRule
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import DryRun, Errors, JobId, PackageName
from pkgrepo.management.api.names import get_repository
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Body, Record, Word
from pkgrepo.management.jobs.maintenance import STILL_RUNNING, WAIT, answer_job
from pkgrepo.model import Action
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.upkeep.imports import ImportRequest
from pkgrepo.untrusted.text import ONE_LINE

IMPORTERS = AccessRule("the action admin in the repository that the body names", scope="api")
Source = Annotated[str, Meta(min_length=1, max_length=4096, pattern=ONE_LINE)]
Secret = Annotated[str, Meta(max_length=4096, pattern=ONE_LINE)]
Many = Annotated[list[Word], Meta(max_length=10_000)]

table = Table("repositories")


class CredentialsGiven(Body):
    """Credentials for the host of the source: a password with a user name, or a token without one."""

    username: Annotated[str, Meta(max_length=200, pattern=ONE_LINE), meaning("The user name; empty with a token.")] = ""
    password: Annotated[Secret, meaning("The password of the user.")] = ""
    token: Annotated[Secret, meaning("A token, without a user name.")] = ""


class ImportGiven(Body):
    """
    What to take in.

    With dry_run nothing is fetched. With again packages are compared with what is here although the source says what it
    said the last time.
    """

    kind: Annotated[Word, meaning("The kind of the source.")]
    source: Annotated[
        Source, meaning("An address (http or https), or the path of a folder on the machine of the server.")
    ]
    into: Annotated[Word, meaning("The repository that takes it in: its id, or storage/name.")]
    credentials: Annotated[CredentialsGiven | None, meaning("Credentials for the host of the source.")] = None
    only: Annotated[Many, meaning("Globs of the names of packages; all packages without any.")] = field(
        default_factory=list
    )
    names: Annotated[Many, meaning("Names of packages, for a source that does not list them.")] = field(
        default_factory=list
    )
    repositories: Annotated[Many, meaning("The repositories of the source, where it has several.")] = field(
        default_factory=list
    )
    renamed: Annotated[dict[str, str], meaning("For images, beginnings of names there and those here.")] = field(
        default_factory=dict
    )
    dry_run: Annotated[bool, meaning("Whether nothing is fetched, and the answer is what would be.")] = False
    again: Annotated[
        bool, meaning("Whether packages are compared although the source says what it said the last time.")
    ] = False
    keys: Annotated[
        list[Annotated[str, Meta(max_length=4096)]],
        Meta(max_length=20),
        meaning("Public keys (PEM) of which one has signed a bundle; by default those of imports.keys."),
    ] = field(default_factory=list)


class LeftOutRecord(Record):
    """Something that was not taken in."""

    package: PackageName
    item: Annotated[str, meaning("The name of a file; empty for a whole package.")]
    reason: Annotated[str, meaning("The reason, for people.")]


class Imported(Record):
    """What was taken in, or would be with dry_run."""

    job_id: JobId
    dry_run: DryRun
    packages: Annotated[int, meaning("How many packages were looked at.")]
    unchanged: Annotated[int, meaning("How many of the packages were taken in before and are the same at the source.")]
    files: Annotated[int, meaning("How many files were taken in.")]
    size_bytes: Annotated[int, meaning("The size of the files together, in bytes.")]
    present: Annotated[int, meaning("How many files were there already.")]
    facts: Annotated[int, meaning("How many yanks, deprecations, tags and download counts were set.")]
    left_out_count: Annotated[int, meaning("How many were not taken in.")]
    left_out: Annotated[list[LeftOutRecord], meaning("What was not taken in, up to 1000.")]
    errors: Errors


class SourceRecord(Record):
    """A kind of source."""

    name: Annotated[str, meaning("The name of the kind.")]
    about: Annotated[str, meaning("What it takes in, for people.")]
    one_repository: Annotated[str, meaning("What repositories has to name; empty for nothing.")]
    addresses: Annotated[list[str], meaning("The formats of repositories that take one at an address.")]
    folders: Annotated[list[str], meaning("The formats of repositories that take one in a folder.")]


@table.get("/import", PUBLIC, "List the kinds of sources of imports", every_format=True)
async def list_kinds(call: Call) -> list[SourceRecord]:
    """What the kind of an import may be, and for repositories of which formats."""
    return [
        SourceRecord.from_attributes(each, addresses=list(each.addresses), folders=list(each.folders))
        for each in (await call.services.imports.get(call.shared.pools.cpu)).kinds
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
    importers = await call.services.imports.get(call.shared.pools.cpu)
    job = await answer_job(call, partial(importers, repository, request, call.actor), repository)
    return job if isinstance(job, Response) else imported(job.uid, job.result)


def imported(job_id: str, result: Any) -> Imported:
    """The record of what was taken in."""
    left_out = [LeftOutRecord(**each) for each in result["left_out"]]
    return Imported(job_id=job_id, **{**result, "left_out": left_out})
