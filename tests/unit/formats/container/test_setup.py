"""The snippets for client set-up, with and without TLS."""

from __future__ import annotations

import pytest

from pkgrepo.formats.container.setup import snippets


def texts(base_url: str) -> dict[str, str]:
    return {each["client"]: each["text"] for each in snippets(base_url, "main/images")}


def test_snippets_for_tls_have_no_tls_options() -> None:
    told = texts("https://packages.example")
    assert told["podman"].startswith(
        "podman login packages.example\npodman push packages.example/main/images/IMAGE:TAG"
    )
    assert not any(word in text for text in told.values() for word in ("tls", "plain-http", "insecure"))


def test_snippets_without_tls_have_the_option_of_each_tool() -> None:
    told = texts("http://packages.example:8081")
    assert told["podman"].count(" --tls-verify=false ") == 3
    assert " --dest-tls-verify=false " in told["skopeo"]
    assert all(" --plain-http " in told[client] for client in ("oras", "helm"))
    assert '"insecure-registries": ["packages.example:8081"]' in told["docker"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_docker_needs_no_option_for_loopback(host: str) -> None:
    assert texts(f"http://{host}:8081")["docker"].startswith("docker login ")
