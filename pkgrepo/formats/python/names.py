"""Project names, versions, file names and paths (PEP 440, 503, 427, 625)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from attrs import frozen
from packaging.utils import canonicalize_version
from packaging.version import Version

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.formats.python.versions import find_version, parse_version
from pkgrepo.untrusted.text import quoted

Kind = Literal["bdist_wheel", "sdist", "bdist_egg"]

LONGEST_FILENAME = 255  # bytes; the limit of file systems
LONGEST_NAME = LONGEST_FILENAME  # of a project, since its files begin with it

SDIST_ENDINGS = (".tar.gz", ".zip")
EGG_ENDING = ".egg"  # what setuptools built before there were wheels; installers of then read it
OLD_SDIST_ENDINGS = (".tgz", ".tar.bz2", ".tbz", ".tar.xz", ".txz", ".tar")  # on indexes for installers, not uploaded

METADATA = ".metadata"  # PEP 658
SIGNATURE = ".asc"
PROVENANCE = ".provenance"  # PEP 740
PROVENANCE_TYPE = "application/vnd.pypi.integrity.v1+json"
COMPANIONS = (METADATA, SIGNATURE, PROVENANCE)

_NAME = re.compile(r"[A-Z0-9](?:[A-Z0-9._-]*[A-Z0-9])?", re.IGNORECASE | re.ASCII)
_SEPARATORS = re.compile(r"[-_.]+")
_BUILD = re.compile(r"[0-9][A-Za-z0-9_.]*")
_EGG_PYTHON = re.compile(r"py[0-9.]+")
_TAGS = re.compile(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*")


@frozen
class FileName:
    """
    The parsed file name of a distribution.

    ``name`` and ``version_text`` are spelt as in the file name; ``stem`` is the file name without its ending.
    ``python_version`` is the interpreter tag of a wheel (``py3``, ``py2.py3``, ``cp311``) and ``source`` for a source
    distribution; ``build`` and ``tags`` are a wheel's build tag and its three tags, and empty otherwise.
    """

    filename: str
    stem: str
    name: str
    project_key: str
    version_text: str
    version_key: str
    version_sort: bytes
    kind: Kind
    python_version: str
    build: str = ""
    tags: str = ""

    def is_version(self, version: Version) -> bool:
        """Whether the file belongs to this version."""
        return canonicalize_version(version) == self.version_key


def is_valid_name(name: str) -> bool:
    """Whether this is a project name: ASCII letters and digits, with ``.``, ``_`` and ``-`` between them (PEP 508)."""
    return len(name) <= LONGEST_NAME and _NAME.fullmatch(name) is not None


def normalise(name: str) -> str:
    """
    The key of a project, equal for every spelling of its name (PEP 503).

    :raises Invalid: it is no project name
    """
    if not is_valid_name(name):
        raise Invalid(
            f"{quoted(name)} is not a project name: ASCII letters and digits, with '.', '_' and '-' between them, "
            f"at most {LONGEST_NAME}",
            "name",
        )
    return collapse(name)


def project_key(name: str) -> str:
    """The key of the project that a request names. :raises NotFound: it is no project name"""
    try:
        return normalise(name)
    except Invalid:
        raise NotFound("project", name) from None


def collapse(name: str) -> str:
    """The key of a valid name."""
    return _SEPARATORS.sub("-", name).lower()


def parse_upload(filename: str, *, project: str | None = None, strict: bool = False) -> FileName:
    """
    Parse the file name of an uploaded distribution.

    ``strict`` allows only today's spelling: name and version normalised, source distributions as ``.tar.gz``. Otherwise
    older spellings are allowed too.

    :raises Invalid: see L{parse_filename}; a source distribution has another ending than ``SDIST_ENDINGS``
    """
    parsed = parse_filename(filename, project=project, sdist_endings=SDIST_ENDINGS)
    if strict:
        _check_spelling(parsed)
    return parsed


def parse_filename(
    filename: str,
    *,
    project: str | None = None,
    sdist_endings: tuple[str, ...] = SDIST_ENDINGS + OLD_SDIST_ENDINGS,
    eggs: bool = False,
) -> FileName:
    """
    Parse the file name of a wheel or source distribution, with ``eggs`` also of an egg.

    Without ``project``, a source distribution whose name can be split in several ways is refused. With it, a file of
    another project is refused.

    :raises Invalid: it is not the name of a wheel or a source distribution, or of another project
    """
    _check_characters(filename)
    key = None if project is None else normalise(project)
    if filename.endswith(".whl"):
        parsed = _parse_wheel(filename, key)
    elif eggs and filename.endswith(EGG_ENDING):
        parsed = _parse_egg(filename, key)
    elif filename.endswith(sdist_endings):
        parsed = _parse_sdist(filename, key, sdist_endings)
    else:
        raise Invalid(f"{filename!r} is neither a wheel (.whl) nor a source distribution (.tar.gz, .zip)", "content")
    return parsed


def split_stem(stem: str, project_key: str | None) -> list[tuple[str, Version]]:
    """Every way to split ``<name>-<version>``, of one project or of any: both parts may contain dashes."""
    return [
        (name, version)
        for name, text in _splits(stem)
        if is_valid_name(name)
        and (project_key is None or collapse(name) == project_key)
        and (version := find_version(text)) is not None
    ]


def file_path(project: str, version: str, filename: str) -> str:
    """The public path of a distribution below its repository; ``project`` is the key, ``version`` as published."""
    return f"packages/{project}/{version}/{filename}"


def split_companion(filename: str) -> tuple[str, str]:
    """Split a requested file name into the distribution's name and the companion suffix, which may be empty."""
    for suffix in COMPANIONS:
        if filename.endswith(suffix) and len(filename) > len(suffix):
            return filename[: -len(suffix)], suffix
    return filename, ""


