"""The registries behind the proxies have what the scenarios install."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.clients.installs import install_npm, install_python, pull_image
from tests.bench.clients.load import NPM, get
from tests.bench.clients.registry import Registry
from tests.bench.packages.trees import NODE_TREE, PYTHON_TREE
from tests.bench.upstream import KINDS, LARGE_PACKAGE, file_mib, large_image, large_wheel

MIB = 10


def test_the_npm_tree_is_installed_from_it(tmp_path: Path) -> None:
    with KINDS["npm"](0, tmp_path, MIB) as upstream:
        assert get(f"{upstream.url}/{LARGE_PACKAGE}", {**NPM, "Accept-Encoding": "identity"}).status == 200
    # Its documents name the port that it is given.
    with KINDS["npm"](upstream.port, tmp_path, MIB) as upstream:
        installed = install_npm(upstream.url, NODE_TREE[0].name)
        assert (installed.files, installed.failed) == (len(NODE_TREE), 0)


def test_the_python_tree_and_the_large_wheel_are_installed_from_it(tmp_path: Path) -> None:
    with KINDS["python"](0, tmp_path, MIB) as upstream:
        port = upstream.port
    with KINDS["python"](port, tmp_path, MIB) as upstream:
        installed = install_python(lambda name: f"{upstream.url}/simple/{name}/", PYTHON_TREE[0].name, 1)
        assert (installed.files, installed.failed) == (len(PYTHON_TREE), 0)
        wheel = large_wheel(file_mib(MIB))
        bodies = [answer.body for path, answer in upstream.documents.items() if path.endswith(wheel.filename)]
        assert [len(body) for body in bodies] == [wheel.size]


@pytest.mark.parametrize("kind", ["images", "images-line"])
def test_the_image_is_pulled_from_it(tmp_path: Path, kind: str) -> None:
    with KINDS[kind](0, tmp_path, MIB) as upstream:
        image = large_image(MIB)
        installed = pull_image(Registry(upstream.url, image.name), "v1", {})
        assert (installed.files, installed.failed) == (len(image.layers) + 1, 0)
