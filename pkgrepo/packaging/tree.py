"""
The program with its dependencies in /usr/lib/pkgrepo, for the Debian package and the image.

The folder is a virtual environment for Debian's Python, so neither that nor other programs see these modules. The
dependencies are those of ``requirements.txt``, whose hashes pip compares; ``pip compile`` of uv writes it
(``bin/release --lock``).
"""

from __future__ import annotations

import re
import shutil
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from attrs import frozen

from pkgrepo.packaging.sources import Sources, run

PYTHON = "3.11"  # of Debian 12
SUITE = "bookworm"
HOME = "usr/lib/pkgrepo"
SITE = f"{HOME}/lib/python{PYTHON}/site-packages"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")

_LIBRARIES = ("manylinux_2_34", "manylinux_2_28", "manylinux_2_17", "manylinux2014")  # of C, not newer than Debian 12's
# The models of AWS's services that the client of buckets loads: S3, and those that give out credentials.
_SERVICES = frozenset({"s3", "sts", "sso", "sso-oidc", "signin"})
# zstandard has its functions twice, and takes these with PyPy alone. Of ldaptor only messages and filters are used,
# which need no passlib; readmes are written as HTML, and include nothing; times of buckets are in UTC. Of apsw only the
# module in C is used, with tokenizers of SQLite. What is bound by cffi is compiled, so that nothing parses C; of
# Werkzeug nothing but routes and errors is used.
_UNUSED = (
    *(f"apsw/{name}" for name in ("sqlite_extra_binaries", "fts_test_strings", "tests")),
    *(f"apsw/{name}.py" for name in ("ext", "fts5", "fts5aux", "fts5query", "shell", "speedtest", "unicode")),
    "apsw/_unicode.cpython-311-{triplet}.so",
    "dateutil/zoneinfo/dateutil-zoneinfo.tar.gz",
    "docutils/parsers/rst/include",
    *(f"docutils/writers/{name}" for name in ("html4css1", "latex2e", "odf_odt", "pep_html", "s5_html", "xetex")),
    *(f"docutils/writers/{name}.py" for name in ("docutils_xml", "manpage")),
    "ldaptor/_scripts",
    "ldaptor/samba",
    "passlib",
    "pkgrepo/docs/pictures/package.png",
    "pkgrepo/packaging",
    "pycparser",
    "pyparsing/diagram",
    *(f"twisted/{name}" for name in ("conch", "mail", "names", "pair", "positioning", "trial", "words")),
    *(f"twisted/plugins/twisted_{name}.py" for name in ("conch", "ftp", "mail", "names", "trial", "words")),
    *(f"twisted/protocols/{name}.py" for name in ("amp", "ftp", "sip")),
    "twisted/internet/iocpreactor",
    "werkzeug/debug",
    "zstandard/_cffi.cpython-311-{triplet}.so",
    "zstandard/backend_cffi.py",
)
# Folders with one module for each language, style or form of output, of which these are used.
_USED: Final[Mapping[str, Sequence[str]]] = {
    "docutils/languages": ("en.py",),
    "docutils/parsers/rst/languages": ("en.py",),
    "pygments/formatters": ("_mapping.py", "html.py"),
    "pygments/styles": ("_mapping.py", "default.py"),
}
_SCRIPT = """\
#!/{home}/bin/python3
import sys

from {module} import {function}

sys.exit({function}())
"""
# What other programs call by name to get credentials.
HELPERS = {
    "docker-credential-pkgrepo": ("pkgrepo.client.credentials.docker", "main"),
    "cargo-credential-pkgrepo": ("pkgrepo.client.credentials.cargo", "main"),
}
_SCRIPTS = {"pkgrepo": ("pkgrepo.cli", "main"), "twistd": ("twisted.scripts.twistd", "run"), **HELPERS}
_LOCKED = re.compile(r"(?m)^([A-Za-z0-9._-]+)==(\S+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@frozen
class Machine:
    """
    What a release is built for. Nothing of it needs to run where that is done, unless it is ``MACHINES[0]``.

    ``architecture`` is its name in Debian and in images, ``name`` that of the kernel and of wheels, ``strip`` the
    program that takes debugging information from its libraries, and ``elf`` its number in their heads (e_machine).
    """

    architecture: str
    name: str
    strip: str
    elf: int

    @property
    def triplet(self) -> str:
        """Its name in paths of libraries."""
        return f"{self.name}-linux-gnu"


MACHINES: Final = (
    Machine("amd64", "x86_64", "strip", 62),
    Machine("arm64", "aarch64", "aarch64-linux-gnu-strip", 183),
)


@frozen
class Locked:
    """A dependency in ``requirements.txt``; ``hashes`` are the SHA-256 of its files, one of which is installed."""

    name: str
    version: str
    hashes: tuple[str, ...]


def locked(text: str) -> Iterator[Locked]:
    """The dependencies in the text of ``requirements.txt``."""
    starts = [*_LOCKED.finditer(text)]
    ends = [each.start() for each in starts[1:]] + [len(text)]
    for each, end in zip(starts, ends, strict=False):  # without any start there is one end
        yield Locked(each[1], each[2], tuple(_HASH.findall(text[each.end() : end])))


def lock(root: Path) -> None:
    """Write ``requirements.txt`` anew, with the newest versions that pyproject.toml allows."""
    command = [
        sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", "--extra", "postgresql", "--extra", "s3",
        "--generate-hashes", "--python-version", PYTHON, "--python-platform", "x86_64-manylinux_2_34",
        "--only-binary", ":all:", "--no-header", "--no-annotate", "--upgrade", "--quiet", "--output-file", REQUIREMENTS,
    ]  # fmt: skip
    run(command, cwd=root)


def make_tree(sources: Sources, wheel: Path, work: Path, machine: Machine) -> Path:
    """Install the wheel and its dependencies below a new folder; returns that, which stands for / of a machine."""
    root = work / f"tree-{machine.architecture}"
    site = root / SITE
    site.mkdir(parents=True)
    platforms = [word for each in _LIBRARIES for word in ("--platform", f"{each}_{machine.name}")]
    command = [
        sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", "--no-deps",
        "--require-hashes", "--only-binary", ":all:", "--implementation", "cp", "--python-version", PYTHON, *platforms,
        "--target", site, "--requirement", sources.folder / "pkgrepo" / "packaging" / "requirements.txt",
    ]  # fmt: skip
    run(command, env=sources.environment)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    _prune(site, machine)
    programs = root / HOME / "bin"
    programs.mkdir()
    for name, (module, function) in _SCRIPTS.items():
        (programs / name).write_text(_SCRIPT.format(home=HOME, module=module, function=function))
        (programs / name).chmod(0o755)
    (programs / "python3").symlink_to(f"/usr/bin/python{PYTHON}")
    (root / HOME / "pyvenv.cfg").write_text(
        f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {PYTHON}\n"
    )
    return root


def _prune(site: Path, machine: Machine) -> None:
    """
    Remove what the server never uses: scripts and tests of dependencies, models of other services, other protocols.

    The libraries lose their debugging information, which is most of some; not those that are patched by auditwheel.
    """
    shutil.rmtree(site / "bin", ignore_errors=True)
    for each in (site / "botocore" / "data").iterdir():
        if each.is_dir() and each.name not in _SERVICES:
            shutil.rmtree(each)
    for each in [site / name.format(triplet=machine.triplet) for name in _UNUSED]:
        shutil.rmtree(each) if each.is_dir() else each.unlink()
    for folder, used in _USED.items():
        for each in (site / folder).glob("*.py"):
            if each.name not in ("__init__.py", *used):
                each.unlink()
    folders = [
        each
        for each in site.rglob("*")
        if each.is_dir() and each.name in {"test", "tests", "_test", "__pycache__", "sboms"}
    ]
    for each in folders:
        shutil.rmtree(each, ignore_errors=True)
    for each in [*site.rglob("*.pyi"), *site.glob("*.dist-info/RECORD")]:  # the latter are for pip, which is not there
        each.unlink()
    libraries = [each for each in sorted(site.rglob("*.so")) if not each.is_relative_to(site / "psycopg_binary")]
    run([machine.strip, "--strip-debug", *libraries])
