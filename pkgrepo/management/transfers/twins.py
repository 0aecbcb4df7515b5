"""
The routes of static twins: their signed lists, and those that the server keeps up to date.

Lists are signed by an Ed25519 key of the server.

The key is made when it is first needed, and sealed with the key of stored credentials. The signed text names the
repository: who may have a list signed for one repository cannot use it for another.
"""

from __future__ import annotations

import base64
from datetime import datetime
from functools import partial
from typing import Annotated, Final, Literal

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import Meta

from pkgrepo.http.responses import Response
from pkgrepo.management.api.access_rules import ADMINS, PUBLIC, SYSTEM_MANAGERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import Errors, JobId, ProblemSentence, RepositoryPath
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Body, Record
from pkgrepo.management.jobs.maintenance import STILL_RUNNING, WAIT, answer_job
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.clock import format_time, from_ms
from pkgrepo.storage.catalog.server import settings
from pkgrepo.untrusted.patterns import pattern

SETTING: Final = "twin_signing_key"
CONTEXT: Final = "key that signs lists of twins"

table = Table("repositories")
server_table = Table("server")


class TwinList(Body):
    """The list of a twin: its sha256 in hex, and how many files it has; or that of a repository in a bundle (of)."""

    list_sha256: Annotated[
        str,
        Meta(pattern=pattern("^[0-9a-f]{64}$", "64 hexadecimal digits")),
        meaning("The sha256 of the list, in hex."),
    ]
    files: Annotated[int, Meta(ge=0, le=10**12), meaning("How many files the list has.")]
    of: Annotated[Literal["twin", "bundle"], meaning("What the list is of.")] = "twin"


class TwinSignature(Record):
    """The text that was signed, its Ed25519 signature in Base64, and the public key in PEM."""

    statement: Annotated[str, meaning("The text that was signed.")]
    signature: Annotated[str, meaning("The Ed25519 signature, in Base64.")]
    key: Annotated[str, meaning("The public key, in PEM.")]
    signed_at: Annotated[datetime, meaning("When it was signed.")]


class TwinKey(Record):
    """The public key of the server for twins, in PEM."""

    key: Annotated[str, meaning("The public key of the server for twins, in PEM.")]


@table.post("/repository/<repository>/twin", ADMINS, "Sign the list of a twin", audit="repository.sign_twin")
async def sign_twin(call: Call, body: TwinList) -> TwinSignature:
    """
    Signs the list of the files of a static twin, which pkgrepo export has made of the repository.

    The server does not compare the list with the repository: it says that an admin of it has exported this.
    """
    private = await _private_key(call)
    statement = (
        f"pkgrepo {body.of} 1\nrepository {call.repository.path}\nlist sha256:{body.list_sha256}\nfiles {body.files}\n"
        f"signed {format_time(from_ms(call.now_ms))}\n"
    )
    call.object = call.repository.path
    return TwinSignature(
        statement=statement,
        signature=base64.b64encode(private.sign(statement.encode())).decode(),
        key=_public_pem(private),
        signed_at=from_ms(call.now_ms),
    )


@server_table.get("/system/twin-key", PUBLIC, "Get the key that signs lists of twins")
async def show_twin_key(call: Call) -> TwinKey:
    """The command twin verify compares signatures with it (--key)."""
    return TwinKey(key=_public_pem(await _private_key(call)))


class TwinRecord(Record):
    """A twin that the server keeps; times are null for never."""

    name: Annotated[str, meaning("The name of the twin.")]
    repository: RepositoryPath
    target: Annotated[str, meaning("Where it is written.")]
    written_at: Annotated[datetime | None, meaning("When it was last written; null for never.")]
    took_ms: Annotated[int, meaning("How long it took, in milliseconds.")]
    files: Annotated[int, meaning("How many files it has.")]
    written: Annotated[int, meaning("How many files the last run that changed it has written.")]
    removed: Annotated[int, meaning("How many files the last run that changed it has removed.")]
    withheld: Annotated[int, meaning("How many files its token may not read.")]
    signed: Annotated[bool, meaning("Whether its list is signed.")]
    behind: Annotated[bool, meaning("Whether the repository has changed since.")]
    failed_at: Annotated[datetime | None, meaning("When a later run failed; null if none did.")]
    problem: ProblemSentence


class TwinWritten(Record):
    """The result of a run."""

    job_id: JobId
    files: Annotated[int, meaning("How many files it has.")]
    written: Annotated[int, meaning("How many files the last run that changed it has written.")]
    removed: Annotated[int, meaning("How many files the last run that changed it has removed.")]
    withheld: Annotated[int, meaning("How many files its token may not read.")]
    signed: Annotated[bool, meaning("Whether its list is signed.")]
    errors: Errors


@server_table.command(
    "twin list",
    columns="NAME: name | REPOSITORY: repository | TARGET: target | WRITTEN: written_at:ago | FILES: files:number | "
    "PROBLEM: problem",
    nothing="the settings define none (twins)",
    about="List the twins that the settings of the server define, and when each was written.",
)
@server_table.get("/system/twins", SYSTEM_MANAGERS, "List the twins of the server")
async def list_twins(call: Call) -> list[TwinRecord]:
    """The static twins that the settings define (twins), and when each was written."""
    twins = call.services.twins
    found = []
    for name, plan in sorted(twins.plans.items()):
        state = await twins.state(name)
        found.append(
            TwinRecord.from_attributes(
                state,
                name=name,
                repository=plan.repository,
                target=plan.target,
                written_at=from_ms(state.written_ms) if state.written_ms else None,
                behind=await twins.is_behind(plan),
                failed_at=from_ms(state.failed_ms) if state.failed_ms else None,
                problem=state.reason,
            )
        )
    return found


@server_table.post(
    "/system/twins/<name>",
    SYSTEM_MANAGERS,
    "Write a twin",
    query=(WAIT,),
    audit="twin.run",
    further=STILL_RUNNING,
)
async def write_twin(call: Call, name: str) -> TwinWritten | Response:
    """
    Brings a twin of the settings up to date now, as the server does when its repository has changed.

    One run of each is made at a time: while another one runs, the answer is 409 with its Location.
    """
    call.object = name
    job = await answer_job(call, partial(call.services.twins.begin, name, call.actor.name))
    return job if isinstance(job, Response) else TwinWritten(job_id=job.uid, **job.result)


async def _private_key(call: Call) -> Ed25519PrivateKey:
    """The key of the server, which the first call makes. :raises SecretUnreadable: it was sealed with another key"""
    sealed = await call.catalog.look(settings.get, SETTING)
    secrets = call.services.secrets
    if sealed is None:
        raw = Ed25519PrivateKey.generate().private_bytes_raw()
        made = secrets.seal(base64.b64encode(raw).decode(), CONTEXT)
        sealed = await call.catalog.write(settings.ensure, SETTING, made)
    return Ed25519PrivateKey.from_private_bytes(base64.b64decode(secrets.open(sealed, CONTEXT)))


def _public_pem(private: Ed25519PrivateKey) -> str:
    return (
        private.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode("ascii")
    )
