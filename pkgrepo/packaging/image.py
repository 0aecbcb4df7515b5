"""
The container image, in the layout of OCI, for each machine: Debian's Python with the libraries it needs, the program.

mmdebstrap downloads Debian's packages, with its keys and mirrors; their files are unpacked here, without those of
package tools: nothing can be installed in the image, and it has no shell. dpkg's records of the packages stay, for
scanners. Python files are compiled by the image's own Python, since its file system may be read-only. Of Python's own
library only the compiled files are kept, which saves 10 MB: tracebacks have the lines of all other files.

No program of another machine runs here: compiled files and Twisted's list of plugins are the same for all, and made by
the Python of the first image. C{pkgrepo-V.oci.tar} has all images, with an index of them.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from pkgrepo.archives.image_layout import INDEX, LAYOUT_CONTENT, LAYOUT_FILE, REF_NAME
from pkgrepo.packaging.archives import Entry, below, entries_below, sha256_of, write_tar, write_tar_gz
from pkgrepo.packaging.sources import ReleaseFailed, Sources, run
from pkgrepo.packaging.tree import HOME, PYTHON, SITE, SUITE, Machine

USER = 10001
DATA = "var/lib/pkgrepo"
SETTINGS = "etc/pkgrepo/pkgrepo.toml"
PORT = 8081
_TAKEN = (
    f"python{PYTHON}-minimal", f"libpython{PYTHON}-stdlib", "ca-certificates", "base-files", "netbase", "media-types",
    "tzdata", "libgcc-s1",
)  # fmt: skip
# Programs that install packages, the libraries of these, and those of modules of Python that are left out.
_LEFT_OUT = frozenset({
    "debconf", "dpkg", "tar", "mawk", "openssl", "libmd0", "libacl1", "libselinux1", "libpcre2-8-0", "readline-common",
    "libnsl2", "libtirpc3", "libtirpc-common", "libgssapi-krb5-2", "libkrb5-3", "libk5crypto3", "libkrb5support0",
    "libkeyutils1", "libcom-err2",
    "libdb5.3", "libreadline8", "libncursesw6", "libtinfo6", "libsqlite3-0", "libzstd1",
})  # fmt: skip
_LIBRARY = rf"usr/lib/python{re.escape(PYTHON)}"
_UNUSED = re.compile(
    r"usr/share/(?:man|info|locale|lintian|bug|perl5|debconf|pixmaps|binfmts|bash-completion|polkit-1|readline)/"
    r"|usr/share/doc/(?!.*/copyright$)|usr/lib/systemd/|lib/systemd/|etc/(?:cron\.daily|logrotate\.d)/"
    # Conversions of iconv, which Python does not use, vector arithmetic and debugging of the C library.
    r"|(?:usr/)?lib/[a-z0-9_]+-linux-gnu/(?:gconv/|lib(?:mvec|memusage|pcprofile|c_malloc_debug|thread_db)\.so)"
    r"|usr/share/zoneinfo/(?:right|posix)/|usr/share/tabset/|(?:usr/)?lib/terminfo/"
    # Of Python: tests, its manual, tools for developers, terminals, databases that need libraries of their own, and
    # what is there in C, too.
    rf"|{_LIBRARY}/(?:test|pydoc_data|idlelib|lib2to3|tkinter|turtledemo|ensurepip|venv|curses|sqlite3)(?:/|$)"
    rf"|{_LIBRARY}/(?:turtle|_pydecimal|_pyio)\.py"
    rf"|{_LIBRARY}/lib-dynload/(?:nis|readline|_dbm|_sqlite3|_curses|_curses_panel)\.cpython"
    rf"|{_LIBRARY}/lib-dynload/(?:_test|_ctypes_test|_?xx)\w*\.cpython"
)
_USERS = f"root:x:0:0:root:/root:/sbin/nologin\npkgrepo:x:{USER}:{USER}:pkgrepo:/{DATA}:/sbin/nologin\n"
_GROUPS = f"root:x:0:\npkgrepo:x:{USER}:\n"
# One word, because versions of podman disagree on how --health-cmd is divided, and there is no shell.
_HEALTH = f"#!/{HOME}/bin/python3\nfrom pkgrepo.cli import main\n\nmain(['health'])\n"
_FIELD = re.compile(r"(?m)^(\S+): (.*)$")  # of the control file of a package
_OCI = "application/vnd.oci.image"


@frozen
class DebianPackage:
    """A package in the image; ``sha256`` is that of its file."""

    name: str
    version: str
    architecture: str
    sha256: str


@frozen(kw_only=True)
class Image:
    """
    The image for a machine: its archive, Debian's packages in it, its descriptor and blobs, and its unpacked files.

    ``base`` stands for /, ``program`` for / with the program alone.
    """

    archive: Path
    packages: list[DebianPackage]
    described: dict[str, Any]
    blobs: Mapping[str, Path | bytes]
    base: Path
    program: Path


def make_image(
    sources: Sources, tree: Path, out: Path, work: Path, machine: Machine, runs: Image | None = None
) -> Image:
    """Build the image for a machine, in an archive that podman and skopeo read; ``runs`` is one that runs here."""
    base = work / f"image-{machine.architecture}"
    base.mkdir()
    packages = _unpack(sources, base, work, machine)
    _configure(base)
    program = work / f"image-program-{machine.architecture}"
    python = base if runs is None else runs.base
    _compile_library(sources, python, base)
    run(["cp", "--archive", tree, program])
    _compile(sources, python, f"{HOME}/lib", program)
    if runs is None:
        _cache_plugins(sources, base, program)
    else:
        for each in runs.program.rglob("dropin.cache"):
            shutil.copyfile(each, program / each.relative_to(runs.program))
    layers = [
        (_base_entries(base), "Debian packages"),
        (_program_entries(program), f"pkgrepo {sources.version} and its dependencies"),
    ]
    described, blobs = _describe(sources, [([*entries], text) for entries, text in layers], work, machine)
    target = out / f"pkgrepo-{sources.version}-{machine.architecture}.oci.tar"
    _write_layout(sources, described, blobs, target)
    return Image(archive=target, packages=packages, described=described, blobs=blobs, base=base, program=program)


def write_index(sources: Sources, images: Sequence[Image], out: Path) -> Path:
    """Write an archive with all images and the index of them, for registries. Returns its path."""
    blobs = {digest: data for each in images for digest, data in each.blobs.items()}
    index = {
        "schemaVersion": 2,
        "mediaType": f"{_OCI}.index.v1+json",
        "manifests": [each.described for each in images],
        "annotations": labels(sources),
    }
    target = out / f"pkgrepo-{sources.version}.oci.tar"
    _write_layout(sources, _add(blobs, index, f"{_OCI}.index.v1+json"), blobs, target)
    return target


def _unpack(sources: Sources, base: Path, work: Path, machine: Machine) -> list[DebianPackage]:
    """Unpack Debian's packages, and record them where scanners look for those of images without dpkg."""
    fetched = work / f"debian-{machine.architecture}"
    run([
        "mmdebstrap", "--quiet", "--variant=extract", f"--include={','.join(_TAKEN)}",
        f"--architectures={machine.architecture}",
        '--aptopt=APT::Install-Recommends "false"', "--skip=cleanup/apt", "--format=tar", SUITE, fetched,
    ], env=sources.environment)  # fmt: skip
    found = []
    with tarfile.open(fetched) as archive:
        for member in sorted(archive.getmembers(), key=lambda each: each.name):
            if not member.name.endswith(".deb"):
                continue
            file = archive.extractfile(member)
            assert file is not None
            package = work / "package.deb"
            package.write_bytes(file.read())
            control = run(["dpkg-deb", "--field", package])
            fields = dict(_FIELD.findall(control))
            if (name := fields["Package"]) not in _LEFT_OUT:
                found.append(DebianPackage(name, fields["Version"], fields["Architecture"], sha256_of(package)))
                _unpack_files(package, base)
                _record(base, name, control)
    return found


