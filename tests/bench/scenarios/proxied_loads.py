"""What is installed through proxies, and how it gets into hosted repositories."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

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
from tests.bench.clients.load import LoadFailed, Post, post_all
from tests.bench.clients.programs import npm_install, pip_install, uv_install
from tests.bench.clients.registry import Pusher
from tests.bench.contestants.container import PkgrepoImages
from tests.bench.contestants.maven import PkgrepoMaven
from tests.bench.contestants.npm import PkgrepoNpm
from tests.bench.contestants.pkgrepo import PkgrepoGems
from tests.bench.contestants.proxy import Source
from tests.bench.contestants.python import PkgrepoPython
from tests.bench.contestants.server import Contestant
from tests.bench.packages.images import Image
from tests.bench.packages.modules import GROUP, put
from tests.bench.packages.trees import GEM_TREE, JAVA_TREE, NODE_TREE, PYTHON_TREE, Node
from tests.bench.upstream import WARM_UP, coordinates, java_upstream, large_image
from tests.support.npm_packages import make_manifest, make_publish, make_tarball
from tests.support.python_packages import make_wheel

PUBLISHERS = 8
Install = Callable[[Any, Mapping[str, str]], Installed]


@frozen
class Load:
    """
    Something to install, from whom, and who else has it.

    ``first`` fetches another package, ``install`` all that is measured, with header fields that are sent as well.
    ``fill`` publishes it to ``hosted``; the folder keeps large files.
    """

    name: str
    about: str
    ours: str
    direct: str
    hosted: str
    peers: tuple[str, ...]
    first: Callable[[Any], object]
    install: Install
    fill: Callable[[Any, Path], object]


def _whole(files: Callable[[], int], install: Install) -> Install:
    """An install that must answer for so many files. :raises LoadFailed: some of them did not come, without an error"""

    def checked(server: Contestant, headers: Mapping[str, str]) -> Installed:
        installed = install(server, headers)
        if installed.files + installed.failed < files():
            raise LoadFailed(f"{installed.files} of {files()} files came, and {installed.failed} errors")
        return installed

    return checked


def _tree(nodes: Sequence[Node], install: Callable[[Any, Node, Mapping[str, str]], Installed]) -> Install:
    """An install of a tree by its first package."""
    return _whole(lambda: len(nodes), lambda server, headers: install(server, nodes[0], headers))


def _wheels(connections: int) -> Install:
    return _tree(
        PYTHON_TREE, lambda server, root, headers: install_python(server.page_url, root.name, connections, headers)
    )


def _wheels_by(program: Callable[[Callable[[str], str], str], Installed]) -> Install:
    return _tree(PYTHON_TREE, lambda server, root, _: program(server.page_url, root.name))


def _pull(server: Any, headers: Mapping[str, str]) -> Installed:
    return pull_image(server.client(large_image(Source.mib).name), "v1", headers)


def publish_node_tree(server: PkgrepoNpm) -> None:
    """Publish all versions of the npm tree."""

    def publish(node: Node) -> None:
        post_all(server.publish_target(node.name), [_npm_post(node, version) for version in node.versions], 1)

    with ThreadPoolExecutor(PUBLISHERS) as pool:
        list(pool.map(publish, NODE_TREE))


def publish_python_tree(server: PkgrepoPython) -> None:
    """Publish all versions of the Python tree."""

    def publish(node: Node) -> None:
        for version in node.versions:
            pad = node.padding if version == node.newest else 0
            requires = [("Requires-Dist", name) for name in node.needs]
            filename, data = make_wheel(node.name, version, fields=requires, pad=pad)
            target = server.raw_target(node.name, version, filename)
            post_all(target, [Post({}, [data], len(data), method="PUT")], 1)

    with ThreadPoolExecutor(PUBLISHERS) as pool:
        list(pool.map(publish, PYTHON_TREE))


def publish_java_tree(server: PkgrepoMaven) -> None:
    """Put the POMs and jars of the Java tree."""
    files = java_upstream(announces=False).data
    posts = [put(f"{server.root}{path}", data) for path, data in files.items()]
    post_all(server.target("maven"), posts, PUBLISHERS)


def push_image(server: PkgrepoImages, image: Image, folder: Path) -> None:
    """Push an image of large layers, which are kept in a folder."""
    pusher = Pusher(server.client(image.name))
    for layer in image.layers:
        pusher.push_blob(layer, layer.ensure(folder))
    pusher.push_bytes(image.config, image.config_digest)
    pusher.push_manifest(image, "v1")
    pusher.close()


def _npm_post(node: Node, version: str) -> Post:
    needs = dict.fromkeys(node.needs, "^1.0.0")
    pad = node.padding if version == node.newest else 0
    manifest = make_manifest(node.name, version, dependencies=needs)
    tarball = make_tarball(node.name, version, manifest=manifest, pad=pad)
    body = make_publish(node.name, version, tarball=tarball, dependencies=needs)
    return Post({"Content-Type": "application/json"}, [body], len(body), method="PUT")


NPM_LOAD = Load(
    name="npm",
    about=f"npm tree of {len(NODE_TREE)} packages, over 15 connections",
    ours="pkgrepo-npm-proxy",
    direct="direct-npm",
    hosted=PkgrepoNpm.name,
    peers=("verdaccio-proxy", "nora-npm-proxy"),
    first=lambda server: install_npm(server.place("npm"), WARM_UP),
    install=_tree(NODE_TREE, lambda server, root, headers: install_npm(server.place("npm"), root.name, headers)),
    fill=lambda server, _: publish_node_tree(server),
)
PIP_LOAD = Load(
    name="pip",
    about=f"{len(PYTHON_TREE)} wheels, one request after the other, as pip",
    ours="pkgrepo-python-proxy",
    direct="direct-python",
    hosted=PkgrepoPython.name,
    peers=("devpi-proxy", "proxpi", "nora-python-proxy"),
    first=lambda server: install_python(server.page_url, WARM_UP, PIP_CONNECTIONS),
    install=_wheels(PIP_CONNECTIONS),
    fill=lambda server, _: publish_python_tree(server),
)
UV_LOAD = evolve(
    PIP_LOAD,
    name="uv",
    about=f"{len(PYTHON_TREE)} wheels, over {UV_CONNECTIONS} connections, as uv",
    install=_wheels(UV_CONNECTIONS),
)
# The same trees by the programs themselves; only cold, where the programs' own work does not hide everything.
REAL_NPM_LOAD = evolve(
    NPM_LOAD,
    name="real-npm",
    about=f"npm itself, tree of {len(NODE_TREE)} packages",
    install=_tree(NODE_TREE, lambda server, root, _: npm_install(server.place("npm"), root.name)),
)
REAL_PIP_LOAD = evolve(
    PIP_LOAD, name="real-pip", about=f"pip itself, {len(PYTHON_TREE)} wheels", install=_wheels_by(pip_install)
)
REAL_UV_LOAD = evolve(
    UV_LOAD, name="real-uv", about=f"uv itself, {len(PYTHON_TREE)} wheels", install=_wheels_by(uv_install)
)
IMAGE_LOAD = Load(
    name="image",
    about="image of 8 layers (1 GB unless --mib is given), three at a time",
    ours="pkgrepo-image-proxy",
    direct="direct-images",
    hosted=PkgrepoImages.name,
    peers=("distribution-proxy", "nora-image-proxy"),
    first=lambda server: pull_image(server.client(WARM_UP), "v1", {}),
    install=_whole(lambda: len(large_image(Source.mib).layers) + 1, _pull),
    fill=lambda server, folder: push_image(server, large_image(Source.mib), folder),
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
    first=lambda server: resolve_maven(server.place("maven"), f"{GROUP}:{WARM_UP}:1.0.0"),
    install=_tree(
        JAVA_TREE, lambda server, root, headers: resolve_maven(server.place("maven"), coordinates(root), headers)
    ),
    fill=lambda server, _: publish_java_tree(server),
)
GEM_LOAD = Load(
    name="gems",
    about=f"{len(GEM_TREE)} gems, over {BUNDLER_CONNECTIONS} connections, as Bundler without an index",
    ours="pkgrepo-gems-proxy",
    direct="direct-gems",
    hosted=PkgrepoGems.name,
    peers=(),
    first=lambda server: install_gems(server.place("gems"), WARM_UP),
    install=_tree(GEM_TREE, lambda server, root, headers: install_gems(server.place("gems"), root.name, headers)),
    fill=lambda server, _: server.publish_tree(GEM_TREE),
)
SILENT_LOAD = evolve(
    MAVEN_LOAD,
    name="silent",
    about=f"{MAVEN_LOAD.about}, and their checksums, which the upstream does not announce",
    ours="pkgrepo-maven-silent-proxy",
    direct="direct-maven-silent",
    peers=("nora-maven-silent-proxy",),
)
