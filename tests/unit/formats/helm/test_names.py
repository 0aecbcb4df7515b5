"""Whose an archive may be, by its name."""

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.helm.imported import chart_of, read_lock
from pkgrepo.formats.helm.names import chart_path, possible_names
from pkgrepo.gateway.mirrored.locks import Wanted


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("demo-1.0.0.tgz", ["demo"]),
        ("demo-v1.0.0-rc.1+b.tgz.prov", ["demo"]),
        ("a-1-2.0.0.tgz", ["a-1"]),
        ("a-1.0.0-2.0.0.tgz", ["a", "a-1.0.0"]),
        ("my-chart-0.2.0+b1.tgz", ["my-chart"]),
        ("demo.tgz", []),
        ("demo-x.tgz", []),
        ("demo-1.0.0.zip", []),
    ],
)
def test_names_and_versions_may_have_hyphens(file, names):
    assert list(possible_names(f"charts/{file}")) == names


def test_the_chart_of_a_file_in_a_folder():
    assert chart_of("stable/my-chart-v1.0.0.tgz.prov") == ("my-chart", "v1.0.0")
    for path in ("demo.tgz", "readme.md", "demo-1.0.0.tgz.sig"):
        with pytest.raises(Invalid):
            chart_of(path)


def test_names_that_file_systems_cannot_hold_are_refused():
    with pytest.raises(Invalid):
        chart_path("a" * 200, "1.0.0-" + "b" * 20)


def test_a_lock_names_charts_of_repositories():
    places = {"a": "https://c.example", "b": "oci://c.example", "c": "file://../c"}
    entries = "".join(f"- name: {name}\n  repository: {url}\n  version: 1.0.0\n" for name, url in places.items())
    lock = read_lock(f"dependencies:\n{entries}")
    assert lock.wanted == [Wanted(format="helm", name="a", version="1.0.0")]
    assert [each for each, _ in lock.left_out] == ["b 1.0.0", "c 1.0.0"]
    with pytest.raises(Invalid):
        read_lock("a: b")