def _unpack_files(package: Path, base: Path) -> None:
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE) as process:  # noqa: S603, S607
        assert process.stdout is not None
        with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                if name and not _UNUSED.match(name):
                    member.name = _merged(name)
                    archive.extract(member, base, filter="tar", set_attrs=False)
                    if member.isreg():
                        (base / member.name).chmod(member.mode & 0o755)
    if process.returncode:
        raise ReleaseFailed(f"dpkg-deb cannot read {package}")


def _merged(name: str) -> str:
    """The path below /usr of a file in /bin, /sbin or /lib; these are links in every Debian since 12."""
    first, _, rest = name.partition("/")
    return f"usr/{name}" if first in {"bin", "sbin", "lib", "lib64"} and rest else name


def _record(base: Path, name: str, control: str) -> None:
    place = base / "var/lib/dpkg/status.d" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"{control.rstrip()}\n")


def _configure(base: Path) -> None:
    """Do what the scripts of the packages would do, and make users and folders."""
    for name in ("bin", "sbin", "lib", "lib64"):
        if (base / name).is_dir() and not (base / name).is_symlink():
            (base / name).rmdir()
        (base / "usr" / name).mkdir(exist_ok=True)
        if not (base / name).is_symlink():
            (base / name).symlink_to(f"usr/{name}")
    authorities = sorted((base / "usr/share/ca-certificates").rglob("*.crt"))
    bundle = base / "etc/ssl/certs/ca-certificates.crt"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    bundle.write_bytes(b"".join(each.read_bytes() for each in authorities))
    shutil.rmtree(base / "usr/share/ca-certificates")
    (base / "usr/lib/ssl").mkdir(parents=True, exist_ok=True)
    link = base / "usr/lib/ssl/cert.pem"
    link.unlink(missing_ok=True)
    link.symlink_to("/etc/ssl/certs/ca-certificates.crt")
    (base / "etc/passwd").write_text(_USERS)
    (base / "etc/group").write_text(_GROUPS)
    (base / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
    for name in ("tmp", "proc", "sys", "dev", "run"):
        (base / name).mkdir(exist_ok=True)


def _python(base: Path) -> list[object]:
    """The command that runs the Python of the first image on this machine."""
    libraries = f"{base}/usr/lib/x86_64-linux-gnu"
    return [base / "usr/lib64/ld-linux-x86-64.so.2", "--library-path", libraries, base / f"usr/bin/python{PYTHON}"]


def _compile_library(sources: Sources, python: Path, base: Path) -> None:
    """Compile Python's own library in place, and remove its sources."""
    library = f"usr/lib/python{PYTHON}"
    _compile(sources, python, library, base, "-b")
    for each in (base / library).rglob("*.py"):
        if each.with_suffix(".pyc").exists():
            each.unlink()


def _compile(sources: Sources, python: Path, folder: str, root: Path, *options: str) -> None:
    """Compile the Python files in a folder below ``root``; Python takes the results without looking at times."""
    words: list[object] = ["-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", *options]
    words += ["-s", root, "-p", "/", root / folder]
    env = {**sources.environment, "PYTHONHOME": f"{python}/usr", "PYTHONDONTWRITEBYTECODE": "1"}
    run([*_python(python), "-S", *words], env=env)


def _cache_plugins(sources: Sources, base: Path, program: Path) -> None:
    """Write Twisted's list of plugins, which it would write at the first start."""
    code = "from twisted.plugin import IPlugin, getPlugins; list(getPlugins(IPlugin))"
    env = {**sources.environment, "PYTHONHOME": f"{base}/usr", "PYTHONPATH": f"{program / SITE}"}
    run([*_python(base), "-B", "-c", code], env=env)


def _base_entries(base: Path) -> Iterator[Entry]:
    for each in entries_below(base):
        yield Entry("tmp", 0o1777) if each.name == "tmp" else each


def _program_entries(program: Path) -> Iterator[Entry]:
    """The program, its command on the path, an empty settings file, and the folder of the volume."""
    parts = HOME.split("/")
    yield from (Entry("/".join(parts[:number])) for number in range(1, len(parts) + 1))
    for each in below(f"{HOME}/", entries_below(program / HOME)):
        # Twisted reads its list of plugins only if it is newer than they are.
        yield evolve(each, later_s=1) if each.name.endswith("/dropin.cache") else each
    yield Entry("usr/bin/pkgrepo", 0o777, link="../lib/pkgrepo/bin/pkgrepo")
    yield Entry("usr/bin/pkgrepo-health", 0o755, _HEALTH.encode())
    yield Entry("etc/pkgrepo")
    yield Entry(SETTINGS, 0o644, b"# Mount your settings here; pkgrepo init prints a file with all of them.\n")
    yield Entry(DATA, 0o750, owner=USER)


def _config(sources: Sources, layers: Sequence[tuple[str, str]], machine: Machine) -> dict[str, Any]:
    """The configuration of the image (OCI image-spec, config.md); ``layers`` are diff ids with texts."""
    created = _rfc3339(sources.epoch)
    health = {"Test": ["CMD", "pkgrepo", "health"], "Interval": 30_000_000_000, "Timeout": 10_000_000_000,
              "StartPeriod": 60_000_000_000, "Retries": 3}  # fmt: skip
    return {
        "created": created,
        "architecture": machine.architecture,
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "Env": [
                "PATH=/usr/bin",
                "LANG=C.UTF-8",
                f"HOME=/{DATA}",
                f"PKGREPO_CONFIG=/{SETTINGS}",
                f"PKGREPO_DATA__DIR=/{DATA}",
                f"PKGREPO_SERVER__LISTEN=tcp:{PORT}",
                "PYTHONDONTWRITEBYTECODE=1",
            ],
            "Entrypoint": ["/usr/bin/pkgrepo"],
            "Cmd": ["serve"],
            "WorkingDir": f"/{DATA}",
            "Volumes": {f"/{DATA}": {}},
            "ExposedPorts": {f"{PORT}/tcp": {}},
            "StopSignal": "SIGTERM",
            "Healthcheck": health,  # Docker's field; it is not of OCI, and podman wants --health-cmd instead
            "Labels": labels(sources),
        },
        "rootfs": {"type": "layers", "diff_ids": [diff for diff, _ in layers]},
        "history": [{"created": created, "created_by": "bin/release", "comment": text} for _, text in layers],
    }


