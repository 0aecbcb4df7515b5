"""Setup snippets for conda's tools, as the API shows them for a repository."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

TOKEN = "<TOKEN>"  # noqa: S105 - a placeholder


def snippets(url: str, *, publishes: bool) -> Sequence[dict[str, str]]:
    """
    Snippets for each tool; ``url`` is the channel's address without a trailing slash.

    Those for publishing are left out unless the repository ``publishes``.
    """
    parts = urlsplit(url)
    host, path = f"{parts.scheme}://{parts.netloc}", parts.path

    def entry(client: str, title: str, file: str, language: str, text: str) -> dict[str, str]:
        return {"client": client, "title": title, "file": file, "language": language, "text": text}

    install = [
        entry("conda", "Install with conda", "", "sh", f"conda install --override-channels -c {url} PACKAGE\n"),
        entry("conda", ".condarc", "~/.condarc", "yaml", f"channels:\n  - {url}\n  - nodefaults\n"),
        entry(
            "conda",
            ".condarc with credentials",
            "~/.condarc",
            "yaml",
            f"channels:\n  - {parts.scheme}://token:{TOKEN}@{parts.netloc}{path}\n  - nodefaults\n",
        ),
        entry("mamba", "Install with mamba", "", "sh", f"mamba install --override-channels -c {url} PACKAGE\n"),
        entry(
            "pixi",
            "pixi.toml",
            "pixi.toml",
            "toml",
            f'[workspace]\nname = "NAME"\nchannels = ["{url}"]\nplatforms = ["linux-64"]\n',
        ),
        entry("pixi", "Credentials for pixi", "", "sh", f"pixi auth login {host} --token {TOKEN}\n"),
    ]
    if not publishes:
        return install
    return [
        *install,
        entry(
            "rattler-build",
            "Publish with rattler-build",
            "",
            "sh",
            f"rattler-build upload quetz --url {url} --channel CHANNEL --api-key {TOKEN} NAME-VERSION-BUILD.conda\n",
        ),
        entry(
            "curl",
            "Publish with curl",
            "",
            "sh",
            f"curl -H 'Authorization: Bearer {TOKEN}' -T NAME-VERSION-BUILD.conda {url}/noarch/\n",
        ),
    ]
