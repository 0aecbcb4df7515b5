"""Peers that ``bin/bench`` builds from their sources, below C{.cache/bench/go} and C{.cache/bench/rust}."""

from __future__ import annotations

from .server import ROOT, Unavailable

BUILT = ROOT / ".cache" / "bench"


def built(toolchain: str, name: str) -> str:
    """
    The path of a program.

    :raises Unavailable: it is not there; with the last line of what the build said
    """
    program = BUILT / toolchain / "bin" / name
    if not program.exists():
        log = BUILT / toolchain / f"{name}.log"
        lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
        raise Unavailable(f"{name} is not built: {lines[-1] if lines else 'bin/bench was not asked to, see there'}")
    return str(program)


def built_version(toolchain: str, name: str) -> str:
    """The version that was built, or nothing."""
    stamp = BUILT / toolchain / f"{name}.installed"
    return stamp.read_text().split()[0].partition("@")[2].removeprefix("v") if stamp.exists() else ""
