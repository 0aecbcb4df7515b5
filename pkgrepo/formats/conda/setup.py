"""Setup snippets for conda's tools, as the API shows them for a repository."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from pkgrepo.repositories.snippets import TOKEN, Snippet, command, snippet
from pkgrepo.tool_files.editing import render
from pkgrepo.tool_files.tools.others import condarc


def snippets(url: str, *, publishes: bool) -> Sequence[Snippet]:
    """
    Snippets for each tool; ``url`` is the channel's address without a trailing slash.

    Those for publishing are left out unless the repository ``publishes``.
    """
    url = _quoted(url)
    parts = urlsplit(url)
    host = f"{parts.scheme}://{parts.netloc}"

    install = [
        snippet("conda", "Install with conda", "", "sh", f"conda install --override-channels -c {url} PACKAGE\n"),
        snippet("conda", ".condarc", "~/.condarc", "yaml", render(condarc(url, "", alone=True))),
        snippet(
            "conda",
            ".condarc with credentials",
            "~/.condarc",
            "yaml",
            render(condarc(url, TOKEN, alone=True)),
        ),
        snippet("mamba", "Install with mamba", "", "sh", f"mamba install --override-channels -c {url} PACKAGE\n"),
        snippet(
            "pixi",
            "pixi.toml",
            "pixi.toml",
            "toml",
            f'[workspace]\nname = "NAME"\nchannels = ["{url}"]\nplatforms = ["linux-64"]\n',
        ),
        snippet("pixi", "Credentials for pixi", "", "sh", f"pixi auth login {host} --token {TOKEN}\n"),
    ]
    if not publishes:
        return install
    return [
        *install,
        snippet(
            "rattler-build",
            "Publish with rattler-build",
            "",
            "sh",
            f"rattler-build upload quetz --url {url} --channel CHANNEL --api-key {TOKEN} NAME-VERSION-BUILD.conda\n",
        ),
        snippet(
            "anaconda-client",
            "Publish with anaconda-client",
            "",
            "sh",
            f"anaconda config --set url {url}\nANACONDA_API_TOKEN={TOKEN} anaconda upload NAME-VERSION-BUILD.conda\n",
        ),
        snippet(
            "curl",
            "Publish with curl",
            "",
            "sh",
            f"curl -H 'Authorization: Bearer {TOKEN}' -T NAME-VERSION-BUILD.conda {url}/noarch/\n",
        ),
    ]


def install_snippets(url: str, name: str, version: str) -> Sequence[Snippet]:
    """How to install a version; ``url`` is the channel's address without a slash at the end."""
    url, wanted = _quoted(url), f"{name}={version}"
    return [
        command("conda", "conda", "install", "--override-channels", "-c", url, wanted),
        command("mamba", "mamba", "install", "--override-channels", "-c", url, wanted),
        command("pixi", "pixi", "add", wanted),
    ]


def _quoted(url: str) -> str:
    """The address of a view of the past as all clients take it: conda's classic solver takes an @ for a feature."""
    return url.replace("@", "%40")
