"""How to point container tools at a repository."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from urllib.parse import urlsplit

from pkgrepo.repositories.snippets import TOKEN, Snippet, command, snippet

CHART = "application/vnd.cncf.helm.config.v1+json"  # the type of an image that holds a chart
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def snippets(base_url: str, path: str) -> Sequence[Snippet]:
    """
    One entry for each tool.

    ``base_url`` is the server's address, ``path`` the repository's storage and name, or empty at its own host.
    """
    parts = urlsplit(base_url)
    host, plain = parts.netloc, parts.scheme == "http"
    place = f"{host}/{image_path(path)}".rstrip("/")
    image = f"{place}/IMAGE:TAG"
    unverified, plain_http = (" --tls-verify=false", " --plain-http") if plain else ("", "")
    # docker takes this machine for trusted, and podman, skopeo and the rest do not.
    trusting = f'# in /etc/docker/daemon.json: {{"insecure-registries": ["{host}"]}}\n'
    docker_first = trusting if plain and parts.hostname not in LOOPBACK else ""

    def entry(client: str, title: str, text: str) -> Snippet:
        return snippet(client, title, "", "sh", text)

    return [
        entry(
            "docker",
            "Push and pull with docker",
            f"{docker_first}docker login {host}\ndocker push {image}\ndocker pull {image}\n",
        ),
        entry(
            "podman",
            "Push and pull with podman",
            "".join(
                f"podman {command}\n"
                for command in (f"login{unverified} {host}", f"push{unverified} {image}", f"pull{unverified} {image}")
            ),
        ),
        entry(
            "skopeo",
            "Copy with skopeo",
            f"skopeo copy{unverified.replace('tls', 'dest-tls')} oci:DIRECTORY:TAG docker://{image}\n",
        ),
        entry("oras", "Push any file with oras", f"oras push{plain_http} {image} FILE\n"),
        entry(
            "helm",
            "Push a chart with helm",
            f"helm registry login{plain_http} {host}\nhelm push{plain_http} CHART.tgz oci://{place}/charts\n",
        ),
    ]


def logins(base_url: str) -> Sequence[Snippet]:
    """How docker logs in with a new token; the token is in no argument of it."""
    host = quote(urlsplit(base_url).netloc)
    text = f"printf %s {TOKEN} | docker login {host} --username USERNAME --password-stdin\n"
    return [snippet("docker", "docker", "", "sh", text)]


def image_path(path: str) -> str:
    """What stands before the names of images of a repository: names have no plus sign, which stages have."""
    return path.replace("+", ".")


def install_snippets(base_url: str, path: str, name: str, version: str) -> Sequence[Snippet]:
    """How to pull an image; ``version`` is a tag or a digest."""
    parts = urlsplit(base_url)
    place = f"{parts.netloc}/{image_path(path)}".rstrip("/")
    image = f"{place}/{name}{'@' if ':' in version else ':'}{version}"
    unverified = ["--tls-verify=false"] if parts.scheme == "http" else []
    return [command("docker", "docker", "pull", image), command("podman", "podman", "pull", *unverified, image)]


def artifact_snippets(
    type_: str, base_url: str, path: str, name: str, version: str, *, push: bool
) -> Sequence[Snippet]:
    """How to pull the chart that an image holds, or with ``push`` make an image of a chart; none of other types."""
    if type_ != CHART:
        return ()
    parts = urlsplit(base_url)
    place = f"oci://{parts.netloc}/{image_path(path)}".rstrip("/")
    plain = ["--plain-http"] if parts.scheme == "http" else []
    if push:
        sent = command("", "helm", "push", *plain, f"{name}-{version}.tgz", f"{place}/charts")["text"]
        got = command("", "helm", "pull", *plain, f"{place}/charts/{name}", "--version", version)["text"]
        return [snippet("helm", "As an image of this server", "", "sh", f"{sent}{got}")]
    if ":" in version:
        return [command("helm", "helm", "pull", *plain, f"{place}/{name}@{version}")]
    return [command("helm", "helm", "pull", *plain, f"{place}/{name}", "--version", version.replace("_", "+"))]
