"""Clients trust a server with a certificate of a private authority after ``pkgrepo setup --write``, and not before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.setup.conftest import FORMATS
from tests.support.certificates import write_certificate
from tests.support.configurations import PRIVATE, hosted
from tests.support.npm_clients import COMPILED
from tests.support.python_packages import make_wheel
from tests.support.server_process import running
from tests.support.setup_bench import SetupBench

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]
QUIET = {
    "NPM_CONFIG_UPDATE_NOTIFIER": "false",
    "NPM_CONFIG_FETCH_RETRIES": "0",
    "PREFIX": "/nowhere",  # yarn 1 takes the settings of the machine before those of a user
    "YARN_ENABLE_TELEMETRY": "0",
    "YARN_ENABLE_GLOBAL_CACHE": "false",
    "YARN_NPM_MINIMAL_AGE_GATE": "0",
    "YARN_HTTP_RETRY": "0",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
    "PIP_RETRIES": "0",
}
RUSTUP = os.environ.get("RUSTUP_HOME") or str(Path.home() / ".rustup")
NODE = {"package.json": '{"name": "trusted", "version": "1.0.0"}', "yarn.lock": ""}


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a server, and the certificate that it has signed itself."""
    folder = tmp_path_factory.mktemp("secure")
    certificate, key = write_certificate(folder)
    config = f'tls.cert = "{certificate}"\ntls.key = "{key}"\nserver.listen = ["ssl:0:interface=127.0.0.1"]\n'
    config += "".join(hosted(format_, **{FORMATS[format_]: PRIVATE}) for format_ in ("npm", "python", "cargo"))
    with running(folder, config) as server:
        yield server.url, certificate


@pytest.mark.parametrize(
    ("clients", "tools", "repository", "publish"),
    [
        (("npm-11",), "npm", "main/node", ("npm", "publish")),
        (("npm-11", "pnpm"), "pnpm", "main/node", ("pnpm", "publish", "--no-git-checks")),
        (("npm-11", "yarn-1"), "yarn", "main/node", ("yarn", "publish", "--non-interactive")),
        (("npm-11", "yarn-4"), "yarn", "main/node", ("yarn", "npm", "publish")),
        (("npm-11", "bun"), "bun", "main/node", ("bun", "publish")),
        (("twine", "pip"), "twine,pip", "main/py", ("twine", "upload", "--non-interactive", "-r", "pkgrepo")),
        (("rustc", "cargo"), "cargo", "main/crates", ("cargo", "publish", "--no-verify", "--allow-dirty")),
    ],
)
def test_the_authority_of_the_login_is_told_to_tools(
    secure: tuple[str, Path],
    tmp_path: Path,
    clients: tuple[str, ...],
    tools: str,
    repository: str,
    publish: tuple[str, ...],
) -> None:
    url, certificate = secure
    variables = {**QUIET, "RUSTUP_HOME": RUSTUP, **(COMPILED if {"pnpm", "yarn-4"} & {*clients} else {})}
    bench = SetupBench(tmp_path, url, clients, variables, "--ca-file", str(certificate))
    bench.set_up(repository, tools)
    written = b"".join(data for name, data in bench.files().items() if bench.is_setting(name)).decode()
    assert str(certificate) in written
    words, name = [*publish], f"trusted-{clients[-1]}"
    if repository == "main/py":
        filename, data = make_wheel(name, "1.0")
        (tmp_path / filename).write_bytes(data)
        place, words = tmp_path, [*publish, filename]
    elif repository == "main/crates":
        lines = ["[package]", f'name = "{name}"', 'version = "1.0.0"', 'license = "MIT"', 'description = "x"']
        manifest = "\n".join(lines)
        place = bench.folder_of("package", {"Cargo.toml": manifest, "src/lib.rs": ""})
    else:
        place = bench.folder_of("package", {each: text.replace("trusted", name) for each, text in NODE.items()})
        if clients[-1] == "yarn-4":
            bench.run("yarn", "install", cwd=place)
    bench.run(*words, cwd=place)
    assert ": failed: " not in bench.check(repository, tools)
    trusted = {each: text for each, text in bench.files().items() if bench.is_setting(each)}
    for each, data in trusted.items():  # without the entry the same client refuses the server
        kept = [line for line in data.decode().splitlines(keepends=True) if str(certificate) not in line]
        (bench.home / each).write_text("".join(kept))
    if tools != "pnpm":  # which answers from its cache
        assert ": failed: " in bench.run("pkgrepo", "setup", repository, "--check", "--tool", tools, status=1)
    for each, data in trusted.items():
        (bench.home / each).write_bytes(data)
    bench.undo(repository)


def test_tools_without_a_place_are_told_what_to_do_and_odd_paths_are_refused(
    secure: tuple[str, Path], tmp_path: Path
) -> None:
    url, certificate = secure
    bench = SetupBench(tmp_path, url, ("uv", "pip"), QUIET, "--ca-file", str(certificate))
    assert f"SSL_CERT_FILE={certificate}" in bench.set_up("main/py", "uv")
    odd = tmp_path / 'a"b' / "ca.pem"
    odd.parent.mkdir()
    odd.write_bytes(certificate.read_bytes())
    bench.run("pkgrepo", "setup", "main/py", "--write", "--yes", "--tool", "pip", "--ca-file", str(odd), status=2)
