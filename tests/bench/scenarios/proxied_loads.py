"""What is installed through proxies, and how it gets into hosted repositories."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import evolve, frozen

from tests.bench.arena import Arena
from tests.bench.clients.installs import (
    BUNDLER_CONNECTIONS,
    MAVEN_CONNECTIONS,
    PIP_CONNECTIONS,
    UV_CONNECTIONS,
    Installed,
    install_gems,
    install_npm,
    install_python,
    pull_image,
    resolve_maven,
)
from tests.bench.clients.load import LoadFailed
from tests.bench.clients.programs import npm_install, pip_install, uv_install
from tests.bench.contestants.container import PkgrepoImages
from tests.bench.contestants.maven import PkgrepoMaven
from tests.bench.contestants.npm import NodeRegistry, PkgrepoNpm
from tests.bench.contestants.proxy import Source
from tests.bench.contestants.python import PkgrepoPython
from tests.bench.contestants.rubygems import PkgrepoGems
from tests.bench.contestants.server import Contestant
from tests.bench.packages.modules import GROUP
from tests.bench.packages.trees import GEM_TREE, JAVA_TREE, NODE_TREE, PYTHON_TREE
from tests.bench.stocks import publish_java_tree, publish_node_tree, publish_python_tree, push_image
from tests.bench.upstream import WARM_UP, coordinates, large_image


@frozen
class Load:
    """
    Something to install, from whom, and who else has it.

    C{first} fetches another package, C{install} all that is measured, with header fields that are sent as well. C{fill}
    publishes it to C{hosted}.
    """

    name: str
    about: str
    ours: str
    direct: str
    hosted: str
    peers: tuple[str, ...]
    first: Callable[[Source], object]
    install: Callable[[Contestant, Mapping[str, str]], Installed]
    fill: Callable[[Arena, Contestant], object]


def _install_tree(server: Contestant, headers: Mapping[str, str]) -> Installed:
    assert isinstance(server, Source | NodeRegistry)
    return _complete(install_npm(server.registry_url, NODE_TREE[0].name, headers), len(NODE_TREE))


def _install_wheels(connections: int) -> Callable[[Contestant, Mapping[str, str]], Installed]:
    def install(server: Contestant, headers: Mapping[str, str]) -> Installed:
        assert isinstance(server, Source | PkgrepoPython)
        installed = install_python(server.page_url, PYTHON_TREE[0].name, connections, headers)
        return _complete(installed, len(PYTHON_TREE))

    return install


def _install_tree_by_npm(server: Contestant, _: Mapping[str, str]) -> Installed:
    assert isinstance(server, Source | NodeRegistry)
    return _complete(npm_install(server.registry_url, NODE_TREE[0].name), len(NODE_TREE))


def _install_wheels_by(
    program: Callable[[Callable[[str], str], str], Installed],
) -> Callable[[Contestant, Mapping[str, str]], Installed]:
    def install(server: Contestant, _: Mapping[str, str]) -> Installed:
        assert isinstance(server, Source | PkgrepoPython)
        return _complete(program(server.page_url, PYTHON_TREE[0].name), len(PYTHON_TREE))

    return install


def _pull(server: Contestant, headers: Mapping[str, str]) -> Installed:
    assert isinstance(server, Source | PkgrepoImages)
    image = large_image(Source.mib)
    installed = pull_image(server.client(image.name), "v1", headers)
    return _complete(installed, len(image.layers) + 1)


def _resolve(server: Contestant, headers: Mapping[str, str]) -> Installed:
    assert isinstance(server, Source | PkgrepoMaven)
    installed = resolve_maven(_maven_url(server), coordinates(JAVA_TREE[0]), headers)
    return _complete(installed, len(JAVA_TREE))


def _install_gems(server: Contestant, headers: Mapping[str, str]) -> Installed:
    assert isinstance(server, Source | PkgrepoGems)
    return _complete(install_gems(server.gems_url, GEM_TREE[0].name, headers), len(GEM_TREE))


def _maven_url(server: Source | PkgrepoMaven) -> str:
    return server.maven_url if isinstance(server, Source) else server.target.url


def _complete(installed: Installed, files: int) -> Installed:
    if installed.files + installed.failed < files:
        raise LoadFailed(f"{installed.files} of {files} files came, and {installed.failed} errors")
    return installed


def _fill_npm(_: Arena, server: Contestant) -> None:
    assert isinstance(server, NodeRegistry)
    publish_node_tree(server)


def _fill_python(_: Arena, server: Contestant) -> None:
    assert isinstance(server, PkgrepoPython)
    publish_python_tree(server)


def _fill_maven(_: Arena, server: Contestant) -> None:
    assert isinstance(server, PkgrepoMaven)
    publish_java_tree(server)


def _fill_gems(_: Arena, server: Contestant) -> None:
    assert isinstance(server, PkgrepoGems)
    server.publish_tree(GEM_TREE)


def _fill_images(arena: Arena, server: Contestant) -> None:
    assert isinstance(server, PkgrepoImages)
    push_image(server, large_image(Source.mib), arena.cache)


def _first_npm(server: Source) -> object:
    return install_npm(server.registry_url, WARM_UP)


def _first_python(server: Source) -> object:
    return install_python(server.page_url, WARM_UP, PIP_CONNECTIONS)


def _first_maven(server: Source) -> object:
    return resolve_maven(server.maven_url, f"{GROUP}:{WARM_UP}:1.0.0")


def _first_gem(server: Source) -> object:
    return install_gems(server.gems_url, WARM_UP)


def _first_image(server: Source) -> object:
    return pull_image(server.client(WARM_UP), "v1", {})


NPM_LOAD = Load(
    name="npm",
    about=f"npm tree of {len(NODE_TREE)} packages, over 15 connections",
    ours="pkgrepo-npm-proxy",
    direct="direct-npm",
    hosted=PkgrepoNpm.name,
    peers=("verdaccio-proxy", "nora-npm-proxy"),
    first=_first_npm,
    install=_install_tree,
    fill=_fill_npm,
)
PIP_LOAD = Load(
    name="pip",
    about=f"{len(PYTHON_TREE)} wheels, one request after the other, as pip",
    ours="pkgrepo-python-proxy",
    direct="direct-python",
    hosted=PkgrepoPython.name,
    peers=("devpi-proxy", "proxpi", "nora-python-proxy"),
    first=_first_python,
    install=_install_wheels(PIP_CONNECTIONS),
    fill=_fill_python,
)
UV_LOAD = Load(
    name="uv",
    about=f"{len(PYTHON_TREE)} wheels, over {UV_CONNECTIONS} connections, as uv",
    ours=PIP_LOAD.ours,
    direct=PIP_LOAD.direct,
    hosted=PIP_LOAD.hosted,
    peers=PIP_LOAD.peers,
    first=_first_python,
    install=_install_wheels(UV_CONNECTIONS),
    fill=_fill_python,
)
# The same trees by the programs themselves; only cold, where the programs' own work does not hide everything.
REAL_NPM_LOAD = evolve(
    NPM_LOAD, name="real-npm", about=f"npm itself, tree of {len(NODE_TREE)} packages", install=_install_tree_by_npm
)
REAL_PIP_LOAD = evolve(
    PIP_LOAD, name="real-pip", about=f"pip itself, {len(PYTHON_TREE)} wheels", install=_install_wheels_by(pip_install)
)
REAL_UV_LOAD = evolve(
    UV_LOAD, name="real-uv", about=f"uv itself, {len(PYTHON_TREE)} wheels", install=_install_wheels_by(uv_install)
)
IMAGE_LOAD = Load(
    name="image",
    about="image of 8 layers (1 GB unless --mib is given), three at a time",
    ours="pkgrepo-image-proxy",
    direct="direct-images",
    hosted=PkgrepoImages.name,
    peers=("distribution-proxy", "nora-image-proxy"),
    first=_first_image,
    install=_pull,
    fill=_fill_images,
)
LINE_LOAD = evolve(
    IMAGE_LOAD,
    name="line",
    about=f"{IMAGE_LOAD.about}, from an upstream at a line of 1 Gbit/s",
    ours="pkgrepo-line-proxy",
    direct="direct-line",
    peers=("distribution-line-proxy", "nora-line-proxy"),
)
MAVEN_LOAD = Load(
    name="maven",
    about=f"{2 * len(JAVA_TREE)} files of {len(JAVA_TREE)} artifacts, over {MAVEN_CONNECTIONS} connections",
    ours="pkgrepo-maven-proxy",
    direct="direct-maven",
    hosted=PkgrepoMaven.name,
    peers=("nora-maven-proxy",),
    first=_first_maven,
    install=_resolve,
    fill=_fill_maven,
)
GEM_LOAD = Load(
    name="gems",
    about=f"{len(GEM_TREE)} gems, over {BUNDLER_CONNECTIONS} connections, as Bundler without an index",
    ours="pkgrepo-gems-proxy",
    direct="direct-gems",
    hosted=PkgrepoGems.name,
    peers=(),
    first=_first_gem,
    install=_install_gems,
    fill=_fill_gems,
)
SILENT_LOAD = evolve(
    MAVEN_LOAD,
    name="silent",
    about=f"{MAVEN_LOAD.about}, and their checksums, which the upstream does not announce",
    ours="pkgrepo-maven-silent-proxy",
    direct="direct-maven-silent",
    peers=("nora-maven-silent-proxy",),
)
