"""
Lists of gems, conda packages, Maven artifacts and images.

A POM does not say what a build needs: Maven resolves it, with its plugins. So Maven's own lists are read: of
``dependency:list`` and ``dependency:tree``, the lock file of Gradle, coordinates, and lists of the paths in a local
repository, with the digests of these files.
"""

from __future__ import annotations

import re
from typing import Final

from pkgrepo.errors import Invalid

from .wanted import Lock, Wanted, parse_hashes, path_of, read_yaml, table_of, tables_of, text_of

RUBY: Final = "ruby"
CONDA: Final = "conda"
MAVEN: Final = "maven"
IMAGES: Final = "docker"
LONGEST_LINE: Final = 2000  # of a list of artifacts
_GEM: Final = re.compile(r"    ([^\s(]+) \(([^)]+)\)")
_CHECKSUM: Final = re.compile(r"  ([^\s(]+) \(([^)]+)\) (sha256=[0-9a-f]{64})")
_PART: Final = r"[A-Za-z0-9_.$-]+"
_COORDINATES: Final = re.compile(rf"(?<![^\s|+\\-])({_PART}+(?::{_PART}+){{2,5}}+)(?=[\s=,)]|$)")
_SCOPES: Final = frozenset({"compile", "runtime", "provided", "test", "system", "import"})
_LISTED: Final = re.compile(r"(?:([0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})\s+[*]?)?([A-Za-z0-9_.+-]+(?:/[^\s/]+)+)")
_BY_LENGTH: Final = {32: "md5", 40: "sha1", 64: "sha256"}
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
_ENDINGS: Final = {"test-jar": "jar", "maven-plugin": "jar", "ejb": "jar", "bundle": "jar", "java-source": "jar"}
_CLASSIFIERS: Final = {"test-jar": "tests", "java-source": "sources"}


def read_gemfile(text: str) -> Lock:
    """``Gemfile.lock``. :raises Invalid: it is none"""
    lock, section = Lock(), ""
    sums: dict[tuple[str, str], str] = {}
    for line in text.splitlines():
        checksum = _CHECKSUM.fullmatch(line) if section == "CHECKSUMS" else None
        if checksum is not None:
            sums[checksum[1], checksum[2]] = checksum[3]
        if line[:1].isupper():
            section = line.strip()
    if not re.search(r"^(GEM|GIT|PATH)$", text, re.MULTILINE):
        raise Invalid("it has no section GEM: is it a Gemfile.lock?")
    for line in text.splitlines():
        if line[:1].isupper():
            section = line.strip()
        found = _GEM.fullmatch(line)
        if found is None:
            continue
        name, version = found[1], found[2]
        if section in ("GIT", "PLUGIN SOURCE"):
            lock.leave_out(f"{name} {version}", "it does not come from a gem server")
        elif section == "GEM":
            digests = parse_hashes([sums.get((name, version))])
            lock.want(Wanted(format=RUBY, name=name, version=version, digests=digests))
    return lock


def read_explicit(text: str) -> Lock:
    """A list of URLs of conda packages with digests (``conda list --explicit``). :raises Invalid: it is none"""
    lock = Lock()
    if "@EXPLICIT" not in text:
        raise Invalid("it has no line @EXPLICIT: is it of conda list --explicit?")
    for line in text.splitlines():
        url, _, digest = line.strip().partition("#")
        if "://" in url:
            hashes = digest if ":" in digest else f"{_BY_LENGTH.get(len(digest), '')}:{digest}"
            _add_conda(lock, url, [hashes])
    return lock


def read_conda_lock(text: str) -> Lock:
    """``conda-lock.yml``, with what it takes from a Python index. :raises Invalid: it is none"""
    document, lock = table_of(read_yaml(text)), Lock()
    if "package" not in document:
        raise Invalid("it has no package: is it a conda-lock.yml?")
    for each in tables_of(document["package"]):
        hashes = [f"{name}:{value}" for name, value in table_of(each.get("hash")).items()]
        if each.get("manager") == "pip":
            _add_wheel(lock, text_of(each.get("name")), text_of(each.get("version")), text_of(each.get("url")), hashes)
        else:
            _add_conda(lock, text_of(each.get("url")), hashes)
    return lock


def read_pixi(text: str) -> Lock:
    """``pixi.lock``, with what it takes from a Python index. :raises Invalid: it is none"""
    document, lock = table_of(read_yaml(text)), Lock()
    if "environments" not in document:
        raise Invalid("it has no environments: is it a pixi.lock?")
    for each in tables_of(document.get("packages")):
        hashes = [f"{name}:{text_of(each.get(name))}" for name in ("sha256", "md5")]
        kind = text_of(each.get("kind"))
        conda = text_of(each.get("conda")) or (text_of(each.get("url")) if kind == "conda" else "")
        pypi = text_of(each.get("pypi")) or (text_of(each.get("url")) if kind == "pypi" else "")
        if conda:
            _add_conda(lock, conda, hashes)
        elif "://" in pypi:
            _add_wheel(lock, text_of(each.get("name")), text_of(each.get("version")), pypi, hashes)
    return lock


