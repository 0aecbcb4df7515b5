"""Archives of charts that are made of folders: what is left out, and what is refused."""

from __future__ import annotations

import tarfile
from pathlib import Path
from tempfile import mkdtemp

import pytest

from pkgrepo.client.packing.chart import pack_chart, read_rules
from pkgrepo.client.packing.folders import pack
from pkgrepo.errors import Invalid
from pkgrepo.formats.helm.chart import read_chart
from tests.support.checkouts import write_tree

MANIFEST = "apiVersion: v2\nname: app\nversion: 1.0.0\n"
FILES = {"Chart.yaml": MANIFEST, "values.yaml": "a: 1\n", "templates/x.yaml": "kind: A\n", "templates/.x.swp": "s"}


def packed(folder: Path, tmp_path: Path, version: str = "") -> list[str]:
    made = pack_chart(folder, version, Path(mkdtemp(dir=tmp_path)))
    assert read_chart(made.path.read_bytes(), made.path.name)["name"] == "app"
    with tarfile.open(made.path) as archive:
        return archive.getnames()


def test_a_chart_is_packed_without_what_is_ignored(tmp_path: Path) -> None:
    ignored = "# notes\n*.md\n/secret.yaml\nci/\n  docs/a?.txt \n"
    more = {
        "README.md": "r",
        "secret.yaml": "s",
        "in/secret.yaml": "s",
        "ci/x": "",
        "docs/ab.txt": "",
        "docs/b.txt": "",
    }
    folder = write_tree(tmp_path / "any", {**FILES, **more, ".helmignore": ignored})
    names = [".helmignore", "Chart.yaml", "docs/b.txt", "in/secret.yaml", "templates/x.yaml", "values.yaml"]
    assert packed(folder, tmp_path) == [f"app/{each}" for each in names]
    assert packed(folder, tmp_path, "1.0.0")
    with pytest.raises(Invalid, match=r"which is 1\.0\.0"):
        packed(folder, tmp_path, "2.0.0")
    first, second = (pack_chart(folder, "", Path(mkdtemp(dir=tmp_path))).path.read_bytes() for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("rule", "path", "is_folder", "ignored"),
    [
        ("*.txt", "a/b/c.txt", False, True),
        ("/*.txt", "a/c.txt", False, False),
        ("a/*.txt", "a/c.txt", False, True),
        ("a/*.txt", "x/a/c.txt", False, False),
        ("a/", "a", False, False),
        ("a/", "a", True, True),
        ("!*.yaml", "a.txt", False, True),
        ("!*.yaml", "a.yaml", False, False),
        ("!templates/", "values.yaml", False, True),
        ("[a-c]x", "bx", False, True),
        ("[^a-c]x", "bx", False, False),
        ("a[^b]c", "a/c", False, False),
        ("a\\*", "a*", False, True),
        ("a\\*", "ab", False, False),
        ("a.b", "acb", False, False),
    ],
)
def test_rules_are_those_of_helm(tmp_path: Path, rule: str, path: str, *, is_folder: bool, ignored: bool) -> None:
    (tmp_path / ".helmignore").write_text(f"{rule}\n")
    assert read_rules(tmp_path / ".helmignore").ignore(path, is_folder=is_folder) is ignored


@pytest.mark.parametrize("rule", ["a/**/b", "[a", "a\\", "[z-a]"])
def test_a_rule_that_is_none_is_refused(tmp_path: Path, rule: str) -> None:
    (tmp_path / ".helmignore").write_text(rule)
    with pytest.raises(Invalid, match="helmignore"):
        read_rules(tmp_path / ".helmignore")


def test_a_chart_without_what_it_needs_is_refused(tmp_path: Path) -> None:
    needs = f"{MANIFEST}dependencies:\n- name: sub\n  version: ^1\n  repository: https://charts.example\n"
    folder = write_tree(tmp_path / "app", {**FILES, "Chart.yaml": needs})
    with pytest.raises(Invalid, match=r"needs sub.* helm dependency update"):
        packed(folder, tmp_path)
    write_tree(folder, {"charts/sub-1.0.0.tgz": "archive"})
    assert "app/charts/sub-1.0.0.tgz" in packed(folder, tmp_path)


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"Chart.yaml": "name: ../app\nversion: 1.0.0\n"}, "no name and version"),
        ({"Chart.yaml": "name: app\n"}, "no name and version"),
        ({"Chart.yaml": "- a\n"}, "no mapping"),
        ({"Chart.yaml": "{"}, "cannot be read"),
        ({"large": "x" * (5 * 1024 * 1024 + 1)}, "more than 5242880 bytes"),
    ],
)
def test_what_is_no_chart_is_refused(tmp_path: Path, files: dict[str, str], why: str) -> None:
    with pytest.raises(Invalid, match=why):
        packed(write_tree(tmp_path / "app", {**FILES, **files}), tmp_path)


def test_links_are_followed_and_end(tmp_path: Path) -> None:
    folder = write_tree(tmp_path / "app", FILES)
    (folder / "linked.yaml").symlink_to("values.yaml")
    assert "app/linked.yaml" in packed(folder, tmp_path)
    (folder / "round").symlink_to(".")
    with pytest.raises(Invalid, match="a folder that it is in"):
        packed(folder, tmp_path)


def test_the_server_says_which_folders_are_packed(tmp_path: Path) -> None:
    folder = write_tree(tmp_path / "app", FILES)
    known = {"marker": "Chart.yaml", "packing": "chart", "advice": ""}
    assert pack(folder, "", [known], Path(mkdtemp(dir=tmp_path))).what == "app 1.0.0"
    for others, why in (
        ([], "is no file"),
        ([{**known, "marker": "go.mod"}], r"a folder without go\.mod"),
        ([{**known, "packing": "later"}], "too old"),
        ([{**known, "packing": "", "advice": "run another program"}], "run another program"),
    ):
        with pytest.raises(Invalid, match=why):
            pack(folder, "", others, Path(mkdtemp(dir=tmp_path)))