def labels(sources: Sources) -> dict[str, str]:
    """The labels and annotations (OCI image-spec, annotations.md)."""
    base = "org.opencontainers.image"
    return {
        f"{base}.title": "pkgrepo",
        f"{base}.description": "Package registry: npm, container images, Maven, RubyGems, Python and conda",
        f"{base}.version": sources.version,
        f"{base}.revision": sources.commit,
        f"{base}.created": _rfc3339(sources.epoch),
        f"{base}.licenses": "Apache-2.0",
        f"{base}.base.name": f"debian:{SUITE}",
    }


def _rfc3339(epoch: int) -> str:
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _describe(
    sources: Sources, layers: Sequence[tuple[Sequence[Entry], str]], work: Path, machine: Machine
) -> tuple[dict[str, Any], dict[str, Path | bytes]]:
    """The descriptor of the manifest of an image, and its blobs by their digests."""
    blobs: dict[str, Path | bytes] = {}
    diffs, descriptors = [], []
    for number, (entries, text) in enumerate(layers):
        file = work / f"layer-{machine.architecture}-{number}.tar.gz"
        diffs.append((f"sha256:{write_tar_gz(file, entries, sources.epoch)}", text))
        digest = sha256_of(file)
        blobs[digest] = file
        size = file.stat().st_size
        descriptors.append({"mediaType": f"{_OCI}.layer.v1.tar+gzip", "digest": f"sha256:{digest}", "size": size})
    config = _add(blobs, _config(sources, diffs, machine), f"{_OCI}.config.v1+json")
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_OCI}.manifest.v1+json",
        "config": config,
        "layers": descriptors,
        "annotations": labels(sources),
    }
    described = _add(blobs, manifest, f"{_OCI}.manifest.v1+json")
    described["platform"] = {"architecture": machine.architecture, "os": "linux"}
    return described, blobs


