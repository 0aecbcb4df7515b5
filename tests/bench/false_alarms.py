"""
How many updates of popular packages a rule with ``match.differs`` would hold: each version with the one before it.

``python -m tests.bench.false_alarms --cache FOLDER npm express semver`` asks the registry that npm, or pip, is set up
with, through these programs, for the newest stable versions of each package (``--updates`` of each, 10). Files are
kept in the folder. Nothing of them is run. When a package was first published npm tells, and pip does not. It prints
a table in Markdown, and each update that would be held.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import frozen

from pkgrepo.archives.inside import DIFFERENCES, NO_SHAPE
from pkgrepo.composition.core import make_formats
from pkgrepo.config import read_config
from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.inside import shape_of
from pkgrepo.repositories.policy.conditions import Facts
from pkgrepo.repositories.policy.differences import UNKNOWN, Compared, Seen, compare, with_ages
from pkgrepo.repositories.policy.line import Line, Peer

# What the tests, benchmarks and builds of this project install.
PACKAGES: Mapping[str, Sequence[str]] = {
    "npm": (
        *("verdaccio", "express", "semver", "debug", "ajv", "axe-core", "jose", "koa", "npm", "undici", "mime-types"),
        *("tar", "minimatch", "glob", "body-parser", "send", "qs", "sigstore", "handlebars", "bun"),
    ),
    "python": (
        *("twisted", "treq", "attrs", "msgspec", "apsw", "cryptography", "packaging", "pyyaml", "zstandard", "click"),
        *("jinja2", "markupsafe", "pygments", "pytest", "hypothesis", "coverage", "requests", "mypy", "setuptools"),
        *("multipart",),
    ),
}
LARGEST = 64 * 1024 * 1024  # bytes of a file that is read
FIELDS = ("version", "dependencies", "optionalDependencies", "peerDependencies", "peerDependenciesMeta",
          "repository", "_npmUser", "maintainers")  # fmt: skip
FORMATS = make_formats(read_config(environ={}))


@frozen
class Update:
    """A version, that before it, and how its file differs; ``why`` it could not be compared, if so."""

    package: str
    version: str
    before: str
    found: Compared = UNKNOWN
    why: str = ""


def run(*command: str, folder: Path) -> str:
    """What a program prints. :raises subprocess.CalledProcessError: it failed"""
    made = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=900)
    return made.stdout


def npm_versions(package: str, folder: Path) -> list[str]:
    found = json.loads(run("npm", "view", package, "versions", "--json", folder=folder))
    return [found] if isinstance(found, str) else found


def npm_files(package: str, versions: Sequence[str], folder: Path) -> Iterator[tuple[str, Path, Mapping[str, Any]]]:
    """The tarball of each version, with what the document says of it."""
    for version in versions:
        said = folder / f"{package.replace('/', '+')}-{version}.json"
        file = said.with_suffix(".tgz")
        if not said.exists():
            said.write_text(run("npm", "view", f"{package}@{version}", *FIELDS, "--json", folder=folder))
        if not file.exists():
            name = json.loads(run("npm", "pack", f"{package}@{version}", "--json", folder=folder))[0]["filename"]
            (folder / name.replace("/", "-").removeprefix("@")).rename(file)
        yield version, file, json.loads(said.read_text())


def npm_times(package: str, folder: Path) -> Mapping[str, int]:
    """When each version of a package was published (ms)."""
    said = folder / f"{package.replace('/', '+')}.times.json"
    if not said.exists():
        said.write_text(run("npm", "view", package, "time", "--json", folder=folder))
    times = json.loads(said.read_text())
    return {
        version: round(datetime.fromisoformat(text).timestamp() * 1000)
        for version, text in times.items()
        if version not in ("created", "modified")
    }


def with_ages_of(format: str, found: Compared, after: Seen, package: str, version: str, folder: Path) -> Compared:
    """The comparison, with the ages of new dependencies, if the program tells these."""

    def first_published(name: str) -> int | None:
        try:
            return min(npm_times(name, folder).values(), default=None)
        except subprocess.SubprocessError:
            return None

    if format != "npm" or "dependency" not in found.words:
        return with_ages(found, after, 0, lambda _name: None)
    return with_ages(found, after, npm_times(package, folder)[version], first_published)


def pip_versions(package: str, folder: Path) -> list[str]:
    listed = run(sys.executable, "-m", "pip", "index", "versions", package, "--ignore-requires-python", folder=folder)
    line = next(each for each in listed.splitlines() if each.startswith("Available versions:"))
    return line.partition(":")[2].replace(" ", "").split(",")[::-1]


def pip_files(package: str, versions: Sequence[str], folder: Path) -> Iterator[tuple[str, Path, Mapping[str, Any]]]:
    """The wheel of each version that pip chooses here; nothing is built."""
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:")
    for version in versions:
        place = folder / f"{package}-{version}"
        if not any(place.glob("*.whl")):
            run(*pip, "--dest", str(place), f"{package}=={version}", folder=folder)
        yield version, next(place.glob("*.whl")), {}


READERS = {"npm": (npm_versions, npm_files), "python": (pip_versions, pip_files)}


def updates_of(format: str, package: str, count: int, folder: Path) -> Iterator[Update]:
    """The newest updates of a package, the oldest of these first."""
    kinds, look = FORMATS[format].versions, FORMATS[format].inside
    assert kinds is not None
    assert look is not None
    list_versions, files = READERS[format]
    stable = [each for each in list_versions(package, folder) if not kinds.prerelease(each)]
    stable.sort(key=kinds.sort)
    line = Line([Peer(each, Facts(package=package, versions=(each,)), ()) for each in stable], kinds)
    pairs = [(next(line.before(each, each), None), each) for each in stable[-count:]]
    wanted = {each for peer, version in pairs if peer is not None for each in (peer.version, version)}
    seen: dict[str, Seen | str] = {}
    for version in sorted(wanted, key=kinds.sort):
        try:
            _, file, said = next(files(package, [version], folder))
            if file.stat().st_size > LARGEST:
                raise Invalid("it is too large")
            inside = look(file.read_bytes(), file.name)
            told = shape_of(said) if format == "npm" else NO_SHAPE
            seen[version] = Seen(inside.words, inside.shape, told)
        except (Invalid, subprocess.SubprocessError, StopIteration, json.JSONDecodeError) as error:
            seen[version] = f"{type(error).__name__}: {error}"[:100]
    for peer, version in pairs:
        if peer is not None:
            before, after = seen[peer.version], seen[version]
            if isinstance(before, Seen) and isinstance(after, Seen):
                different = compare(before, after, peer.version)
                different = with_ages_of(format, different, after, package, version, folder)
                yield Update(package, version, peer.version, different)
            else:
                yield Update(package, version, peer.version, why=str(before if isinstance(before, str) else after))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="where files are kept, outside of the checkout")
    parser.add_argument("--updates", type=int, default=10, help="of each package")
    parser.add_argument("format", choices=PACKAGES)
    parser.add_argument("packages", nargs="*", help="what this project installs, if none are named")
    given = parser.parse_args()
    folder: Path = given.cache / given.format
    folder.mkdir(parents=True, exist_ok=True)
    found: list[Update] = []
    for package in given.packages or PACKAGES[given.format]:
        found += updates_of(given.format, package, given.updates, folder)
        print(f"{package}: {len(found)}", file=sys.stderr)
    compared = [each for each in found if not each.why]
    counts = Counter(word for each in compared for word in each.found.words)
    known = {word: sum(word not in each.found.unknown for each in compared) for word in DIFFERENCES}
    print(f"{given.format}, {datetime.now(UTC):%Y-%m-%d}: {len(compared)} updates of", end=" ")
    print(f"{len({each.package for each in compared})} packages; {len(found) - len(compared)} could not be had")
    print("\n| word | would be held | of |\n| --- | --- | --- |")
    for word in DIFFERENCES:
        print(f"| `{word}` | {counts[word]} | {known[word]} |")
    for each in found:
        if each.why or each.found.words:
            print(f"  {each.package} {each.version}: {each.why or each.found.sentence(DIFFERENCES)}")


if __name__ == "__main__":
    main()
