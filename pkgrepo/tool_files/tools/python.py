"""
pip, uv, twine and poetry.

With ``keyring`` the files have no token: these tools ask the program ``keyring`` for it, by the address and the name of
the user in it.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from pkgrepo.tool_files.values import Entry, Item, Scalar, Setting, Syntax, ToolFile

USER: Final = "__token__"
NAME: Final = "pkgrepo"  # of the index in the files of tools
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


def pip_conf(url: str, token: str, *, keyring: bool = False) -> ToolFile:
    """``pip.conf``, on Windows ``pip.ini``; pip trusts an address without TLS only by name."""
    entries = [Setting(("global", "index-url"), f"{_with_user(url, token, keyring=keyring)}/simple/")]
    if keyring:
        entries.append(Setting(("global", "keyring-provider"), "subprocess"))
    parts = urlsplit(url)
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        entries.append(Setting(("global", "trusted-host"), parts.netloc))
    return ToolFile("pip.conf", Syntax.INI, tuple(entries), private=bool(token) and not keyring)


def uv_toml(url: str, token: str, *, publishes: bool, keyring: bool = False) -> ToolFile:
    """``uv.toml`` of a user."""
    address = _with_user(url, token, keyring=keyring)
    entries: list[Entry] = [Setting(("keyring-provider",), "subprocess")] if keyring else []
    if publishes:
        entries.append(Setting(("publish-url",), f"{address}/legacy/"))
    # of several default indexes uv takes the first one
    entries.append(Item(("index",), _index(address, publishes=publishes), "name", first=True))
    return ToolFile("uv.toml", Syntax.TOML, tuple(entries), private=bool(token) and not keyring)


def uv_project(url: str, *, publishes: bool) -> ToolFile:
    """The index in the ``pyproject.toml`` of a project of uv, without credentials."""
    return ToolFile("", Syntax.TOML, (Item(("tool", "uv", "index"), _index(url, publishes=publishes), "name"),))


def pypirc(url: str, token: str, *, keyring: bool = False) -> ToolFile:
    """``.pypirc`` of twine and others."""
    entries: list[Entry] = [
        Item(("distutils", "index-servers"), NAME),
        Setting((NAME, "repository"), f"{url}/legacy/"),
        Setting((NAME, "username"), USER),
    ]
    if token and not keyring:
        entries.append(Setting((NAME, "password"), token))
    return ToolFile(".pypirc", Syntax.INI, tuple(entries), private=bool(token) and not keyring)


def poetry_config(url: str) -> ToolFile:
    """``config.toml`` of poetry: where it publishes."""
    return ToolFile("poetry/config.toml", Syntax.TOML, (Setting(("repositories", NAME, "url"), f"{url}/legacy/"),))


def poetry_auth(token: str) -> ToolFile:
    """``auth.toml`` of poetry: the credentials for the source and the repository of this name."""
    place = ("http-basic", NAME)
    entries = (Setting((*place, "username"), USER), Setting((*place, "password"), token))
    return ToolFile("poetry/auth.toml", Syntax.TOML, entries, private=True)


def _index(address: str, *, publishes: bool) -> dict[str, Scalar]:
    found: dict[str, Scalar] = {"name": NAME, "url": f"{address}/simple/"}
    if publishes:
        found["publish-url"] = f"{address}/legacy/"
    return {**found, "default": True}


def _with_user(url: str, token: str, *, keyring: bool) -> str:
    if not token:
        return url
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{USER}@{rest}" if keyring else f"{scheme}://{USER}:{token}@{rest}"
