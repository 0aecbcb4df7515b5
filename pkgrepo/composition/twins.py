"""
The twins that the server keeps: each is written by ``pkgrepo export``, in a process of its own.

That process reads the server at a port on the loopback interface, which is open only while it runs, with the token of
the settings: a twin has what this token may read, and no hashing or compressing delays other readers.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from twisted.internet.defer import maybeDeferred
from twisted.internet.endpoints import serverFromString
from twisted.internet.interfaces import IProtocolFactory

from pkgrepo.composition.processes.children import Child
from pkgrepo.config import Config
from pkgrepo.config.sections.data import Twin
from pkgrepo.errors import PkgrepoError
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.repositories.upkeep.twins import Exported, TwinPlan, Twins
from pkgrepo.s3.places import S3
from pkgrepo.untrusted.strict_json import ERRORS

from .core import Core

LISTEN: Final = "tcp:0:interface=127.0.0.1"
SCRATCH: Final = "twin-scratch"  # folder in the data folder, of what is on its way to a bucket


def make_twins(core: Core, config: Config, factory: IProtocolFactory) -> Twins:
    """The twins of the settings; ``factory`` answers requests without TLS."""
    return Twins(
        [_plan(name, each) for name, each in config.twins.items()],
        partial(_write, core, factory),
        catalog=core.catalog,
        registry=core.registry,
        clock=core.clock,
        jobs=core.jobs,
    )


def _plan(name: str, twin: Twin) -> TwinPlan:
    given = {
        "base-url": twin.base_url,
        "token-file": str(twin.token_file or ""),
        **({"endpoint": twin.endpoint, "region": twin.region} if twin.target.startswith(S3) else {}),
        "bucket-ca-file": str(twin.ca_file or ""),
    }
    arguments = [f"--{option}={value}" for option, value in given.items() if value]
    arguments += ["--host-style"] * (not twin.path_style) + ["--no-addresses"] * (not twin.addresses)
    return TwinPlan(
        name=name, repository=twin.repository, target=twin.target, every_s=twin.every_s, arguments=arguments
    )


async def _write(core: Core, factory: IProtocolFactory, plan: TwinPlan, progress: Progress) -> Exported:
    """Write a twin. :raises PkgrepoError: it cannot be written"""
    folder, disk = core.config.data.dir.absolute() / SCRATCH / plan.mark, core.pools.disk
    try:
        await disk(partial(_make_empty, folder))  # of what a process has left that was killed with the server
    except OSError as error:
        raise PkgrepoError(f"{folder} cannot be made: {error.strerror}") from error
    port = await serverFromString(core.reactor, LISTEN).listen(factory)
    progress.begin(f"{plan.repository} to {plan.target}", 0)
    try:
        code, output, reason = await Child.run(
            core.reactor,
            ["export", plan.repository, plan.target, "--json", *plan.arguments],
            {
                "PKGREPO_URL": f"http://127.0.0.1:{port.getHost().port}",
                "PKGREPO_PROFILES": str(core.config.data.dir / "no-profiles"),
                "TMPDIR": str(folder),
            },
        )
    finally:
        await maybeDeferred(port.stopListening)
        await disk(partial(shutil.rmtree, folder, ignore_errors=True))
    progress.end()
    if code:
        raise PkgrepoError(reason)
    try:
        return msgspec.json.decode(output, type=Exported)
    except ERRORS:
        raise PkgrepoError(f"its process printed no result: {reason}") from None


def _make_empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
