"""Charts are read within limits, and of what they say only what helm reads in an index is taken."""

import tarfile

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.helm import chart
from pkgrepo.formats.helm.chart import meta_of, read_chart
from tests.support.charts import make_chart, pack

MANIFEST = "apiVersion: v2\nname: demo\nversion: 1.0.0\n"


def read(data):
    return read_chart(data, "demo-1.0.0.tgz")


def link(name, target, kind=tarfile.SYMTYPE):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def test_fields_that_helm_does_not_know_are_left_out():
    dependency = {"name": "common", "version": "~1.0", "repository": "https://c.example", "alias": "c", "odd": 1}
    found = read(
        make_chart(
            "demo",
            "1.0.0",
            appVersion="1.10",
            odd={"a": 1},
            maintainers=[{"name": "Ann", "url": 5, "odd": 1}, "text"],
            dependencies=[dependency],
            annotations={"a": "b", "c": {"d": 1}},
            deprecated=True,
        )
    )
    assert found == {
        "apiVersion": "v2",
        "name": "demo",
        "version": "1.0.0",
        "appVersion": "1.10",
        "description": "A chart",
        "maintainers": [{"name": "Ann", "url": "5"}],
        "dependencies": [{"name": "common", "version": "~1.0", "repository": "https://c.example", "alias": "c"}],
        "annotations": {"a": "b"},
        "deprecated": True,
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1.10", "1.10"), ("2026-01-02", "2026-01-02"), ("1e5", "1e5"), ("'yes'", "yes"), ("0x1f", "0x1f"), ("~", None)],
)
def test_scalars_stay_the_texts_that_they_are(text, expected):
    assert (
        read(make_chart("demo", "1.0.0", raw=f"{MANIFEST}appVersion: {text}\n".encode())).get("appVersion") == expected
    )


def test_characters_that_yaml_would_change_are_left_out():
    found = read(make_chart("demo", "1.0.0", raw=f'{MANIFEST}description: "a\\u2028\\0\\u0085b\\nc"\n'.encode()))
    assert found["description"] == "ab\nc"


def test_an_old_chart_has_its_dependencies_in_another_file():
    files = {"requirements.yaml": "dependencies:\n- name: common\n  version: 1.x\n"}
    found = read(make_chart("demo", "1.0.0", apiVersion="v1", files=files))
    assert found["dependencies"] == [{"name": "common", "version": "1.x"}]


def test_a_chart_may_have_anchors():
    raw = f"{MANIFEST}keywords: &k [a, b]\nsources: *k\n".encode()
    assert read(make_chart("demo", "1.0.0", raw=raw))["sources"] == ["a", "b"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"no archive", "gzip"),
        (b"", "gzip|truncated"),
        (pack({"demo/values.yaml": "a: 1"}), r"is no chart: it has no Chart\.yaml"),
        (make_chart("demo", "1.0.0", folder="other"), "in the folder 'other', and is the chart 'demo'"),
        (make_chart("demo", "one"), "not usable: invalid version"),
        (make_chart("demo", "1.2"), "not usable: invalid version"),
        (make_chart("-demo", "1.0.0"), "chart name '-demo' must"),
        (make_chart("demo", "1.0.0", raw=b"- a"), "is no mapping"),
        (make_chart("demo", "1.0.0", raw=b"a: ["), "cannot be read"),
        (make_chart("demo", "1.0.0", raw=b"name: \xff"), "cannot be read"),
        (make_chart("demo", "1.0.0", raw=b"version: 1.0.0"), "chart name '' must"),
        (make_chart("demo", "1.0.0", raw=b"[" * 2000), "cannot be read"),
        (make_chart("demo", "1.0.0", files={"../../x": "a"}), "not a plain relative path"),
        (make_chart("demo", "1.0.0", files={"VALUES.yaml": "a"}), "two entries .*, which some systems take for one"),
        (pack({"demo/Chart.yaml": MANIFEST, "other/x": "a"}), "outside of its folder"),
        (pack({"Chart.yaml": MANIFEST}), "outside of its folder"),
        (pack({"demo/Chart.yaml": MANIFEST}, link("demo/x", "../../etc/passwd")), "has a link"),
        (pack({"demo/Chart.yaml": MANIFEST}, link("demo/x", "demo/Chart.yaml", tarfile.LNKTYPE)), "has a link"),
        (
            make_chart("demo", "1.0.0", files={"big": bytes(5 * 1024 * 1024 + 1)}),
            "of more than 5242880 bytes, which clients do not read",
        ),
        (make_chart("demo", "1.0.0", raw=MANIFEST.encode() + b"#" * 1024 * 1024), "more than 1048576 bytes"),
        (make_chart("d" * 221, "1.0.0"), "at most 220"),
    ],
)
def test_what_is_no_usable_chart_is_refused(data, reason):
    with pytest.raises(Invalid, match=reason):
        read(data)


def test_a_bomb_is_refused(monkeypatch):
    files = {f"f{number}": bytes(1024 * 1024) for number in range(4)}
    data = make_chart("demo", "1.0.0", files=files)
    assert read(data)["name"] == "demo"
    monkeypatch.setattr(chart, "LIMITS", chart.ArchiveLimits(unpacked=2 * 1024 * 1024))
    with pytest.raises(Invalid, match=r"decompress|unpack|more than"):
        read(data)


def test_what_people_see_of_a_chart():
    fields = read(
        make_chart(
            "demo",
            "1.0.0",
            home="https://demo.example",
            sources=["https://src.example"],
            dependencies=[{"name": "common", "version": "1.x"}, {"name": "any"}],
            annotations={"artifacthub.io/license": "MIT"},
        )
    )
    assert meta_of(fields) == {
        "description": "A chart",
        "license": "MIT",
        "home_page": "https://demo.example",
        "project_urls": ["Source, https://src.example"],
        "requires_dist": ["common 1.x", "any"],
    }
