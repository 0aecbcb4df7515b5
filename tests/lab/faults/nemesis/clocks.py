"""The clock of the day of a server, which is put forward and back while it runs."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_name("clock.c")
WHY_NONE: Final = "" if shutil.which("cc") else "a clock that is put forward or back needs a C compiler"


class Clock:
    """
    A clock for servers with ``environ``, which are processes of their own; monotonic clocks are those of the machine.

    libfaketime 0.9.10 is not used: with it no thread of Python 3.11 can sleep.
    """

    def __init__(self, folder: Path) -> None:
        library, self._file = folder / "clock.so", folder / "clock"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
        self.put(0)
        self.environ: Mapping[str, str] = {"LD_PRELOAD": str(library), "LAB_CLOCK": str(self._file)}

    def put(self, seconds: float) -> None:
        """Put it forward by this much, compared with that of the machine, or back."""
        data = struct.pack("=q", int(seconds * 1e9))
        if not self._file.exists():
            self._file.write_bytes(data)
        with self._file.open("r+b", buffering=0) as file:  # the one that is mapped
            file.write(data)
