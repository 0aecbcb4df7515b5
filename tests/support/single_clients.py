"""What cargo, go, helm and curl take of a repository with the first crate, module, chart and file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.support.cargo_clients import NAME as REGISTRY
from tests.support.cargo_clients import CargoBench
from tests.support.client_programs import client, client_environment, program, run_client
from tests.support.first_publishes import MODULE, NAME
from tests.support.go_clients import GoBench

GO_MAIN: Final = f'package main\n\nimport "{MODULE}"\n\nfunc main() {{ println({NAME}.Hello()) }}\n'
CHART: Final = """\
apiVersion: v2
name: parent
version: 0.1.0
dependencies:
- name: {name}
  version: 1.0.0
  repository: {url}
"""


def cargo_builds(url: str, folder: Path) -> None:
    """Resolve a program with the crate, and build it again with its lock file and an empty home."""
    needs = f'\n[dependencies]\n{NAME} = {{ version = "1", registry = "{REGISTRY}" }}\n'
    files = {"src/main.rs": f"use {NAME} as _;\nfn main() {{}}\n"}
    first, again = (CargoBench(folder / each, url) for each in ("first", "again"))
    place = first.package("app", more=needs, files=files)
    first.run(place, "generate-lockfile")
    lock = (place / "Cargo.lock").read_text()
    assert f'name = "{NAME}"\nversion = "1.0.0"' in lock
    place = again.package("app", more=needs, files=files)
    (place / "Cargo.lock").write_text(lock)
    again.run(place, "build", "--locked")
    assert (place / "Cargo.lock").read_text() == lock


def go_builds(url: str, folder: Path) -> None:
    """Build a program with the module, whose hash is that of the published one."""
    bench = GoBench(folder, url)
    (bench.place / "main.go").write_text(GO_MAIN)
    bench.settings["GOFLAGS"] = "-modcacherw -mod=mod"
    bench.go("get", f"{MODULE}@v1.0.0")
    bench.go("build", "-o", os.devnull, ".")
    assert f"{MODULE} v1.0.0" in bench.go("list", "-m", "all")
    assert f"{MODULE} v1.0.0" in bench.go("list", "-m", f"{MODULE}@latest")
    assert len(bench.sums) == 2


def helm_builds(url: str, folder: Path) -> None:
    """Resolve the dependency of a chart, then build it of its lock file, and find the chart in the repository."""
    environ = client_environment(folder / "home")
    parent = folder / "parent"
    (parent / "templates").mkdir(parents=True)
    (parent / "Chart.yaml").write_text(CHART.format(name=NAME, url=url))

    def helm(*words: str) -> str:
        return run_client([client("helm-4", "helm"), *words], environ=environ, folder=folder).stdout

    helm("dependency", "update", "parent")
    (parent / "charts" / f"{NAME}-1.0.0.tgz").unlink()
    helm("repo", "add", "here", url)
    helm("dependency", "build", "parent")
    assert (parent / "charts" / f"{NAME}-1.0.0.tgz").exists()
    assert f"here/{NAME}" in helm("search", "repo", NAME)
    helm("pull", f"here/{NAME}")
    assert (folder / f"{NAME}-1.0.0.tgz").exists()


def curl_fetches(url: str, folder: Path) -> None:
    """Fetch the file and its checksum, and compare them."""
    environ = client_environment(folder / "home")
    file = f"{NAME}-1.0.0.bin"
    address = f"{url}/{NAME}/1.0.0/{file}"
    run_client([program("curl"), "-fsS", "-OO", address, f"{address}.sha256"], environ=environ, folder=folder)
    checked = run_client([program("sha256sum"), "-c", f"{file}.sha256"], environ=environ, folder=folder)
    assert checked.stdout == f"{file}: OK\n"


BUILDS: Final[dict[str, Callable[[str, Path], None]]] = {  # by repository
    "crates": cargo_builds,
    "modules": go_builds,
    "charts": helm_builds,
    "files": curl_fetches,
}
