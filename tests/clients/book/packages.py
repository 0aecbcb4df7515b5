"""
Makes what readers of the book have in their folders.

It is run as ``python -m tests.clients.book.packages KIND NAME VERSION [FOLDER]``.

A wheel, gem, conda package, chart or module is a file; of npm, cargo, go, helm and maven it is a folder with a project.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.support.charts import make_chart
from tests.support.conda_packages import make_installable
from tests.support.gems import make_gem
from tests.support.go_modules import make_module
from tests.support.images import make_image, write_layout
from tests.support.maven_files import make_pom
from tests.support.npm_packages import make_tarball
from tests.support.python_packages import make_wheel


def wheel(name: str, version: str) -> dict[str, bytes]:
    return dict([make_wheel(name, version)])


def gem(name: str, version: str) -> dict[str, bytes]:
    return {f"{name}-{version}.gem": make_gem(name, version)}


def conda(name: str, version: str) -> dict[str, bytes]:
    files = {f"site-packages/{name}.py": b"here = True\n"}
    return {f"{name}-{version}-py_0.conda": make_installable(name, version, "py_0", files, noarch="generic")}


def chart(name: str, version: str) -> dict[str, bytes]:
    return {f"{name}-{version}.tgz": make_chart(name, version)}


def module(name: str, version: str) -> dict[str, bytes]:
    return {"module.zip": make_module(name, version)}


def tarball(name: str, version: str) -> dict[str, bytes]:
    return {f"{name.rpartition('/')[2]}-{version}.tgz": make_tarball(name, version)}


def npm(name: str, version: str) -> dict[str, bytes]:
    described = {"name": name, "version": version, "description": "of the book"}
    return {"package.json": json.dumps(described).encode(), "index.js": b"module.exports = 1\n"}


def cargo(name: str, version: str) -> dict[str, bytes]:
    manifest = (
        f'[package]\nname = "{name}"\nversion = "{version}"\nedition = "2021"\nlicense = "MIT"\ndescription = "x"\n'
    )
    return {"Cargo.toml": manifest.encode(), "src/lib.rs": b"pub fn one() -> u8 { 1 }\n"}


def go(name: str, version: str) -> dict[str, bytes]:
    return {
        "go.mod": f"module {name}\n\ngo 1.20\n".encode(),
        "one.go": b"package tools\n\nfunc One() int { return 1 }\n",
    }


def maven(name: str, version: str) -> dict[str, bytes]:
    """A project whose plugins are those that the tests have as files."""
    group, _, artifact = name.partition(":")
    plugins = "".join(
        f"<plugin><artifactId>maven-{each}-plugin</artifactId><version>{pinned}</version></plugin>"
        for each, pinned in (("install", "3.1.4"), ("deploy", "3.1.4"), ("dependency", "3.9.0"))
    )
    more = f"<packaging>pom</packaging><build><pluginManagement><plugins>{plugins}</plugins></pluginManagement></build>"
    return {"pom.xml": make_pom(group, artifact, version, more)}


KINDS: Final[dict[str, Callable[[str, str], dict[str, bytes]]]] = {
    each.__name__: each for each in (wheel, gem, conda, chart, module, tarball, npm, cargo, go, maven)
}


def main(kind: str, name: str, version: str, folder: str = ".") -> None:
    """Write the files of a package below a folder."""
    if kind == "image":
        write_layout(Path(folder), make_image(name), version)
        return
    for path, data in KINDS[kind](name, version).items():
        place = Path(folder, path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
