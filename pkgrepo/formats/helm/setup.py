"""Setup snippets for helm, as the API shows them for a repository."""

from __future__ import annotations

from collections.abc import Sequence

from pkgrepo.repositories.snippets import TOKEN, Snippet, command, snippet


def snippets(url: str, *, publishes: bool) -> Sequence[Snippet]:
    """
    Snippets for each tool; ``url`` is the repository's address without a trailing slash.

    Those for publishing are left out unless the repository ``publishes``.
    """
    add = f"helm repo add NAME {url}"
    dependency = f"dependencies:\n  - name: CHART\n    version: VERSION\n    repository: {url}\n"
    upload = f"curl -H 'Authorization: Bearer {TOKEN}' -F chart=@CHART-VERSION.tgz {url}/api/charts\n"
    push = f"helm cm-push --username token --password {TOKEN} CHART/ {url}\n"
    found = [
        snippet("helm", "Add the repository", "", "sh", f"{add}\nhelm repo update\n"),
        snippet("helm", "With credentials", "", "sh", f"{add} --username token --password {TOKEN}\n"),
        snippet("helm", "Depend on a chart", "Chart.yaml", "yaml", dependency),
        snippet("curl", "Publish with curl", "", "sh", upload),
        snippet("helm", "Publish with the plugin cm-push", "", "sh", push),
    ]
    return found if publishes else found[:3]


def install_snippets(url: str, name: str, version: str) -> Sequence[Snippet]:
    """How to install a version; ``url`` is the repository's address without a slash at the end."""
    chosen = (name, "--repo", url, "--version", version)
    return [command("helm", "helm", "install", "RELEASE", *chosen), command("helm pull", "helm", "pull", *chosen)]
