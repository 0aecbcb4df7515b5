"""
Settings of this process for timers, memory and garbage collection, and the processors and the memory it may use.

A container or a service may have fewer processors than the machine: by a set of processors (cpuset), or by a quota of
time, which Linux keeps in the control group (cgroups(7), "cpu.max" of version 2, "cpu.cfs_quota_us" of version 1). It
may have less memory, too ("memory.max" and "memory.high"; "memory.limit_in_bytes").
"""

from __future__ import annotations

import ctypes
import gc
import linecache
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

RETURN_S = 60.0  # between two times at which freed memory is given back
KEPT = 8 * 1024 * 1024  # free bytes at the end of the heap; a large upload uses 2 MiB, several use more
MAPPED = 1024 * 1024  # bytes; larger allocations are returned to the kernel when freed

# malloc.h of glibc
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8

CACHE_PART = 4  # caches take a quarter of the usable memory, unless a setting says how much
SMALL_PAGES = 16 * 1024 * 1024  # bytes of them on a small machine
PAGES_PART = 8  # pages of the database, which are also in the page cache of the kernel

NEW_OBJECTS = 20_000  # before a collection; Python's 700 cost a tenth of the time of a cold install
START_OBJECTS = 50_000  # the imports make 150,000, nearly all of which stay; fewer collections leave 6 MB of holes
_GENERATED: Final = "<attrs generated "  # begins the names of "files" that attrs gives to generated methods
_GROUPS: Final = Path("/sys/fs/cgroup")
_MEMBERSHIP: Final = Path("/proc/self/cgroup")


def use_steady_clock(reactor: Any) -> bool:
    """
    Let the timers of a reactor follow the steady clock; False if it runs already, or has timers.

    Twisted's follow the time of day. Set back by an hour, all timers that wait would wait an hour longer; set forward,
    all would end at once, so that connections are closed, and workers killed because they seem to hang.
    """
    if reactor.running or reactor.getDelayedCalls():
        return False
    type(reactor).seconds = staticmethod(time.monotonic)  # a forked worker initialises the instance again
    return True


def keep_freed_buffers() -> bool:
    """
    Make malloc reuse freed buffers of transfers; False if the C library is not glibc.

    By default glibc returns free memory at the end of its heap from 128 KiB on, and gets it again for the next read: a
    page fault and a cleared page for every 4 KiB received, which is a sixth of the processor time of a large upload.
    """
    mallopt: Callable[[int, int], int] | None = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_M_TRIM_THRESHOLD, KEPT)) and bool(mallopt(_M_MMAP_THRESHOLD, MAPPED))


def collect_no_garbage() -> None:
    """
    Have Python collect no garbage until ``settle`` unless it is much.

    Collections during the imports look at the same objects again and again, which is a tenth of the time of a start.
    """
    gc.set_threshold(START_OBJECTS, *gc.get_threshold()[1:])


def return_freed_memory() -> bool:
    """
    Give the memory back to the kernel that malloc keeps after it was freed; False if the C library is not glibc.

    Each thread has a pool, which ends behind the last piece that is still in use. What a database has of pages is freed
    with each commit of another process: 50 of 200 MB after half an hour of publishes. It takes 2 to 6 ms, without the
    GIL (malloc_trim(3)).
    """
    trim: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    return trim is not None


class _OfFiles(dict[str, Any]):
    """Lines of sources by the names of their files, without those of methods that attrs generates."""

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the lines that are kept, or ``default``, which is kept only if it is of a file."""
        return default if key.startswith(_GENERATED) else super().setdefault(key, default)


def keep_no_generated_sources() -> None:
    """
    Have attrs keep no source texts of the methods that it generates, which are for debuggers: 4 MB for 800 classes.

    It is called before most classes are made. In tracebacks these methods have line numbers without text.
    """
    linecache.cache = _OfFiles(  # attrs calls only ``setdefault`` (26.1)
        (name, lines) for name, lines in linecache.cache.items() if not name.startswith(_GENERATED)
    )


def settle() -> None:
    """
    Exclude the objects of the program itself from Python's garbage collection, and collect less often.

    Otherwise each full collection traverses them all and blocks the reactor for 50 ms, after every change of a package
    with thousands of versions. Nearly all objects of a request are freed without it. Only new objects are looked at for
    garbage before: a full collection takes a tenth of a second, and finds nothing that earlier ones did not.
    """
    gc.collect(0)
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])


def usable_processors(groups: Path = _GROUPS, membership: Path = _MEMBERSHIP) -> int:
    """
    The processors of this process, at least one: those of its set, or fewer if its time is less than they have.

    ``groups`` is where the control groups are mounted, and ``membership`` the file with those of this process.
    """
    has_set = hasattr(os, "sched_getaffinity")
    count = len(os.sched_getaffinity(0)) if has_set else os.cpu_count() or 1
    quotas = filter(None, map(_quota, _own_groups("cpu", groups, membership)))
    return max(1, min([count, *map(math.ceil, quotas)]))


def share_one_pool() -> bool:
    """
    Have all threads take memory from one pool, which is called before there are any; False if the library is not glibc.

    By itself malloc makes a pool for each thread, and keeps what each has freed: 32 MB of 208 after a tree of npm
    packages.
    """
    mallopt: Callable[[int, int], int] | None = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_M_ARENA_MAX, 1))


def usable_memory(groups: Path = _GROUPS, membership: Path = _MEMBERSHIP) -> int:
    """Bytes: what the machine has, or less if a control group of this process limits it. See L{usable_processors}."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(
        [machine, *(limit for each in _own_groups("memory", groups, membership) for limit in _memory_limits(each))]
    )


def _own_groups(controller: str, groups: Path, membership: Path) -> Iterator[Path]:
    """The folders of all groups of a controller that this process is in."""
    try:
        lines = membership.read_text("ascii", "replace").splitlines()
    except OSError:  # it is no Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        root = groups / controller if controllers else groups
        own = root / path.lstrip("/")
        # In a container the path may be that of the machine, while its own group is mounted as the root.
        yield from (folder for folder in (own, *own.parents) if folder.is_relative_to(root))


def _quota(group: Path) -> float | None:
    """The limit of one group, in processors; None if it has none."""
    with suppress(OSError, ValueError, ZeroDivisionError):
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text("ascii").split()
        else:
            quota, period = ((group / f"cpu.cfs_{name}_us").read_text("ascii") for name in ("quota", "period"))
        if int(quota) > 0:  # version 2 has the word "max" for no limit, and version 1 has -1
            return int(quota) / int(period)
    return None


def _memory_limits(group: Path) -> Iterator[int]:
    """The limits of one group, in bytes; version 2 has the word "max" for none, and version 1 nearly 2**63."""
    for name in ("memory.max", "memory.high", "memory.limit_in_bytes"):
        with suppress(OSError, ValueError):
            yield int((group / name).read_text("ascii"))
