"""
Runs a command under the filters of system calls that a systemd unit asks for: ``python -m tests.support.unit_filters
UNIT COMMAND...``

The filters are made from the lines of the unit by libseccomp, in the way of systemd's ``seccomp-util.c``, and hold for
all processes that the command starts. What a unit has beside filters is left out, such as mounts of its own; of the
settings of processes, those that need no service manager are applied.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
UNIT: Final = ROOT / "pkgrepo" / "systemd" / "pkgrepo.service"
SETS: Final = ROOT / "tests" / "data" / "systemd" / "syscall-filter-252.txt"  # of ``systemd-analyze syscall-filter``
LIBRARY: Final = "libseccomp.so.2"  # which Debian's apt needs

# seccomp.h
ALLOW: Final = 0x7FFF0000
REFUSE: Final = 0x00050000  # together with an error number
BAD_ARCHITECTURE: Final = 2
NOT_EQUAL, LESS, EQUAL, GREATER, MASKED = 1, 2, 4, 6, 7

# prctl.h
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38

# mman.h, shm.h, sched.h, stat.h
WRITE, EXEC, SHM_EXEC = 2, 4, 0o100000
NAMESPACES = (0x20000, 0x80, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
SET_ID = (0o4000, 0o2000)
# By the number of the argument that is a mode.
MODES = {
    1: ("chmod", "fchmod", "mkdir", "mknod", "creat"),
    2: ("fchmodat", "mkdirat", "mknodat", "open"),
    3: ("openat",),
}
REALTIME = (1, 2, 6)  # SCHED_FIFO, SCHED_RR, SCHED_DEADLINE

# Lines that are no filters of system calls, or forbid only those that SystemCallFilter= forbids already.
OTHERS = (
    *("AmbientCapabilities", "CapabilityBoundingSet", "LockPersonality", "NoNewPrivileges", "PrivateDevices"),
    *("PrivateTmp", "ProtectClock", "ProtectControlGroups", "ProtectHome", "ProtectHostname", "ProtectKernelLogs"),
    *("ProtectKernelModules", "ProtectKernelTunables", "ProtectProc", "ProtectSystem", "RemoveIPC"),
    *("SystemCallArchitectures", "SystemCallErrorNumber"),
)


def launcher(unit: Path = UNIT) -> list[str]:
    """
    Return the beginning of a command that runs under the filters; its PYTHONPATH must have the folder of the tests.

    If there is no libseccomp, the test is skipped, or fails if ``PKGREPO_REQUIRE_CLIENTS`` is 1.
    """
    from tests.support.client_programs import absent

    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        absent(f"there is no {LIBRARY} (Debian's package libseccomp2)")
    return [sys.executable, "-m", "tests.support.unit_filters", str(unit)]


def confinement(unit: Path) -> dict[str, list[str]]:
    """The lines of a unit that confine its processes, those after its last blank line, by the name of the setting."""
    service = unit.read_text().partition("[Service]")[2].partition("[Install]")[0].strip()
    found: dict[str, list[str]] = {}
    for line in service.rpartition("\n\n")[2].splitlines():
        if not line.startswith("#"):
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


def confine(settings: Mapping[str, Sequence[str]]) -> None:
    """Apply the settings to this process and those that it starts; ValueError for one that is not known here."""
    for name in settings:
        if name not in FILTERS and name not in OTHERS:
            raise ValueError(f"{name}= of the unit is not known to its tests")
    libc = ctypes.CDLL(None, use_errno=True)
    capability = 0
    while libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:  # root only; exec takes the capabilities
        capability += 1
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_NO_NEW_PRIVS")
    filters = [FILTERS[name](values) for name, values in settings.items() if name in FILTERS]
    for each in filters:
        each.load()


class Comparison(ctypes.Structure):
    """``struct scmp_arg_cmp``."""

    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("first", ctypes.c_uint64),
        ("second", ctypes.c_uint64),
    )


class Filter:
    """A filter of system calls: ``otherwise`` is done with those that no rule is for."""

    def __init__(self, otherwise: int) -> None:
        self._library = _library()
        self._context = self._library.seccomp_init(otherwise)
        self._check(self._library.seccomp_attr_set(self._context, BAD_ARCHITECTURE, REFUSE | errno.EPERM))

    def add(self, action: int, name: str, *comparisons: tuple[int, ...]) -> None:
        """Add a rule for a system call, if this architecture has it: argument, operator, and one or two values."""
        number = self._library.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:
            values = (Comparison * len(comparisons))(*(Comparison(*each) for each in comparisons))
            self._check(self._library.seccomp_rule_add_array(self._context, action, number, len(comparisons), values))

    def load(self) -> None:
        """Begin to filter."""
        self._check(self._library.seccomp_load(self._context))

    def _check(self, result: int) -> None:
        if result:
            raise OSError(-result, os.strerror(-result))


@cache
def _library() -> Any:
    library = ctypes.CDLL(LIBRARY)
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_attr_set.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32)
    library.seccomp_load.argtypes = (ctypes.c_void_p,)
    rule = (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)
    library.seccomp_rule_add_array.argtypes = rule
    return library


@cache
def _sets() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in SETS.read_text().splitlines():
        if line.startswith("@"):
            members = found[line] = []
        elif line:
            members.append(line.strip())
    return found


def _expand(names: str) -> Iterator[str]:
    for name in names.split():
        if name.startswith("@"):
            yield from _expand(" ".join(_sets()[name]))
        else:
            yield name


def _system_calls(lines: Sequence[str]) -> Filter:
    """The first line decides that the lists allow; later ones add, or take away after ``~`` (systemd.exec(5))."""
    allowed = {*_expand("@default")}
    for line in lines:
        if line.startswith("~"):
            allowed -= {*_expand(line[1:])}
        else:
            allowed |= {*_expand(line)}
    made = Filter(REFUSE | errno.EPERM)
    for name in sorted(allowed):
        made.add(ALLOW, name)
    return made


def _write_execute(_: Sequence[str]) -> Filter:
    made = Filter(ALLOW)
    made.add(REFUSE | errno.EPERM, "mmap", (2, MASKED, WRITE | EXEC, WRITE | EXEC))
    for name in ("mprotect", "pkey_mprotect"):
        made.add(REFUSE | errno.EPERM, name, (2, MASKED, EXEC, EXEC))
    made.add(REFUSE | errno.EPERM, "shmat", (2, MASKED, SHM_EXEC, SHM_EXEC))
    return made


def _address_families(lines: Sequence[str]) -> Filter:
    allowed = sorted(getattr(socket, name) for name in " ".join(lines).split())
    made, refuse = Filter(ALLOW), REFUSE | errno.EAFNOSUPPORT
    made.add(refuse, "socket", (0, LESS, allowed[0]))
    made.add(refuse, "socket", (0, GREATER, allowed[-1]))
    for family in range(allowed[0], allowed[-1]):
        if family not in allowed:
            made.add(refuse, "socket", (0, EQUAL, family))
    return made


def _namespaces(_: Sequence[str]) -> Filter:
    made = Filter(ALLOW)
    made.add(REFUSE | errno.ENOSYS, "clone3")  # its arguments are in memory; C libraries use clone instead
    made.add(REFUSE | errno.EPERM, "setns")
    for flag in NAMESPACES:
        for name in ("clone", "unshare"):
            made.add(REFUSE | errno.EPERM, name, (0, MASKED, flag, flag))
    return made


def _realtime(_: Sequence[str]) -> Filter:
    made = Filter(ALLOW)
    for policy in REALTIME:
        made.add(REFUSE | errno.EPERM, "sched_setscheduler", (1, EQUAL, policy))
    return made


def _set_id_modes(_: Sequence[str]) -> Filter:
    made = Filter(ALLOW)
    for argument, names in MODES.items():
        for name, bit in product(names, SET_ID):
            made.add(REFUSE | errno.EPERM, name, (argument, MASKED, bit, bit))
    made.add(REFUSE | errno.ENOSYS, "openat2")
    return made


FILTERS: Final[Mapping[str, Callable[[Sequence[str]], Filter]]] = {
    "MemoryDenyWriteExecute": _write_execute,
    "RestrictAddressFamilies": _address_families,
    "RestrictNamespaces": _namespaces,
    "RestrictRealtime": _realtime,
    "RestrictSUIDSGID": _set_id_modes,
    "SystemCallFilter": _system_calls,
}


if __name__ == "__main__":
    confine(confinement(Path(sys.argv[1])))
    os.execvp(sys.argv[2], sys.argv[2:])
