"""cargo."""

from __future__ import annotations

from typing import Final

from pkgrepo.tool_files.values import Setting, Syntax, ToolFile

NAME: Final = "pkgrepo"  # of the registry in the client's configuration
HELPER: Final = "cargo-credential-pkgrepo"
TOKENS: Final = "cargo:token"  # the provider that reads credentials.toml and variables


def config(url: str, provider: str, *, is_default: bool = False) -> ToolFile:
    """
    ``config.toml`` of cargo: a registry, and the ``provider`` of its credentials, or empty.

    A registry that wants credentials for reads needs a provider. ``is_default`` is whether it is that of commands
    which name none.
    """
    place = ("registries", NAME)
    entries = [Setting((*place, "index"), f"sparse+{url}/index/")]
    if provider:
        entries.append(Setting((*place, "credential-provider"), provider))
    if is_default:
        entries.append(Setting(("registry", "default"), NAME))
    return ToolFile("cargo/config.toml", Syntax.TOML, tuple(entries))


def mirror(url: str) -> ToolFile:
    """``config.toml`` by which cargo takes crates of the public registry from a repository."""
    entries = (
        Setting(("source", "crates-io", "replace-with"), NAME),
        Setting(("registries", NAME, "index"), f"sparse+{url}/index/"),
    )
    return ToolFile("cargo/config.toml", Syntax.TOML, entries)


def credentials(token: str) -> ToolFile:
    """``credentials.toml`` of cargo."""
    entry = Setting(("registries", NAME, "token"), token)
    return ToolFile("cargo/credentials.toml", Syntax.TOML, (entry,), private=True)
