"""Setup snippets for cargo."""

from __future__ import annotations

from collections.abc import Sequence

from pkgrepo.repositories.snippets import TOKEN, Snippet, command, snippet
from pkgrepo.tool_files.editing import render
from pkgrepo.tool_files.tools.cargo import NAME, TOKENS, config, mirror

CONFIG = ".cargo/config.toml"
VARIABLE = f"CARGO_REGISTRIES_{NAME.upper()}_TOKEN"


def snippets(url: str, *, publishes: bool) -> Sequence[Snippet]:
    """
    Snippets for cargo; ``url`` is the repository's address without a slash at the end.

    Those for publishing are left out unless the repository ``publishes``.
    """
    return [
        snippet("cargo", CONFIG, CONFIG, "toml", render(config(url, TOKENS))),
        snippet("cargo", "Log in", "", "sh", f"cargo login --registry {NAME}\n"),
        snippet("cargo", "Log in by the environment", "", "sh", f"export {VARIABLE}='{TOKEN}'\n"),
        snippet("cargo", "Use in place of the public registry", CONFIG, "toml", render(mirror(url))),
        *([snippet("cargo", "Publish", "", "sh", f"cargo publish --registry {NAME}\n")] if publishes else []),
    ]


def install_snippets(_url: str, name: str, version: str) -> Sequence[Snippet]:
    """How to depend on a version, or install its programs."""
    return [
        command("cargo", "cargo", "add", f"{name}@{version}", "--registry", NAME),
        snippet(
            "cargo", "Cargo.toml", "Cargo.toml", "toml", f'{name} = {{ version = "{version}", registry = "{NAME}" }}\n'
        ),
        command("cargo", "cargo", "install", name, "--version", version, "--registry", NAME),
    ]
