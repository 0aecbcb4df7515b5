"""One path that cannot be a file, or whose bytes are others than the server lists, ends no export and no bundle."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from pkgrepo.archives.bundle_file import Facts
from pkgrepo.client.http import Failed
from pkgrepo.client.transfers.bundles import Bundling, add_listed
from pkgrepo.client.twins.contents import Export, export_repository
from pkgrepo.client.twins.folder import FolderTwin, verify
from pkgrepo.untrusted.signed_lists import Listed


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Server:
    """Plain files of a Java repository, by path, at the top; one has other bytes than are listed."""

    def __init__(self, *paths: str) -> None:
        self.paths = paths

    async def items(self, *path: str) -> AsyncIterator[dict[str, Any]]:
        assert path == ("repository", "main/java", "paths")
        for each in self.paths:
            digest = sha256(b"other" if each == "changed" else each.encode())
            yield {"path": each, "kind": "file", "sha256": digest, "size": len(each), "beside": [".md5"]}

    async def fetch(self, path: str, write: Callable[[bytes], object], _headers: Any = None) -> dict[str, str]:
        name = path.removeprefix("/repositories/main/java/")
        if name == "solrsearch/select":
            raise Failed("a search wants words", 400)
        if name not in self.paths:
            raise Failed("it is not there", 404)
        write(name.encode())
        return {}


BAD = (".twin/list", "a/b", "changed", "solrsearch/select", f"{'n' * 300}")


@pytest.fixture
def export(tmp_path: Path) -> Export:
    client: Any = Server("a", *BAD, "z")
    return Export(client, "main/java", "", "", FolderTwin(tmp_path / "twin", "main/java"))


async def test_a_twin_has_all_but_the_bad_files(export: Export, tmp_path: Path) -> None:
    await export_repository(export)
    assert sorted(export.files) == ["a", "z"]
    assert (export.withheld, len(export.left_out)) == (0, len(BAD))
    assert [each.partition(":")[0] for each in export.left_out] == list(BAD)
    await export.twin.publish(export.files, await export.twin.finish(export.files), {})
    assert verify(tmp_path / "twin", None)[1] == ["the list is not signed"]


async def test_what_ends_everything_still_does(export: Export, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_path: str) -> Any:
        raise OSError(28, "no room")

    monkeypatch.setattr(export.twin, "draft", full)
    with pytest.raises(OSError, match="no room"):
        await export.document("a")


async def test_an_image_whose_name_is_that_of_a_file_ends_nothing(export: Export, tmp_path: Path) -> None:
    class Images(Server):
        async def items(self, *_path: str) -> AsyncIterator[dict[str, Any]]:
            for name in ("app", "app/index.json", "other"):
                yield {"kind": "image", "path": name}

    client: Any = Images()
    export.client = client
    await export_repository(export)
    assert {"app/index.json", "other/index.json"} <= export.files.keys()
    assert export.left_out


async def test_a_bundle_has_plain_files_of_java_and_says_which_it_lacks() -> None:
    class Written:
        def has(self, digest: str) -> bool:
            return False

        def add_file(self, digest: str, size: int, data: Any) -> Listed:
            assert sha256(data.read()) == digest
            return Listed(size, digest)

    client: Any = Server("a", "changed", "solrsearch/select", "z")
    writer: Any = Written()
    work = Bundling(client, "main/java", writer, Facts(format="any"), {})
    await add_listed(work, client.items("repository", "main/java", "paths"), is_chosen=False)
    assert sorted(work.files) == ["a", "z"]
    assert [each.partition(":")[0] for each in work.withheld] == ["changed", "solrsearch/select"]
