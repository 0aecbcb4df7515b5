"""
Converts wheels and publishes their packages, several at a time.

Small wheels share the hop to a thread, the fsync calls of their packages, and the transaction. A wheel that cannot be
converted, or whose package is refused, does not stop the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from attrs import frozen
from twisted.logger import Logger

from pkgrepo.errors import FileBurned, FileExists, Invalid, PkgrepoError
from pkgrepo.formats.conda import configuration
from pkgrepo.formats.conda.index.records import index_package
from pkgrepo.formats.conda.limits import WHEEL_SIZE
from pkgrepo.formats.conda.upload.publishing import DIGESTS, Upload, make_release
from pkgrepo.gateway.services import Services
from pkgrepo.model import SYSTEM, File, Repository
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.storage.gil import GilReleaser

from .comparing import derived_from
from .conversion import Converted, convert_wheel, read_wheel_name

log = Logger()

AT_ONCE: Final = 32  # wheels; a thread converts small ones for 10 ms, and one transaction with their packages takes 10
BYTES_AT_ONCE: Final = 8 * 1024 * 1024  # of wheels in memory; a larger one is converted alone


@frozen
class _ReadWheel:
    """A wheel with its bytes."""

    wheel: File
    filename: str
    data: bytes


async def publish_wheels(services: Services, channel: Repository, wheels: Sequence[File]) -> dict[str, Exception]:
    """
    Publish the packages of wheels. Returns the errors by the paths of those wheels that have none now.

    An L{Invalid}, L{FileExists} or L{FileBurned} is for ever; what another error prevented can be tried again.
    """
    failed: dict[str, Exception] = {}
    for some in _groups(wheels):
        failed |= await _publish(services, channel, some)
    return failed


def is_final(error: Exception) -> bool:
    """Whether the same wheel would fail again."""
    return isinstance(error, Invalid | FileExists | FileBurned)


def _groups(wheels: Sequence[File]) -> Iterator[Sequence[File]]:
    some: list[File] = []
    size = 0
    for each in wheels:
        if some and (len(some) == AT_ONCE or size + each.size > BYTES_AT_ONCE):
            yield some
            some, size = [], 0
        some.append(each)
        size += each.size
    if some:
        yield some


async def _publish(services: Services, channel: Repository, wheels: Sequence[File]) -> dict[str, Exception]:
    failed: dict[str, Exception] = {}
    read: list[_ReadWheel] = []
    for each in wheels:
        try:
            read.append(await _read(services, each))
        except PkgrepoError as error:
            failed[each.path] = error
    converted = await services.pools.cpu(_convert, read) if read else []
    policy = configuration.policy(channel)
    made: list[str] = []
    releases: list[Release] = []
    async with services.publisher.stage(channel) as staged:
        for of, package in zip(read, converted, strict=True):
            if isinstance(package, Invalid):
                failed[of.wheel.path] = package
                continue
            blob = await staged.store(package.data, DIGESTS)
            upload = Upload(package.name, None, blob, derived=derived_from(of.wheel))
            releases.append(make_release(upload, package.description, policy))
            made.append(of.wheel.path)
        if releases:
            outcomes = await services.publisher.keep_together(channel, releases, staged, SYSTEM, index_package)
            failed |= {path: each for path, each in zip(made, outcomes, strict=True) if isinstance(each, Exception)}
    return failed


async def _read(services: Services, wheel: File) -> _ReadWheel:
    filename = wheel.path.rpartition("/")[2]
    read_wheel_name(filename)  # most wheels that cannot be converted need not be read
    if wheel.size > WHEEL_SIZE:
        raise Invalid(f"it is larger than {WHEEL_SIZE} bytes", "content")
    return _ReadWheel(wheel, filename, await services.files.read(wheel.storage_id, wheel.locator, wheel.size))


def _convert(wheels: Sequence[_ReadWheel]) -> list[Converted | Invalid]:
    """Runs on a thread."""
    gil = GilReleaser()
    found: list[Converted | Invalid] = []
    for each in wheels:
        gil.release_if_due()
        try:
            found.append(convert_wheel(each.data, each.filename, round(each.wheel.created_at.timestamp() * 1000)))
        except Invalid as error:
            found.append(error)
        except Exception:  # noqa: BLE001 - a wheel that finds a fault of ours must not hold up the channel for ever
            log.failure("the wheel {filename} could not be converted", filename=each.filename)
            found.append(Invalid("a fault of this server prevented it; its log says which", "content"))
    return found
