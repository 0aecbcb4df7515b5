"""Fills hosted repositories with what the upstreams of proxies have."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.bench.clients.load import Post, Target, basic, post_all
from tests.bench.clients.registry import Pusher
from tests.bench.contestants.container import PkgrepoImages
from tests.bench.contestants.maven import MavenServer
from tests.bench.contestants.npm import NodeRegistry
from tests.bench.contestants.python import PkgrepoPython
from tests.bench.packages.images import Image
from tests.bench.packages.modules import put
from tests.bench.packages.trees import NODE_TREE, PYTHON_TREE, Node
from tests.support.npm_packages import make_manifest, make_publish, make_tarball
from tests.support.python_packages import make_wheel

from .upstream import java_upstream

PUBLISHERS = 8


def publish_node_tree(server: NodeRegistry) -> None:
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
            target = Target(f"{server.root_url}/{node.name}/{version}/{filename}", basic("__token__", server.token))
            post_all(target, [Post({}, [data], len(data), method="PUT")], 1)

    with ThreadPoolExecutor(PUBLISHERS) as pool:
        list(pool.map(publish, PYTHON_TREE))


def publish_java_tree(server: MavenServer) -> None:
    """Put the POMs and jars of the Java tree."""
    files = java_upstream(announces=False).data
    posts = [put(f"{server.root}{path}", data) for path, data in files.items()]
    post_all(server.target, posts, PUBLISHERS)


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
