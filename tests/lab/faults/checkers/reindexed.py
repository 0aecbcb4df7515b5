"""A catalog that is rebuilt from the readable layout of a copy of the data, against what the server listed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.data_folder import DataFolder, pkgrepo
from tests.support.first_publishes import REPOSITORIES, Publisher
from tests.support.server_process import twistd_process

from .contents import Versions, differences, versions_of


def contents(api: Publisher) -> Mapping[str, Versions]:
    """The content of the repositories of the writers."""
    return {name: versions_of(api, f"main/{name}") for name in REPOSITORIES.values()}


def reindexed(before: Mapping[str, Versions], data: DataFolder, folder: Path, auth: tuple[str, str]) -> Iterator[str]:
    """
    What a server on a copy of the data of a stopped one, whose catalog is lost, lists otherwise than ``before``.

    ``folder`` is a new one. Reasons of yanks and all that is about people are in the catalog alone.
    """
    copy = DataFolder(folder / "data")
    shutil.copytree(data.folder, copy.folder, symlinks=True)
    copy.delete_catalog()
    done = pkgrepo(copy, "reindex")
    if done.returncode:
        yield f"pkgrepo reindex: {done.stdout}{done.stderr}"
        return
    server = twistd_process(folder, patched=False, environ={"PKGREPO_SERVER__WORKERS": "1"})
    try:
        api = Publisher(server.url, auth)
        for name, versions in before.items():
            yield from differences(f"reindex of main/{name}", versions, versions_of(api, f"main/{name}"))
    finally:
        server.stop()
