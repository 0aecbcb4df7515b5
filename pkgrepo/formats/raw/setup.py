"""Commands with which files are fetched and put, as the API shows them for a repository."""

from __future__ import annotations

from collections.abc import Sequence

from pkgrepo.repositories.snippets import TOKEN, Snippet, command, snippet


def snippets(url: str, *, publishes: bool) -> Sequence[Snippet]:
    """Commands for a repository with a URL without a slash at its end."""
    read = [
        snippet("curl", "Fetch with curl", "", "sh", f"curl -fO -u token:{TOKEN} {url}/tool/1.0/tool.bin\n"),
        snippet("wget", "Fetch a folder with wget", "", "sh", f"wget -r -np -nH {url}/tool/1.0/\n"),
        snippet("curl", "Check what was fetched", "", "sh", f"curl -f {url}/tool/1.0/tool.bin.sha256 | sha256sum -c\n"),
    ]
    put = f"curl --fail-with-body -u token:{TOKEN} -T tool.bin {url}/tool/1.0/\n"
    return [*read, snippet("curl", "Put with curl", "", "sh", put)] if publishes else read


def install_snippets(url: str, name: str, version: str) -> Sequence[Snippet]:
    """How to fetch all files of a version."""
    folder = name if version == "unversioned" else f"{name}/{version}"
    return [command("curl", "curl", "-f", f"{url}/{folder}/?archive=tar.gz", "-o", f"{name.rpartition('/')[2]}.tar.gz")]
