"""Programs of one Java file, compiled once, and archives of loaded classes: a JVM starts in half the processor time."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.client_programs import CLIENTS, ROOT, program

FOLDER = CLIENTS / "java" / "compiled"
RESIDENT = ROOT / "tests" / "clients" / "java" / "Resident.java"  # the part of programs that run many commands
# The first compiler only, since nothing runs for long; no warnings of the JVM in the output of a program.
OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xlog:disable")


def compiled(source: Path, classes: Sequence[Path]) -> Path:
    """
    Return the jar of a program, which is compiled with these archives unless it was before.

    It may use ``RESIDENT``.
    """
    jar = FOLDER / f"{source.stem}-{_digest(source.read_bytes() + RESIDENT.read_bytes())}.jar"
    if not jar.exists():
        with tempfile.TemporaryDirectory() as folder:
            places = ("-sourcepath", source.parent, "-cp", joined(classes))
            command = [program("javac"), "-nowarn", "-d", folder, *places, source]
            subprocess.run(command, check=True, capture_output=True)
            with _new(jar) as path, zipfile.ZipFile(path, "w") as archive:
                for each in Path(folder).rglob("*.class"):
                    archive.write(each, each.relative_to(folder))
    return jar


@contextmanager
def shared_classes(main: str, classes: Sequence[Path]) -> Iterator[str]:
    """
    Return the option by which a JVM maps the classes that ``main`` loads; it writes their archive if there is none.

    The JVM ignores an archive that another release has written.
    """
    path = FOLDER / f"{main}-{_digest(joined(classes).encode())}.jsa"
    if path.exists():
        yield f"-XX:SharedArchiveFile={path}"
    else:
        with _new(path) as new:
            yield f"-XX:ArchiveClassesAtExit={new}"


def joined(classes: Sequence[Path]) -> str:
    """Return these archives as a class path."""
    return os.pathsep.join(map(str, classes))


@contextmanager
def _new(path: Path) -> Iterator[Path]:
    """Return a path whose file gets this path when it is complete."""
    path.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        new = Path(folder) / path.name
        yield new
        if new.exists():
            new.replace(path)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
