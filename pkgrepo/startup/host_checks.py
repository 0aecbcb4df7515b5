"""
What of this machine a server depends on: rights, disks, clock, memory, descriptors, certificate and unit.

Nothing is changed. L{pkgrepo.commands.doctor} prints the findings, with those of the catalog and of other servers.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import resource
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Final

import apsw
from attrs import frozen

import twisted
from pkgrepo import __version__
from pkgrepo.composition.core import KEY_FILE
from pkgrepo.config import Config
from pkgrepo.http.tls import BadCertificate, ServerCertificate
from pkgrepo.process.resources import CACHE_PART, usable_memory, usable_processors
from pkgrepo.sentences import sentence_of
from pkgrepo.storage.free_space import free_and_total, low_water

OK: Final = "ok"
WARNING: Final = "warning"
PROBLEM: Final = "problem"

SERVER_MEMORY: Final = 90 * 2**20  # bytes of one idle process, or of what a master shares with its workers
WORKER_MEMORY: Final = 30 * 2**20  # bytes that each of several idle workers adds
CACHES: Final = 1562 * 2**20  # bytes that are of use to the caches of one process
DESCRIPTORS: Final = 4096  # fewer are enough for a few hundred clients only
EXPIRES_SOON: Final = timedelta(days=14)
FUTURE_S: Final = 120  # seconds that a file may be newer than the clock
UNSYNCHRONISED: Final = 5  # adjtimex(2): TIME_ERROR
TIMEX_BYTES: Final = 512  # more than struct timex has on any architecture
UNIT_FOLDERS: Final = ("/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")


@frozen
class Finding:
    """The state of one subject: ``OK``, ``WARNING`` or ``PROBLEM``, a sentence, and what to do about it."""

    subject: str
    state: str
    sentence: str
    advice: str = ""


def host_findings(config: Config) -> Iterator[Finding]:
    """All findings about this machine, in the order in which they are worth reading. Blocks for some milliseconds."""
    yield _versions()
    yield from _rights(config)
    yield room(config, "database disk", (config.database_path or config.data.dir / "x").parent)
    yield _clock(config)
    yield _memory(config)
    yield _descriptors()
    yield from _certificate(config)
    yield from _unit()


def room(config: Config, subject: str, folder: Path) -> Finding:
    """The free space where a folder is, or will be."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        free, total = free_and_total(folder)
    except OSError as error:
        return Finding(subject, PROBLEM, sentence_of(error), "mount it, or correct its rights")
    sentence = f"{_gib(free)} of {_gib(total)} are free at {folder}"
    if free < low_water(total, config.data.low_water):
        return Finding(
            subject,
            PROBLEM,
            sentence,
            "uploads are refused: add space (or inodes, see df -i), or remove what is not needed",
        )
    if free < total // 10:
        return Finding(subject, WARNING, sentence, "add space, collect garbage, or limit the caches of proxies")
    return Finding(subject, OK, sentence)


def _versions() -> Finding:
    found = {
        "pkgrepo": __version__,
        "Python": platform.python_version(),
        "Twisted": twisted.__version__,
        "SQLite": apsw.sqlite_lib_version(),
    }
    return Finding("versions", OK, ", ".join(f"{name} {version}" for name, version in found.items()))


def _rights(config: Config) -> Iterator[Finding]:
    folder = config.data.dir
    if not folder.exists():
        parent = next(each for each in folder.absolute().parents if each.exists())
        if os.access(parent, os.W_OK | os.X_OK):
            yield Finding("data folder", OK, f"{folder} is made at the first start")
        else:
            advice = f"make it, and give it to the user of the server: install -d -o pkgrepo {folder}"
            yield Finding("data folder", PROBLEM, f"{folder} does not exist, and cannot be made by this user", advice)
        return
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield Finding(
            "data folder", PROBLEM, f"{folder} cannot be written by this user", "chown it to the server's user"
        )
    elif folder.stat().st_mode & 0o007 and not _is_volume(folder):
        advice = f"chmod o= {folder}"
        yield Finding("data folder", WARNING, f"other users of the machine can look into {folder}", advice)
    else:
        yield Finding("data folder", OK, f"{folder} is for this user alone")
    for secret in (folder / KEY_FILE, config.database_path):
        if secret is not None and secret.exists() and _is_read_by_others(secret):
            yield Finding("secrets", WARNING, f"other users can read {secret}", f"chmod 600 {secret}")


def _is_volume(folder: Path) -> bool:
    """Whether it is a file system of its own that was given to this user by its group, as Kubernetes mounts volumes."""
    return os.path.ismount(folder) and folder.stat().st_uid != os.geteuid()