def read_maven(text: str) -> Lock:
    """
    Coordinates, alone or in what Maven and Gradle print, and paths of files, each with a digest before it or not.

    :raises Invalid: it is a POM
    """
    if re.search(r"<project[\s>]", text):
        raise Invalid(
            "a POM does not say which versions a build needs: give the folder of a local repository, filled by "
            "'mvn -Dmaven.repo.local=FOLDER package', or the file that 'mvn dependency:list -DoutputFile=FILE' writes"
        )
    lock, coordinates = Lock(), list[list[str]]()
    for line in text.splitlines():
        stripped = line.strip()
        if len(stripped) > LONGEST_LINE:
            lock.leave_out(stripped, "the line is too long")
            continue
        listed = _LISTED.fullmatch(stripped)
        if stripped.startswith("#"):
            continue
        if listed is not None:
            digests = parse_hashes([f"{_BY_LENGTH[len(listed[1])]}:{listed[1]}" if listed[1] else None])
            parts = listed[2].split("/")
            name = f"{'.'.join(parts[:-3])}:{parts[-3]}" if len(parts) > 3 else listed[2]
            lock.want(Wanted(format=MAVEN, name=name, file=listed[2], digests=digests))
        elif found := _COORDINATES.search(stripped.replace("[INFO]", "")):
            coordinates.append(found[1].split(":"))
    scoped = any(parts[-1] in _SCOPES for parts in coordinates)
    for parts in coordinates:
        if parts[-1] in _SCOPES:
            _add_artifact(lock, parts[:-1])
        elif not scoped or len(parts) == 3:  # else it is the project itself, at the root of its tree
            _add_artifact(lock, parts)
    return lock


def read_images(text: str) -> Lock:
    """References of images, one a line; platforms such as ``linux/amd64,linux/arm64`` may follow a blank."""
    lock = Lock()
    for line in text.splitlines():
        reference, _, rest = line.partition("#")[0].strip().partition(" ")
        if not reference:
            continue
        name, at, digest = reference.partition("@")
        place, slash, last = name.rpartition("/")
        last, colon, tag = last.partition(":")
        host, _, below = (place + slash + last).partition("/")
        elsewhere = host == "localhost" or "." in host or ":" in host
        name = below if below and elsewhere else place + slash + last
        if (at and not _DIGEST.fullmatch(digest)) or (colon and not tag):
            lock.leave_out(reference, "it is no reference of an image")
            continue
        platforms = tuple(each for each in re.split(r"[,\s]+", rest.strip()) if each)
        for version in [each for each in (tag, digest) if each] or ["latest"]:
            lock.want(Wanted(format=IMAGES, name=name, version=version, platforms=platforms))
    return lock


def _add_conda(lock: Lock, url: str, hashes: list[str]) -> None:
    subdir, _, file = path_of(url).rpartition("/")
    subdir = subdir.rpartition("/")[2]
    if not subdir or not file:
        lock.leave_out(url, "it is no address of a conda package")
        return
    name = file.rsplit("-", 2)[0]
    lock.want(Wanted(format=CONDA, name=name, file=f"{subdir}/{file}", digests=parse_hashes(hashes)))


def _add_wheel(lock: Lock, name: str, version: str, url: str, hashes: list[str]) -> None:
    file = path_of(url).rpartition("/")[2]
    name = name or (file.partition("-")[0] if file.endswith(".whl") else file.rpartition("-")[0])
    lock.want(Wanted(format="python", name=name, version=version, file=file, digests=parse_hashes(hashes)))


def _add_artifact(lock: Lock, parts: list[str]) -> None:
    """The file with coordinates ``group:artifact[:type[:classifier]]:version``, and its POM."""
    if len(parts) < 3 or len(parts) > 5:
        lock.leave_out(":".join(parts), "these are no coordinates of an artifact")
        return
    group, artifact, version = parts[0], parts[1], parts[-1]
    kind = parts[2] if len(parts) > 3 else "jar"
    classifier = parts[3] if len(parts) == 5 else _CLASSIFIERS.get(kind, "")
    stem = artifact_stem(group, artifact, version)
    name = f"{group}:{artifact}"
    lock.want(Wanted(format=MAVEN, name=name, version=version, file=f"{stem}.pom"))
    if kind != "pom":
        ending = f"{'-' + classifier if classifier else ''}.{_ENDINGS.get(kind, kind)}"
        lock.want(Wanted(format=MAVEN, name=name, version=version, file=stem + ending))


def artifact_stem(group: str, artifact: str, version: str) -> str:
    """The path of the files of an artifact, without their endings."""
    return f"{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}"
