"""
How many processors this process may use.

A container or a service may have fewer than the machine: by a set of processors (cpuset), or by a quota of time, which
Linux keeps in the control group (cgroups(7), "cpu.max" of version 2, "cpu.cfs_quota_us" of version 1).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_GROUPS: Final = Path("/sys/fs/cgroup")
_MEMBERSHIP: Final = Path("/proc/self/cgroup")


def usable_processors(groups: Path = _GROUPS, membership: Path = _MEMBERSHIP) -> int:
    """
    The processors of this process, at least one: those of its set, or fewer if its time is less than they have.

    ``groups`` is where the control groups are mounted, and ``membership`` the file with those of this process.
    """
    has_set = hasattr(os, "sched_getaffinity")
    count = len(os.sched_getaffinity(0)) if has_set else os.cpu_count() or 1
    return max(1, min([count, *(math.ceil(each) for each in _quotas(groups, membership))]))


def _quotas(groups: Path, membership: Path) -> Iterator[float]:
    """The limits of all groups that this process is in, in processors."""
    try:
        lines = membership.read_text("ascii", "replace").splitlines()
    except OSError:  # it is no Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = groups / "cpu" if controllers else groups
        own = root / path.lstrip("/")
        # In a container the path may be that of the machine, while its own group is mounted as the root.
        for folder in (own, *own.parents):
            if folder.is_relative_to(root) and (found := _quota(folder)) is not None:
                yield found


def _quota(group: Path) -> float | None:
    """The limit of one group; None if it has none."""
    with suppress(OSError, ValueError, ZeroDivisionError):
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text("ascii").split()
        else:
            quota, period = ((group / f"cpu.cfs_{name}_us").read_text("ascii") for name in ("quota", "period"))
        if int(quota) > 0:  # version 2 has the word "max" for no limit, and version 1 has -1
            return int(quota) / int(period)
    return None
