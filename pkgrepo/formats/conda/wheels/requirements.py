"""
What a wheel requires, as the ``depends`` of a conda package.

A ``noarch: python`` package has one list of dependencies for all platforms and all versions of Python that it allows.
So a requirement with a marker is a dependency if the marker is true on all of them, and none if it is false on all.
Otherwise the wheel cannot be converted. Extras count as not asked for.

=================  =========================================================
Python (PEP 440)   conda
=================  =========================================================
``~=2.2.1``        ``>=2.2.1,2.2.*``
``==2.2.*``        ``2.2.*``
``===2.2``         ``==2.2``
others             the same
=================  =========================================================

Most conda packages are called like their project, in lower case. The table has projects that are known under another
name in the channels that most people use beside theirs, so that dependencies on them are found there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Final

from packaging.markers import Marker, UndefinedEnvironmentName
from packaging.requirements import Requirement
from packaging.specifiers import Specifier, SpecifierSet

from pkgrepo.errors import Invalid
from pkgrepo.formats.conda.names import LONGEST_REQUIREMENT, MOST_REQUIREMENTS, is_name
from pkgrepo.untrusted.text import quoted

_SEPARATORS: Final = re.compile(r"[-_.]+")

_OTHER_NAMES: Final = {
    "backports-functools-lru-cache": "backports.functools_lru_cache",
    "backports-tarfile": "backports.tarfile",
    "backports-zoneinfo": "backports.zoneinfo",
    "blosc": "python-blosc",
    "build": "python-build",
    "cmake": "cmake-python",
    "duckdb": "python-duckdb",
    "et-xmlfile": "et_xmlfile",
    "faiss-cpu": "faiss",
    "fastjsonschema": "python-fastjsonschema",
    "flatbuffers": "python-flatbuffers",
    "graphviz": "python-graphviz",
    "jaraco-classes": "jaraco.classes",
    "jaraco-collections": "jaraco.collections",
    "jaraco-context": "jaraco.context",
    "jaraco-functools": "jaraco.functools",
    "jaraco-text": "jaraco.text",
    "jupyter-client": "jupyter_client",
    "jupyter-console": "jupyter_console",
    "jupyter-core": "jupyter_core",
    "jupyter-events": "jupyter_events",
    "jupyter-server": "jupyter_server",
    "jupyter-server-terminals": "jupyter_server_terminals",
    "jupyterlab-pygments": "jupyterlab_pygments",
    "jupyterlab-server": "jupyterlab_server",
    "jupyterlab-widgets": "jupyterlab_widgets",
    "keyrings-alt": "keyrings.alt",
    "kubernetes": "python-kubernetes",
    "lmdb": "python-lmdb",
    "matplotlib": "matplotlib-base",
    "msgpack": "msgpack-python",
    "opencv-python": "py-opencv",
    "opencv-python-headless": "py-opencv",
    "prometheus-client": "prometheus_client",
    "pure-eval": "pure_eval",
    "pyqt5": "pyqt",
    "ruamel-yaml": "ruamel.yaml",
    "ruamel-yaml-clib": "ruamel.yaml.clib",
    "stack-data": "stack_data",
    "tables": "pytables",
    "torch": "pytorch",
    "typing-extensions": "typing_extensions",
    "tzdata": "python-tzdata",
    "xxhash": "python-xxhash",
    "zope-event": "zope.event",
    "zope-interface": "zope.interface",
}
_PROJECTS: Final[dict[str, list[str]]] = {}
for _project, _package in _OTHER_NAMES.items():
    _PROJECTS.setdefault(_package, []).append(_project)


def conda_name(project: str) -> str:
    """The name of the conda package for a Python project, whose name may be in any spelling."""
    normal = _SEPARATORS.sub("-", project).lower()
    return _OTHER_NAMES.get(normal, normal)


def projects_of(package: str) -> list[str]:
    """The projects, in their normal form, whose conda packages have this name."""
    return [*([] if package in _OTHER_NAMES else [package]), *_PROJECTS.get(package, ())]


PYTHONS: Final = tuple(f"3.{minor}" for minor in range(31))  # versions that a requirement may tell apart
_PATCHES: Final = ("0", "99")  # of each of them
_SYSTEMS: Final = (
    {"os_name": "posix", "sys_platform": "linux", "platform_system": "Linux"},
    {"os_name": "posix", "sys_platform": "darwin", "platform_system": "Darwin"},
    {"os_name": "nt", "sys_platform": "win32", "platform_system": "Windows"},
)
_MACHINES: Final = ("x86_64", "AMD64", "aarch64", "arm64", "ppc64le", "s390x")
# PyPy's packages of conda are other ones: what is written for CPython is converted.
_CPYTHON: Final = {"implementation_name": "cpython", "platform_python_implementation": "CPython", "extra": ""}
_UNKNOWN: Final = re.compile(r"\b(?:platform_release|platform_version|implementation_version|os\.name)\b")


def depends_on(requires_python: str | None, requirements: Sequence[str]) -> list[str]:
    """
    The dependencies for the fields ``Requires-Python`` and ``Requires-Dist``, in their order, without duplicates.

    :raises Invalid: one cannot be written for conda; the sentence names it
    """
    if len(requirements) > MOST_REQUIREMENTS or any(len(each) > LONGEST_REQUIREMENT for each in requirements):
        raise Invalid(f"it has more than {MOST_REQUIREMENTS} requirements, or a long one", "requires_dist")
    pythons = _allowed_pythons(requires_python)
    found = [_join("python", requires_python or ">=3")]
    found += [each for text in requirements for each in _dependency(text, pythons)]
    return list(dict.fromkeys(found))


@lru_cache(maxsize=1024)
def _allowed_pythons(requires_python: str | None) -> tuple[str, ...]:
    text = requires_python or ""
    try:
        allowed = SpecifierSet(text if len(text) <= LONGEST_REQUIREMENT else "?")
    except ValueError:
        raise Invalid(f"its Requires-Python {quoted(text)} cannot be read", "requires_python") from None
    try:
        found = tuple(each for each in PYTHONS if any(f"{each}.{patch}" in allowed for patch in _PATCHES))
    except ValueError:  # a number that is too long
        found = ()
    if not found:
        raise Invalid(f"its Requires-Python {quoted(text)} allows no Python 3", "requires_python")
    return found


def _dependency(text: str, pythons: tuple[str, ...]) -> Iterator[str]:
    try:
        requirement = Requirement(text)
    except (ValueError, RecursionError):  # thousands of brackets
        raise Invalid(f"its requirement {quoted(text)} cannot be read", "requires_dist") from None
    if requirement.marker is not None and not _holds(str(requirement.marker), pythons):
        return
    if requirement.url is not None:
        raise Invalid(f"its requirement {quoted(text)} is an address", "requires_dist")
    name = conda_name(requirement.name)
    if not is_name(name):
        raise Invalid(f"its requirement {quoted(text)} has no name of a conda package", "requires_dist")
    yield _join(name, str(requirement.specifier))


@lru_cache(maxsize=1024)
def _holds(marker: str, pythons: tuple[str, ...]) -> bool:
    """Whether a marker is true everywhere, or nowhere. :raises Invalid: neither"""
    results = set[bool]()
    if not _UNKNOWN.search(marker):
        with suppress(ValueError, UndefinedEnvironmentName, RecursionError):
            parsed = Marker(marker)
            results = {parsed.evaluate(dict(each)) for each in _environments(marker, pythons)}
    if len(results) != 1:
        raise Invalid(f"a requirement holds only on some systems: {quoted(marker)}", "requires_dist")
    return results.pop()


def _environments(marker: str, pythons: Iterable[str]) -> Iterator[Mapping[str, str]]:
    """The environments that the marker can tell apart; each evaluation takes some 20 us."""
    patches = _PATCHES if "python_full_version" in marker else _PATCHES[:1]
    versions = [(each, f"{each}.{patch}") for each in pythons for patch in patches] if "python" in marker else None
    systems = _SYSTEMS if re.search("os_name|sys_platform|platform_system", marker) else _SYSTEMS[:1]
    machines = _MACHINES if "platform_machine" in marker else _MACHINES[:1]
    for short, full in versions or [("3.12", "3.12.0")]:
        for system in systems:
            for machine in machines:
                own = {"python_version": short, "python_full_version": full, "platform_machine": machine}
                yield {**_CPYTHON, **own, **system}


def _join(name: str, specifiers: str) -> str:
    """A dependency with its versions; packaging sorts specifiers, so that the text is always the same."""
    try:
        clauses = sorted(SpecifierSet(specifiers), key=str)
    except ValueError:
        raise Invalid(f"its requirement {quoted(specifiers)} cannot be read", "requires_dist") from None
    return f"{name} {','.join(map(_clause, clauses))}" if clauses else name


def _clause(specifier: Specifier) -> str:
    operator, version = specifier.operator, specifier.version
    match operator:
        case "~=":
            return f">={version},{_series_of(version)}.*"
        case "===":
            return f"=={version}"
        case "==" if version.endswith(".*"):
            return version
        case _:
            return f"{operator}{version}"


def _series_of(version: str) -> str:
    """The release without its last part (PEP 440, compatible release)."""
    found = re.match(r"(?:\d+!)?\d+(?:\.\d+)*(?=\.\d+)", version)
    if found is None:
        raise Invalid(f"its requirement ~={quoted(version)} cannot be read", "requires_dist")
    return found[0]
