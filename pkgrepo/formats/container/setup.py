"""How to point container tools at a repository."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit


def snippets(base_url: str, path: str) -> Sequence[dict[str, str]]:
    """One entry for each tool; ``base_url`` is the server's address, ``path`` the repository's storage and name."""
    host = urlsplit(base_url).netloc
    image = f"{host}/{path}/IMAGE:TAG"

    def entry(client: str, title: str, text: str) -> dict[str, str]:
        return {"client": client, "title": title, "file": "", "language": "sh", "text": text}

    return [
        entry(
            "docker", "Push and pull with docker", f"docker login {host}\ndocker push {image}\ndocker pull {image}\n"
        ),
        entry(
            "podman", "Push and pull with podman", f"podman login {host}\npodman push {image}\npodman pull {image}\n"
        ),
        entry("skopeo", "Copy with skopeo", f"skopeo copy oci:DIRECTORY:TAG docker://{image}\n"),
        entry("oras", "Push any file with oras", f"oras push {image} FILE\n"),
        entry(
            "helm",
            "Push a chart with helm",
            f"helm registry login {host}\nhelm push CHART.tgz oci://{host}/{path}/charts\n",
        ),
    ]
