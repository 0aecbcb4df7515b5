"""The Debian package: the program in /usr/lib/pkgrepo, units, settings in /etc/pkgrepo, manual pages, completions."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from pkgrepo.config import template
from pkgrepo.packaging.sources import ReleaseFailed, Sources, run
from pkgrepo.packaging.tree import HELPERS, HOME, Machine

REVISION = "1"
SETTINGS = "etc/pkgrepo/pkgrepo.toml"
_FILES = Path(__file__).with_name("debian")
_UNITS = Path(__file__).parents[1] / "systemd"
# The user of the package is an ordinary one: commands on the machine then need no help of systemd to reach its folder.
_UNIT_CHANGES = {
    "/opt/pkgrepo/bin/twistd": f"/{HOME}/bin/twistd",
    "DynamicUser=yes\n": "User=pkgrepo\nGroup=pkgrepo\n",
}
_ALL_SETTINGS = "usr/share/doc/pkgrepo/pkgrepo.toml"


def make_deb(
    sources: Sources, tree: Path, manuals: Mapping[str, bytes], out: Path, work: Path, machine: Machine
) -> Path:
    """Build the package for a machine. ``manuals`` are files by their path below /. Returns its path."""
    root = work / f"deb-{machine.architecture}"
    shutil.copytree(tree, root, symlinks=True)
    for name, data in {**_files(sources), **manuals}.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        place.chmod(0o755 if name == "usr/bin/pkgrepo" else 0o644)
    size = sum(each.stat().st_size for each in root.rglob("*") if each.is_file() and not each.is_symlink())
    for name in HELPERS:
        (root / "usr/bin" / name).symlink_to(f"../lib/pkgrepo/bin/{name}")
    _write_control(root, machine, version=f"{sources.version}-{REVISION}", size=size // 1024 + 1)
    _settle(root, sources.epoch)
    target = out / f"pkgrepo_{sources.version}-{REVISION}_{machine.architecture}.deb"
    options = ["--root-owner-group", "-Zxz", "-z3", "--threads-max=1"]  # with -z6 it takes three times as long
    run(["dpkg-deb", *options, "--build", root, target], env=sources.environment)
    return target


def unit(text: str) -> str:
    """The unit of the package, made of the one for other installations."""
    lines = text.splitlines(keepends=True)
    while lines[0].startswith("#"):  # how to install it by hand
        lines.pop(0)
    text = "".join(lines)
    for old, new in _UNIT_CHANGES.items():
        if old not in text:
            raise ReleaseFailed(f"pkgrepo.service has no {old.strip()}")
        text = text.replace(old, new)
    return text


def settings() -> str:
    """
    The settings file of the package: the data folder alone.

    dpkg asks about a changed settings file when the package has another one than before, and an unattended upgrade
    fails then. So it has nothing that a new version would change.
    """
    return (
        f"# The settings of pkgrepo that differ from the defaults. All of them, with defaults and meanings, are in\n"
        f"# /{_ALL_SETTINGS}; pkgrepo check-config --explain shows what holds.\n"
        '\n[data]\ndir = "/var/lib/pkgrepo"\n'
    )


def _files(sources: Sources) -> dict[str, bytes]:
    service, socket = ((_UNITS / f"pkgrepo.{kind}").read_text("utf-8") for kind in ("service", "socket"))
    changes = (sources.folder / "CHANGELOG.md").read_bytes()
    return {
        "usr/bin/pkgrepo": (_FILES / "pkgrepo").read_bytes(),
        "usr/lib/systemd/system/pkgrepo.service": unit(service).encode(),
        "usr/lib/systemd/system/pkgrepo.socket": socket.encode(),
        "usr/lib/sysusers.d/pkgrepo.conf": (_FILES / "sysusers.conf").read_bytes(),
        SETTINGS: settings().encode(),
        _ALL_SETTINGS: template().encode(),
        "usr/share/doc/pkgrepo/copyright": (_FILES / "copyright").read_bytes(),
        "usr/share/doc/pkgrepo/changelog.gz": gzip.compress(changes, mtime=0),
    }


def _write_control(root: Path, machine: Machine, *, version: str, size: int) -> None:
    control = root / "DEBIAN"
    sums = "".join(_sums(root))
    control.mkdir()
    text = (_FILES / "control").read_text("utf-8")
    (control / "control").write_text(
        text.format(version=version, size=size, architecture=machine.architecture), "utf-8"
    )
    (control / "conffiles").write_text(f"/{SETTINGS}\n")
    (control / "md5sums").write_text(sums)
    for name in ("postinst", "prerm", "postrm"):
        shutil.copyfile(_FILES / name, control / name)
        (control / name).chmod(0o755)


def _sums(root: Path) -> Iterator[str]:
    """The lines of md5sums (deb-md5sums(5))."""
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_file() and not path.is_symlink() and name != SETTINGS:
            yield f"{hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}  {name}\n"


def _settle(root: Path, epoch: int) -> None:
    """Give everything the same time and usual modes, whatever the mask of this process is."""
    for path in [root, *root.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        os.utime(path, (epoch, epoch), follow_symlinks=False)
