"""Folders with files, and git checkouts of them, with a configuration that is not that of this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

ISOLATED = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


def write_tree(folder: Path, files: Mapping[str, str]) -> Path:
    """Write texts by their paths; returns the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return folder


def git(folder: Path, *words: str) -> str:
    """Run git; returns what it prints."""
    settings = ("-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    environ = {**os.environ, **ISOLATED}
    done = subprocess.run(
        ["git", *settings, *words], cwd=folder, env=environ, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(folder: Path, *tags: str) -> str:
    """Commit all that is in a folder, which becomes a checkout, with these tags. Returns the commit."""
    if not (folder / ".git").exists():
        git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "All")
    for tag in tags:
        git(folder, "tag", tag)
    return git(folder, "rev-parse", "HEAD")
