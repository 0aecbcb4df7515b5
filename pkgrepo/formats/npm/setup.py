"""Set-up instructions for npm's clients."""

from __future__ import annotations

from collections.abc import Sequence

from pkgrepo.repositories.snippets import TOKEN, Snippet, command, snippet
from pkgrepo.tool_files.editing import render
from pkgrepo.tool_files.tools.node import npmrc, scoped_yarnrc, yarnrc


def snippets(url: str, *, publishes: bool) -> Sequence[Snippet]:
    """
    The snippets for each client; ``url`` is the repository's address without a slash at the end.

    Those for publishing are left out unless the repository ``publishes``.
    """
    registry = f"{url}/"

    publish = [
        snippet("npm", "Publish with npm", "", "sh", f"npm publish --registry {registry}\n"),
        snippet("pnpm", "Publish with pnpm", "", "sh", f"pnpm publish --registry {registry}\n"),
    ]
    return [
        snippet("npm", ".npmrc for npm, pnpm and yarn 1", ".npmrc", "ini", render(npmrc(url, TOKEN))),
        snippet(
            "npm",
            "One scope only, for npm, pnpm, yarn 1 and bun",
            ".npmrc",
            "ini",
            render(npmrc(url, TOKEN, scope="@SCOPE")),
        ),
        snippet("npm", "Log in", "", "sh", f"npm login --registry {registry}\n"),
        *(publish if publishes else ()),
        # Without always-auth yarn 1 sends no token for unscoped packages.
        snippet(
            "yarn",
            ".npmrc for yarn 1 and a private repository",
            ".npmrc",
            "ini",
            render(npmrc(url, TOKEN, always=True)),
        ),
        snippet("yarn", ".yarnrc.yml for yarn 2 and later", ".yarnrc.yml", "yaml", render(yarnrc(url, TOKEN))),
        snippet(
            "yarn",
            "One scope only, for yarn 2 and later",
            ".yarnrc.yml",
            "yaml",
            render(scoped_yarnrc(url, TOKEN, "@SCOPE")),
        ),
        snippet(
            "bun",
            "bunfig.toml",
            "bunfig.toml",
            "toml",
            f'[install]\nregistry = {{ url = "{registry}", token = "{TOKEN}" }}\n',
        ),
    ]


def install_snippets(url: str, name: str, version: str) -> Sequence[Snippet]:
    """How to install a version; ``url`` is the repository's address without a slash at the end."""
    wanted = f"{name}@{version}"
    return [
        command("npm", "npm", "install", wanted, "--registry", f"{url}/"),
        command("pnpm", "pnpm", "add", wanted, "--registry", f"{url}/"),
        command("yarn", "yarn", "add", wanted),
        command("bun", "bun", "add", wanted, "--registry", f"{url}/"),
    ]
