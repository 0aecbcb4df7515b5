"""Documents in packages: an input is the document, which is packed into an otherwise valid package of its format."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pkgrepo.archives.module_zip import read_mod
from pkgrepo.formats.cargo.crate import read_crate
from pkgrepo.formats.conda import inside as conda_inside
from pkgrepo.formats.conda.description import find_subdir, meta_of, parse_description, record_of
from pkgrepo.formats.go.archive import read_module
from pkgrepo.formats.helm.chart import meta_of as chart_meta
from pkgrepo.formats.helm.chart import read_chart
from pkgrepo.formats.maven.upload.pom import read_pom
from pkgrepo.formats.npm import inside as npm_inside
from pkgrepo.formats.npm.limits import DOCUMENT
from pkgrepo.formats.npm.publish.envelope import packed_publication, read_publication
from pkgrepo.formats.npm.publish.scanner import PublishScanner
from pkgrepo.formats.npm.publish.tarball import inspect_tarball
from pkgrepo.formats.npm.semver import parse_version
from pkgrepo.formats.python import inside as python_inside
from pkgrepo.formats.python.names import parse_upload
from pkgrepo.formats.python.upload.metadata import check_identity, parse_metadata
from pkgrepo.formats.rubygems import inside as ruby_inside
from pkgrepo.formats.rubygems.gemspec import meta_of as gem_meta
from pkgrepo.formats.rubygems.gemspec import spec_of
from pkgrepo.formats.rubygems.push.requests import read_gem
from tests.lab.fuzz.target import Target
from tests.support.charts import make_chart
from tests.support.conda_packages import make_conda, make_index
from tests.support.crates import pack
from tests.support.gems import pack_gem
from tests.support.go_modules import make_module
from tests.support.python_packages import make_wheel
from tests.support.tarballs import make_tar_gz

YAML_WORDS = (
    b"--- ",
    b"!ruby/object:Gem::Version",
    b"&1 ",
    b"*1",
    b"|\n",
    b">-\n",
    b"? ",
    b"<<: ",
    b"!!binary ",
    b"%YAML 1.1\n",
)
XML_WORDS = (b"<!DOCTYPE a>", b"<![CDATA[", b"<!-- ", b"&#0;", b"&amp;", b"<?x?>", b"xmlns=", b"</", b"/>")


def _gem(data: bytes) -> None:
    gem = pack_gem(data)
    meta = gem_meta(read_gem(gem).spec)
    spec_of(meta)
    ruby_inside.look(gem, "gems/alpha-1.0.0.gem")


def _wheel(data: bytes) -> None:
    found = parse_metadata(data, "METADATA")
    check_identity(found, parse_upload("demo-1.0-py3-none-any.whl"), "METADATA")


def _wheel_inside(data: bytes) -> None:
    name, wheel = make_wheel("demo", "1.0", metadata=data, extra_files={"demo/a.py": b"import os", "demo.pth": data})
    python_inside.look(wheel, f"demo/1.0/{name}")


def _conda(data: bytes) -> None:
    found = parse_description(data, b"{}", b"{}")
    meta_of(found)
    record_of(found.index, find_subdir(found.index), {"sha256": "0" * 64, "md5": "0" * 32}, 1)


def _conda_about(data: bytes) -> None:
    meta_of(parse_description(json.dumps(make_index()).encode(), data, data))


def _conda_inside(data: bytes) -> None:
    package = make_conda(
        payload=[("info/index.json", data), ("bin/.demo-post-link.sh", data), ("info/licenses/MIT", data)]
    )
    conda_inside.look(package, "noarch/demo-1.0-py_0.conda")


def _chart(data: bytes) -> None:
    chart_meta(read_chart(make_chart("demo", "1.0.0", raw=data), "demo-1.0.0.tgz"))


def _requirements(data: bytes) -> None:
    files = {"requirements.yaml": data}
    chart_meta(
        read_chart(make_chart("demo", "1.0.0", files=files, raw=b"name: demo\nversion: 1.0.0\n"), "demo-1.0.0.tgz")
    )


def _crate(data: bytes) -> None:
    read_crate(pack([("demo-1.0.0/Cargo.toml", data), ("demo-1.0.0/src/lib.rs", b"")]))


def _tarball(data: bytes) -> None:
    tarball = make_tar_gz({"package/package.json": data, "package/README.md": data}, level=1)
    npm_inside.look(tarball, "demo/-/demo-1.0.0.tgz")
    packed_publication(inspect_tarball(tarball, "demo-1.0.0.tgz", "demo", parse_version("1.0.0")))


def _publish(data: bytes) -> None:
    scanner = PublishScanner(DOCUMENT)
    for at in range(0, len(data), 7000):
        for _ in scanner.feed(data[at : at + 7000]):
            pass
    read_publication(scanner.finish(), "demo")


def _module(data: bytes) -> None:
    read_module(make_module("example.com/mod", "v1.0.0", {"go.mod": data, "lib.go": b"package mod\n"}))


def targets() -> Iterator[Target]:
    """All of them."""
    yield Target("gemspec", _gem, YAML_WORDS)
    yield Target("core-metadata", _wheel, (b"Metadata-Version: 2.4\n", b"Name: ", b"\n        ", b"=?utf-8?q?=41?="))
    yield Target("wheel-inside", _wheel_inside)
    yield Target("conda-index", _conda)
    yield Target("conda-inside", _conda_inside)
    yield Target("conda-about", _conda_about)
    yield Target("chart-yaml", _chart, YAML_WORDS)
    yield Target("chart-requirements", _requirements, YAML_WORDS)
    yield Target("cargo-toml", _crate, (b"[package]\n", b"[[bin]]\n", b'"""', b"1979-05-27T07:32:00Z"))
    yield Target("package-json", _tarball)
    yield Target("npm-publish", _publish, (b'"data":"', b'"_attachments":{', b'"versions":{', b'"dist-tags":{'))
    yield Target("go-mod", read_mod, (b"require (\n", b"retract [v1, v2]\n", b"// indirect\n", b"// Deprecated: x\n"))
    yield Target("module-files", _module)
    yield Target("pom", read_pom, XML_WORDS)