def _is_read_by_others(secret: Path) -> bool:
    """Whether its mode lets others read it; a mounted secret belongs to root, and this user reads it by its group."""
    found = secret.stat()
    return bool(found.st_mode & (0o077 if found.st_uid == os.geteuid() else 0o007))


def _clock(config: Config) -> Finding:
    """Whether the kernel's clock is synchronised (adjtimex(2)), and not behind what was written here."""
    path = config.database_path
    with suppress(OSError):
        if path is not None and path.stat().st_mtime > time.time() + FUTURE_S:
            return Finding("clock", PROBLEM, f"{path} is newer than the clock says", "correct the clock of the machine")
    with suppress(OSError, AttributeError):
        if ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(TIMEX_BYTES)) == UNSYNCHRONISED:
            advice = (
                "timedatectl set-ntp true: tokens and quarantines end by the clock, and signed requests depend on it"
            )
            return Finding("clock", WARNING, "the clock is not synchronised", advice)
    return Finding("clock", OK, f"it is {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC")


def _memory(config: Config) -> Finding:
    workers = config.server.workers or usable_processors()
    needed = SERVER_MEMORY + (WORKER_MEMORY * workers if workers > 1 else 0)
    memory = usable_memory()
    caches = config.server.cache_memory or min(memory // CACHE_PART, workers * CACHES)
    users = f"{workers} workers take" if workers > 1 else "one worker takes"
    sentence = f"{_gib(memory)}, of which {users} {_gib(needed)} when idle, and caches up to {_gib(caches)} more"
    if memory < 2 * needed:
        return Finding("memory", WARNING, sentence, "add memory, or lower server.workers")
    if memory < needed + 2 * caches:
        return Finding(
            "memory", WARNING, sentence, "lower server.cache_memory: transfers and the database need memory, too"
        )
    return Finding("memory", OK, sentence)


def _descriptors() -> Finding:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or hard >= DESCRIPTORS:
        return Finding("descriptors", OK, "they are not limited" if hard < 0 else f"up to {hard}")
    advice = "LimitNOFILE=65536 in the unit, or ulimit -Hn"
    return Finding("descriptors", WARNING, f"only {hard}: connections and files wait when they are used up", advice)


def _certificate(config: Config) -> Iterator[Finding]:
    if config.tls.cert is None or config.tls.key is None:
        return
    try:
        expires_at = ServerCertificate(str(config.tls.cert), str(config.tls.key)).expires_at
    except BadCertificate as error:
        yield Finding("certificate", PROBLEM, str(error), "correct tls.cert and tls.key")
        return
    left = expires_at - datetime.now(UTC)
    sentence = f"{config.tls.cert} expires at {expires_at:%Y-%m-%d %H:%M} UTC"
    if left < timedelta():
        yield Finding("certificate", PROBLEM, sentence, "renew it: clients refuse it")
    elif left < EXPIRES_SOON:
        yield Finding("certificate", WARNING, sentence, "renew it; the server takes up the new file on its own")
    else:
        yield Finding("certificate", OK, sentence)


def _unit(folders: tuple[str, ...] = UNIT_FOLDERS) -> Iterator[Finding]:
    """Whether an installed unit has the limits and filters of the unit of this version."""
    path = next((each for each in (Path(folder, "pkgrepo.service") for folder in folders) if each.exists()), None)
    if path is None:
        return
    try:
        found = _confinement(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        yield Finding("unit", WARNING, f"{path} cannot be read", "run this as root, or correct its rights")
        return
    wanted = _confinement(files("pkgrepo").joinpath("systemd", "pkgrepo.service").read_text("utf-8"))
    if missing := [line for line in wanted if line not in found]:
        sentence = f"{path} has not the lines {', '.join(missing)}"
        yield Finding("unit", WARNING, sentence, "compare it with pkgrepo init --systemd: the server is less confined")
    elif added := [line for line in found if line.startswith("SystemCallFilter=~") and line not in wanted]:
        advice = "compare it with pkgrepo init --systemd: the server needs the calls that its own unit allows"
        yield Finding("unit", WARNING, f"{path} also forbids {', '.join(added)}", advice)
    else:
        yield Finding("unit", OK, f"{path} confines the server like the unit of this version")


def _confinement(unit: str) -> list[str]:
    """The lines of a unit that limit its processes: the filters, the protections, and the number of descriptors."""
    kinds = (
        r"(?m)^(?:SystemCall|Protect|Private|Restrict|Capability|NoNew|Lock|MemoryDeny|RemoveIPC|LimitNOFILE)\S*=.*$"
    )
    return re.findall(kinds, unit)


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
