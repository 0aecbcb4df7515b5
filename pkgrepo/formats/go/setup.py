"""Setup snippets for the go command, as the API shows them for a repository."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from pkgrepo.repositories.snippets import TOKEN, Snippet, command, snippet


def snippets(url: str, *, publishes: bool) -> Sequence[Snippet]:
    """Snippets for a repository by its URL, without those for publishing unless it ``publishes``."""
    texts = {
        "Use as module proxy": f"go env -w GOPROXY={url}\n",
        "Modules that no checksum database knows": "go env -w GONOSUMDB=MODULE_PREFIX/*\n",
    }
    if publishes:
        texts["Make a zip of a tagged module"] = "git archive --prefix=MODULE@VERSION/ -o module.zip VERSION\n"
        texts["Publish it with curl"] = f"curl -fu token:{TOKEN} -T module.zip {url}/MODULE/@v/VERSION.zip\n"
    login = f"machine {urlsplit(url).hostname}\nlogin token\npassword {TOKEN}\n"
    found = [snippet("go", title, "", "sh", text) for title, text in texts.items()]
    return [*found, snippet("go", "Credentials (go sends them over https)", "~/.netrc", "text", login)]


def install_snippets(url: str, name: str, version: str) -> Sequence[Snippet]:
    """How to require a version, or to install its program."""
    return [
        command("go", "env", f"GOPROXY={url}", "go", "get", f"{name}@{version}"),
        snippet("go", "go.mod", "go.mod", "go", f"require {name} {version}\n"),
    ]
