"""Setup snippets for Python's tools, as the API shows them for a repository."""

from __future__ import annotations

from collections.abc import Sequence

from pkgrepo.repositories.snippets import TOKEN, Snippet, command, snippet
from pkgrepo.tool_files.editing import render
from pkgrepo.tool_files.tools.python import pip_conf, pypirc, uv_project


def snippets(url: str, *, publishes: bool) -> Sequence[Snippet]:
    """
    Snippets for each tool; ``url`` is the repository's address without a trailing slash.

    Those for publishing are left out unless the repository ``publishes``.
    """
    source = f"poetry source add --priority=primary pkgrepo {url}/simple/\n"
    install = [
        snippet("pip", "Install with pip", "", "sh", f"pip install --index-url {url}/simple/ PACKAGE\n"),
        snippet("pip", "pip.conf", "pip.conf", "ini", render(pip_conf(url, TOKEN))),
        snippet("uv", "pyproject.toml", "pyproject.toml", "toml", render(uv_project(url, publishes=publishes))),
    ]
    if not publishes:
        return [*install, snippet("poetry", "Install with poetry", "", "sh", source)]
    return [
        *install,
        snippet("uv", "Publish with uv", "", "sh", f"uv publish --publish-url {url}/legacy/ --token {TOKEN}\n"),
        snippet("twine", ".pypirc", "~/.pypirc", "ini", render(pypirc(url, TOKEN))),
        snippet("twine", "Publish with twine", "", "sh", f"twine upload --repository-url {url}/legacy/ dist/*\n"),
        snippet(
            "poetry",
            "Publish and install with poetry",
            "",
            "sh",
            f"poetry config repositories.pkgrepo {url}/legacy/\n"
            f"poetry config http-basic.pkgrepo __token__ {TOKEN}\n"
            f"{source}poetry publish --build -r pkgrepo\n",
        ),
        snippet(
            "curl", "Upload with curl", "", "sh", f"curl -u __token__:{TOKEN} -T FILE {url}/PACKAGE/VERSION/FILE\n"
        ),
    ]


def install_snippets(url: str, name: str, version: str) -> Sequence[Snippet]:
    """How to install a version; ``url`` is the repository's address without a slash at the end."""
    wanted, index = f"{name}=={version}", f"{url}/simple/"
    return [
        command("pip", "pip", "install", "--index-url", index, wanted),
        command("uv", "uv", "pip", "install", "--index-url", index, wanted),
    ]
