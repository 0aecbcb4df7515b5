"""conda and mamba, go, and helm."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from pkgrepo.tool_files.values import Entry, Item, Scalar, Setting, Syntax, ToolFile

USER: Final = "token"
NAME: Final = "pkgrepo"  # of the repository of charts


def condarc(url: str, token: str, *, alone: bool = False) -> ToolFile:
    """``.condarc``: the first channel; ``alone`` is without the default ones."""
    scheme, _, rest = url.partition("://")
    channel = f"{scheme}://{USER}:{token}@{rest}" if token else url
    entries: list[Entry] = [Item(("channels",), channel, first=True)]
    if alone:
        entries.append(Item(("channels",), "nodefaults"))
    return ToolFile(".condarc", Syntax.YAML, tuple(entries), private=bool(token))


def go_env(url: str) -> ToolFile:
    """What ``go env -w`` writes: the module proxy."""
    return ToolFile("go/env", Syntax.LINES, (Setting(("GOPROXY",), url),))


def netrc(url: str, token: str) -> ToolFile:
    """``.netrc``, which go, curl and others read: the credentials for a host."""
    host = urlsplit(url).hostname or ""
    entries = (Setting((host, "login"), USER), Setting((host, "password"), token))
    return ToolFile(".netrc", Syntax.NETRC, entries, private=True)


def helm_repositories(url: str, token: str) -> ToolFile:
    """``repositories.yaml`` of helm."""
    fields: dict[str, Scalar] = {"name": NAME, "url": url}
    if token:
        fields |= {"username": USER, "password": token}
    entry = Item(("repositories",), fields, "name")
    return ToolFile("helm/repositories.yaml", Syntax.YAML, (entry,), private=bool(token))
