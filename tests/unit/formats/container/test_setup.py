"""The commands that people copy, over TLS and without."""

from __future__ import annotations

import pytest

from pkgrepo.formats.container.setup import snippets


def texts(base_url: str) -> dict[str, str]:
    return {each["client"]: each["text"] for each in snippets(base_url, "main/images")}


def test_nothing_is_said_of_tls_where_it_is_used() -> None:
    told = texts("https://packages.example")
    assert told["podman"].startswith(
        "podman login packages.example\npodman push packages.example/main/images/IMAGE:TAG"
    )
    assert not any(word in text for text in told.values() for word in ("tls", "plain-http", "insecure"))


def test_every_tool_is_told_that_there_is_no_tls() -> None:
    told = texts("http://packages.example:8081")
    assert told["podman"].count(" --tls-verify=false ") == 3
    assert " --dest-tls-verify=false " in told["skopeo"]
    assert all(" --plain-http " in told[client] for client in ("oras", "helm"))
    assert '"insecure-registries": ["packages.example:8081"]' in told["docker"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_docker_trusts_this_machine_as_it_is(host: str) -> None:
    assert texts(f"http://{host}:8081")["docker"].startswith("docker login ")