def _write_layout(
    sources: Sources, described: Mapping[str, Any], blobs: Mapping[str, Path | bytes], target: Path
) -> None:
    """Write an image, or an index of several, as an archive with an image layout (OCI image-spec, image-layout.md)."""
    name = f"localhost/pkgrepo:{sources.version}"
    named = {**described, "annotations": {REF_NAME: name}}
    index = {"schemaVersion": 2, "mediaType": f"{_OCI}.index.v1+json", "manifests": [named]}
    document = blobs[described["digest"].removeprefix("sha256:")]
    assert isinstance(document, bytes)
    manifest = json.loads(document)
    entries = []
    if "layers" in manifest:
        # `docker load` before Docker 25 reads no layout, but this list; docker save of later versions writes both.
        parts = (manifest["config"], *manifest["layers"])
        paths = [f"blobs/{each['digest'].replace(':', '/')}" for each in parts]
        listed = [{"Config": paths[0], "RepoTags": [name], "Layers": paths[1:]}]
        entries.append(Entry("manifest.json", 0o644, json.dumps(listed).encode()))
    entries += [
        Entry(LAYOUT_FILE, 0o644, LAYOUT_CONTENT),
        Entry(INDEX, 0o644, json.dumps(index, sort_keys=True).encode()),
        Entry("blobs"),
        Entry("blobs/sha256"),
        *(Entry(f"blobs/sha256/{digest}", 0o644, data) for digest, data in blobs.items()),
    ]
    with target.open("wb") as archive:
        write_tar(archive, entries, sources.epoch)


def _add(blobs: dict[str, Path | bytes], document: dict[str, Any], media_type: str) -> dict[str, Any]:
    """Add a document to the blobs; returns its descriptor."""
    data = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    digest = hashlib.sha256(data).hexdigest()
    blobs[digest] = data
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}
