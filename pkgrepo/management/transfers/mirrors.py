"""The route that has a repository fetch what lock files name."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final

from msgspec import Meta, field

from pkgrepo.errors import Invalid
from pkgrepo.gateway.mirrored.choosing import Chosen
from pkgrepo.gateway.mirrored.reading import Formats, find_formats, read_lock
from pkgrepo.http.responses import Response
from pkgrepo.management.api.access_rules import EDITORS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import Errors, JobId, PackageName
from pkgrepo.management.api.names import check_independent
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Body, Record, Word
from pkgrepo.management.jobs.maintenance import STILL_RUNNING, WAIT, answer_job
from pkgrepo.management.packages.paths import PathRecord, listed
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.upkeep.mirrors import LockFile, MirrorRequest

MOST_TEXT: Final = 16 * 1024 * 1024  # characters of all lock files; those of the largest projects have about 5 million
LARGEST: Final = 32 * 1024 * 1024  # bytes of the body

table = Table("repositories")


class LockGiven(Body):
    """
    A lock file. Its name says which kind it is: package-lock.json, npm-shrinkwrap.json, yarn.lock, pnpm-lock.yaml,
    bun.lock; uv.lock, poetry.lock, pdm.lock, pylock.toml, Pipfile.lock; Gemfile.lock; Cargo.lock; conda-lock.yml,
    pixi.lock; gradle.lockfile. Any other name is that of requirements of pip, of the output of conda list --explicit,
    of dependency:list or dependency:tree of Maven, of a list of paths in a Maven repository, or of a list of images.
    """

    name: Annotated[Word, meaning("The name of the file, which says of which kind it is.")]
    text: Annotated[str, meaning("The content of the file.")]


class MirrorGiven(Body):
    """What the locks name is fetched, without any what mirror.patterns of the configuration name."""

    locks: Annotated[
        list[LockGiven],
        Meta(max_length=100),
        meaning("Lock files that name what to fetch; without any, mirror.patterns of the configuration."),
    ] = field(default_factory=list)
    only: Annotated[
        list[Word], Meta(max_length=100), meaning("Globs of names of files of the locks; all files without any.")
    ] = field(default_factory=list)


class MirrorProblem(Record):
    """
    Something that a site without internet will not have.

    kind is refused (by a rule), not_found, digest_differs (from that of the lock file), failed (an upstream), or
    left_out (it comes from no registry).
    """

    kind: Annotated[str, meaning("refused, not_found, digest_differs, failed or left_out.")]
    package: PackageName
    item: Annotated[str, meaning("The file or the version.")]
    reason: Annotated[str, meaning("The reason, for people.")]


class Mirrored(Record):
    """
    What was fetched of packages: so many files (of an image: manifests and blobs), fetched_bytes together; present were
    kept before.
    """

    job_id: JobId
    packages: Annotated[int, meaning("How many packages were named.")]
    fetched: Annotated[int, meaning("How many files were fetched; of images, manifests and blobs.")]
    fetched_bytes: Annotated[int, meaning("The size of what was fetched, in bytes.")]
    present: Annotated[int, meaning("How many files were kept before.")]
    refused: Annotated[int, meaning("How many were refused by a rule.")]
    not_found: Annotated[int, meaning("How many no upstream has.")]
    digest_differs: Annotated[int, meaning("How many have another digest than the lock file names.")]
    failed: Annotated[int, meaning("How many failed at an upstream.")]
    left_out: Annotated[int, meaning("How many come from no registry.")]
    problems_count: Annotated[int, meaning("How many problems there were in all.")]
    problems: Annotated[list[MirrorProblem], meaning("The problems, up to 1000.")]
    errors: Errors


@table.post(
    "/repository/<repository>/mirror",
    EDITORS,
    "Fetch what lock files name",
    query=(WAIT,),
    audit="repository.mirror",
    further=STILL_RUNNING,
    largest=LARGEST,
    every_format=True,
)
async def mirror(call: Call, body: MirrorGiven) -> Mirrored | Response:
    """
    A proxy, or the proxies of a virtual repository, fetch and keep the files, with the documents that clients read.

    Each is fetched as a client gets it: rules apply, and its bytes are verified with what the upstream announces; its
    digests are compared with those of the lock file. Of a hosted repository it is checked that all is there. What is
    kept is not fetched again, so that a mirror that was interrupted is continued by the next one. One runs at a time
    for each repository: while another one does, the answer is 409 with its Location.
    """
    check_independent(call.repository)
    if sum(len(each.text) for each in body.locks) > MOST_TEXT:
        raise Invalid(f"the lock files have more than {MOST_TEXT} characters together", "/locks")
    locks = [LockFile(each.name, each.text) for each in body.locks]
    request = MirrorRequest(locks=locks, only=body.only)
    repository = call.repository
    job = await answer_job(call, partial(call.services.mirrors, repository, request, call.actor), repository)
    return job if isinstance(job, Response) else mirrored(job.uid, job.result)


class ChosenPaths(Record):
    """What lock files name of a repository, in the order of the operation that lists its paths."""

    items: Annotated[list[PathRecord], meaning("The files and documents that are chosen, and the images.")]
    missing: Annotated[dict[str, str], meaning("What the locks name and is not listed, with the reason.")]


@table.post(
    "/repository/<repository>/paths",
    EDITORS,
    "List the files and documents that lock files name",
    asks=True,
    largest=LARGEST,
    every_format=True,
)
async def choose_paths(call: Call, body: MirrorGiven) -> ChosenPaths:
    """A bundle for lock files is made of it, after the operation mirror has fetched what was missing."""
    chosen, formats = Chosen(call.format.mirrored, body.only), _formats(call)
    for each in body.locks:
        chosen.add(await call.shared.pools.cpu(read_lock, each.name, each.text, call.format.name, formats))
    items = [path async for _, some in listed(call, "", chosen) for path in some]
    return ChosenPaths(items=items, missing=chosen.missing())


class LockFormats(Record):
    """The formats of the repositories that a lock file may be for."""

    formats: Annotated[list[str], meaning("The names of the formats; all that may be, if nothing tells.")]


@table.post(
    "/repository/<repository>/lock-formats",
    EDITORS,
    "Show which formats a lock file may be for",
    asks=True,
    largest=LARGEST,
    every_format=True,
)
async def show_lock_formats(call: Call, body: LockGiven) -> LockFormats:
    """Its name tells, or its text, whatever the format of the repository is."""
    found = await call.shared.pools.cpu(find_formats, body.name, body.text, _formats(call))
    return LockFormats(formats=sorted(found))


def _formats(call: Call) -> Formats:
    return {name: each.mirrored for name, each in call.services.formats.items()}


def mirrored(job_id: str, result: Any) -> Mirrored:
    """The record of what was fetched."""
    problems = [MirrorProblem(**each) for each in result["problems"]]
    return Mirrored(job_id=job_id, **{**result, "problems": problems})