def readable_path(path: str) -> str:
    """``<project>/<version>/<file>`` of a public path."""
    return path.removeprefix("packages/")


def _splits(stem: str) -> Iterator[tuple[str, str]]:
    for dash in re.finditer("-", stem):
        yield stem[: dash.start()], stem[dash.end() :]


def _check_characters(filename: str) -> None:
    if len(filename.encode("utf-8", "surrogatepass")) > LONGEST_FILENAME:
        raise Invalid(f"the file name is longer than {LONGEST_FILENAME} bytes", "content")
    if not filename.isascii():
        raise Invalid(f"file name {quoted(filename)} has characters that are not ASCII", "content")
    if not filename.isprintable() or " " in filename:
        raise Invalid(f"file name {quoted(filename)} has blanks or control characters", "content")
    if "/" in filename or "\\" in filename:
        raise Invalid(f"file name {quoted(filename)} has a slash or backslash", "content")
    if filename.startswith("."):
        raise Invalid(f"file name {quoted(filename)} begins with a dot", "content")


def _parse_wheel(filename: str, project_key: str | None) -> FileName:
    stem = filename.removesuffix(".whl")
    parts = stem.split("-")
    if len(parts) not in (5, 6):
        raise Invalid(
            f"{filename!r} is not a wheel's name: <name>-<version>[-<build>]-<python>-<abi>-<platform>.whl", "content"
        )
    name, version, build, tags = parts[0], parts[1], parts[2] if len(parts) == 6 else "", parts[-3:]
    # PEP 427: several separators are escaped to one underscore, and installers refuse two in a row.
    if not is_valid_name(name) or "__" in name:
        raise Invalid(f"{filename!r} begins with {name!r}, which is not a project name as wheels write it", "content")
    if len(parts) == 6 and not _BUILD.fullmatch(build):
        raise Invalid(f"{filename!r} has the build tag {build!r}, which does not begin with a digit", "content")
    if not all(_TAGS.fullmatch(tag) for tag in tags):
        raise Invalid(f"{filename!r} has an empty or malformed tag", "content")
    return _file_name(
        filename,
        stem,
        name,
        version,
        project_key=project_key,
        kind="bdist_wheel",
        python_version=tags[0],
        build=build,
        tags="-".join(tags),
    )


def _parse_egg(filename: str, project_key: str | None) -> FileName:
    """``<name>-<version>-py<X.Y>[-<platform>].egg``, in whose parts setuptools writes ``_`` for ``-``."""
    stem = filename.removesuffix(EGG_ENDING)
    parts = stem.split("-", 3)
    if len(parts) < 3 or not is_valid_name(parts[0]) or not _EGG_PYTHON.fullmatch(parts[2]):
        raise Invalid(f"{filename!r} is not an egg's name: <name>-<version>-py<X.Y>[-<platform>].egg", "content")
    return _file_name(
        filename,
        stem,
        parts[0],
        parts[1].replace("_", "-"),
        project_key=project_key,
        kind="bdist_egg",
        python_version=parts[2].removeprefix("py"),
    )


def _parse_sdist(filename: str, project_key: str | None, endings: tuple[str, ...]) -> FileName:
    stem = next(filename.removesuffix(ending) for ending in endings if filename.endswith(ending))
    readings = split_stem(stem, project_key)
    if not readings and project_key is not None and split_stem(stem, None):
        raise Invalid(f"{filename!r} is not a file of project {project_key!r}", "name")
    if not readings:
        raise Invalid(f"{filename!r} is not <name>-<version> with a version as PEP 440 has it", "content")
    if len(readings) > 1:
        raise Invalid(f"{filename!r} can be split into name and version in more than one way; name the project", "name")
    name = readings[0][0]
    return _file_name(
        filename, stem, name, stem[len(name) + 1 :], project_key=project_key, kind="sdist", python_version="source"
    )


def _file_name(
    filename: str,
    stem: str,
    name: str,
    version: str,
    *,
    project_key: str | None,
    kind: Kind,
    python_version: str,
    build: str = "",
    tags: str = "",
) -> FileName:
    key = collapse(name)
    if project_key is not None and key != project_key:
        raise Invalid(f"{filename!r} is not a file of project {project_key!r}", "name")
    if find_version(version) is None:
        raise Invalid(f"{filename!r} has the version {version!r}, which PEP 440 does not allow", "version")
    version_key, version_sort = parse_version(version)
    return FileName(
        filename=filename,
        stem=stem,
        name=name,
        project_key=key,
        version_text=version,
        version_key=version_key,
        version_sort=version_sort,
        kind=kind,
        python_version=python_version,
        build=build,
        tags=tags,
    )


def _check_spelling(parsed: FileName) -> None:
    """PEP 625, and the binary distribution format since then."""
    name = parsed.project_key.replace("-", "_")
    version = str(Version(parsed.version_text))
    ending = "".join(f"-{part}" for part in (parsed.build, parsed.tags) if part)
    expected = f"{name}-{version}{ending}{'.whl' if parsed.kind == 'bdist_wheel' else '.tar.gz'}"
    if parsed.filename != expected:
        raise Invalid(
            f"{parsed.filename!r} must be spelt {expected!r} here; policy.strict_filenames of the repository decides",
            "content",
        )
