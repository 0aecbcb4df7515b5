"""Gems are pushed, installed, searched, updated and yanked with the tools that people have."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from tests.support.client_programs import run_client
from tests.support.gems import make_gem

pytestmark = pytest.mark.clients


@pytest.mark.shows("publish", "refusal")
@pytest.mark.parametrize("slash", [True, False])
def test_push_prints_what_happened(bench, slash):
    path = bench.build("a", "1.0.0")
    assert "Successfully registered gem: a (1.0.0)" in bench.push(path, slash=slash)
    assert "Gem was already pushed: a (1.0.0)" in bench.push(path, slash=slash)
    changed = bench.build("a", "1.0.0", lines=["s.description = 'other'"])
    assert "Repushing of gem versions is not allowed." in bench.push(changed, slash=slash, status=1)
    broken = bench.folder / "broken-1.gem"
    broken.write_bytes(make_gem("-bad", "1"))
    assert "There was a problem saving your gem: name '-bad' must" in bench.push(broken, status=1)
    bench.environ["GEM_HOST_API_KEY"] = "wrong"
    assert "Access Denied." in bench.push(path, slash=slash, status=1)


def test_documents_of_the_index_fit_together(bench, rb):
    path = bench.publish("a", "1.0.0")
    bench.publish("a", "1.1.0", platform="x86_64-linux")
    bench.publish(
        "b", "0.1.0.pre", lines=['s.add_dependency "a", ">= 1.0", "< 3"', 's.required_ruby_version = ">= 2.5"']
    )
    assert rb.get("/names").text == "---\na\nb\n"
    lines = rb.get("/versions").text.splitlines()
    assert [line.rpartition(" ")[0] for line in lines[2:]] == ["a 1.0.0", "a 1.1.0-x86_64-linux", "b 0.1.0.pre"]
    info = {name: rb.get(f"/info/{name}") for name in ("a", "b")}
    for line in lines[3:]:
        name, _, md5 = line.split(" ")
        assert hashlib.md5(info[name].body).hexdigest() == md5
        assert info[name].headers["etag"] == f'"{md5}"'
    assert f"checksum:{hashlib.sha256(path.read_bytes()).hexdigest()}" in info["a"].text.splitlines()[1]
    assert info["b"].text.splitlines()[1].startswith("0.1.0.pre a:< 3&>= 1.0|checksum:")
    assert ",ruby:>= 2.5" in info["b"].text


READ_SPECS = "p Marshal.load(Zlib.gunzip(File.binread(ARGV[0]))).map { |n, v, p| [n, v.class.name, v.to_s, p] }"
READ_QUICK = """\
spec = Marshal.load(Zlib::Inflate.inflate(File.binread(ARGV[0])))
p [spec.full_name, spec.author, spec.runtime_dependencies.map(&:to_s), spec.date.to_s]
"""


def test_ruby_reads_the_legacy_index(bench, rb):
    bench.publish("a", "1.0.0")
    bench.publish(
        "a", "1.1.0", platform="x86_64-linux", lines=['s.add_dependency "c", "~> 1.2"', 's.date = "2024-05-06"']
    )
    bench.publish("a", "2.0.0.rc1")
    found = {}
    for name in ("specs.4.8.gz", "latest_specs.4.8.gz", "prerelease_specs.4.8.gz"):
        (bench.folder / name).write_bytes(rb.get(f"/{name}").body)
        found[name] = bench.ruby(READ_SPECS, name).strip()
    old, linux = '["a", "Gem::Version", "1.0.0", "ruby"]', '["a", "Gem::Version", "1.1.0", "x86_64-linux"]'
    assert found["specs.4.8.gz"] == found["latest_specs.4.8.gz"] == f"[{old}, {linux}]"
    assert found["prerelease_specs.4.8.gz"] == '[["a", "Gem::Version", "2.0.0.rc1", "ruby"]]'
    (bench.folder / "quick").write_bytes(rb.get("/quick/Marshal.4.8/a-1.1.0-x86_64-linux.gemspec.rz").body)
    assert bench.ruby(READ_QUICK, "quick").strip() == (
        '["a-1.1.0-x86_64-linux", "Zoë", ["c (~> 1.2)"], "2024-05-06 00:00:00 UTC"]'
    )


@pytest.mark.shows("install", "search")
def test_gem_installs_with_dependencies_searches_and_fetches(bench, server):
    bench.publish("a", "1.0.0")
    bench.publish("a", "1.1.0.pre")
    bench.publish("b", "0.1.0", lines=['s.add_dependency "a", "~> 1.0"'])
    source = ("--clear-sources", "--source", bench.url + "/")
    installed = bench.gem("install", "b", *source, "--no-document")
    assert "Successfully installed a-1.0.0" in installed
    assert "Successfully installed b-0.1.0" in installed
    assert f"{bench.url.rsplit('/', 1)[1]}/specs.4.8.gz" not in server.output
    listed = bench.gem("search", "--all", "--pre", *source)
    assert "a (1.1.0.pre, 1.0.0)" in listed
    assert "b (0.1.0)" in listed
    assert "a (1.0.0)" in bench.gem("list", "--remote", *source)
    assert "Downloaded a-1.0.0" in bench.gem("fetch", "a", "--version", "1.0.0", *source)
    assert "name: b" in bench.gem("specification", "--remote", "b", *source)


def test_bundler_installs_and_follows_later_pushes(bench, server):
    bench.publish("a", "1.0.0")
    bench.publish("b", "0.1.0", lines=['s.add_dependency "a", ">= 1.0"'])
    bench.write_gemfile("b")
    bench.bundle("install")
    assert "a (1.0.0)" in bench.locked()
    (bench.project / "Gemfile.lock").unlink()
    before = len(server.output)
    bench.bundle("install")
    bench.publish("a", "1.2.0")
    assert "1.2.0" in bench.bundle("outdated", status=1)
    bench.bundle("update")
    assert "a (1.2.0)" in bench.locked()
    repository = bench.url.rsplit("/", 1)[1]
    for read in ("versions 304", "versions 206", "info/a 206"):
        assert server.lines(f"{repository}/{read} ", 1)  # waits: the access log is written a little later
    assert not any(f"{repository}/specs.4.8.gz" in line for line in server.output[before:].splitlines())


def test_bundler_installs_with_the_full_index_too(bench):
    bench.publish("a", "1.0.0")
    bench.publish("b", "0.1.0", lines=['s.add_dependency "a", ">= 1.0"'])
    bench.write_gemfile("b")
    bench.bundle("install", "--full-index")
    assert "a (1.0.0)" in bench.locked()


@pytest.mark.shows("yank")
def test_yanked_versions_are_not_found_with_a_warm_cache(bench, rb):
    bench.publish("a", "1.0.0")
    bench.publish("a", "1.1.0")
    bench.publish("a", "1.1.0", platform="x86_64-linux")
    bench.write_gemfile("a")
    bench.bundle("install")
    assert "a (1.1.0-x86_64-linux)" in bench.locked()
    yanked = bench.gem("yank", "--host", bench.url, "a", "--version", "1.1.0", "--platform", "x86_64-linux")
    assert "Successfully deleted gem: a (1.1.0-x86_64-linux)" in yanked
    again = bench.gem("yank", "--host", bench.url, "a", "--version", "1.1.0", "--platform", "x86_64-linux")
    assert "The version 1.1.0-x86_64-linux has already been deleted." in again
    bench.gem("uninstall", "--all", "--executables", "a")
    (bench.project / "Gemfile.lock").unlink()
    bench.bundle("install")
    assert "a (1.1.0)" in bench.locked()
    for version in ("1.0.0", "1.1.0"):
        assert "Successfully deleted" in bench.gem("yank", "--host", bench.url, "a", "--version", version)
    bench.gem("uninstall", "--all", "--executables", "a")
    (bench.project / "Gemfile.lock").unlink()
    assert "Could not find gem 'a'" in bench.bundle("install", status=7)
    assert rb.get("/info/a").text == "---\n"
    assert rb.get("/gems/a-1.0.0.gem").status == 404
    assert rb.get("/quick/Marshal.4.8/a-1.0.0.gemspec.rz").status == 404


def test_an_empty_repository_has_no_gems(bench):
    bench.write_gemfile("a")
    assert "Could not find gem 'a'" in bench.bundle("install", status=7)
    assert "ERROR" in bench.gem("install", "a", "--clear-sources", "--source", bench.url + "/", status=2)


def test_owners_are_listed_and_changed(bench, api):
    name = f"friend{bench.tools}"
    created = api.post_json("/users", {"username": name, "password": "correct horse battery"})
    assert created.status == 201, created
    bench.publish("a", "1.0.0")
    listed = bench.gem("owner", "--host", bench.url, "a", "--add", name)
    assert f"Owner {name} was added to a." in listed
    assert "Owners for gem: a" in listed
    assert f"- {name}" in listed
    removed = bench.gem("owner", "--host", bench.url, "a", "--remove", name)
    assert f"Owner {name} was removed from a." in removed
    assert "Owner could not be found." in bench.gem("owner", "--host", bench.url, "a", "--remove", "x", status=None)


def test_bundler_follows_a_list_that_was_written_anew(bench, rb, server):
    bench.publish("a", "1.0.0")
    bench.publish("b", "1.0.0")
    bench.write_gemfile("a", "b")
    bench.bundle("install")
    bench.publish("a", "1.1.0")
    assert "Successfully deleted" in bench.gem("yank", "--host", bench.url, "b", "--version", "1.0.0")
    bench.publish("b", "1.1.0")
    repository = bench.url.partition("/repositories/")[2]
    command = [Path(sys.executable).with_name("pkgrepo"), *server.catalog_options, "compact"]
    printed = run_client([*command, repository], environ=bench.environ, folder=bench.folder).stdout
    assert f"wrote the list of {repository} anew" in printed
    assert (
        "there is no repository main/other"
        in run_client([*command, "main/other"], environ=bench.environ, folder=bench.folder, status=3).stdout
    )
    lines = rb.get("/versions").text.splitlines()
    assert [line.rpartition(" ")[0] for line in lines[2:]] == ["a 1.0.0,1.1.0", "b 1.1.0"]
    bench.bundle("update")
    assert "a (1.1.0)" in bench.locked()
    assert "b (1.1.0)" in bench.locked()
