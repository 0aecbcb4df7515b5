"""RubyGems and Bundler install through a proxy of another gem server: cold, warm, and while that is stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.configurations import hosted, proxy, virtual
from tests.support.container_clients import ADMIN, ok
from tests.support.http_client import HttpClient
from tests.support.ruby_clients import RubyBench
from tests.support.server_process import ServerProcess, running
from tests.support.upstreams.server import ScriptedUpstream

pytestmark = pytest.mark.clients

# What ``gem generate_index`` of RubyGems up to 3.6 writes, which newer ones have in a gem of its own.
MAKE_INDEX = """
require "rubygems/package"
require "fileutils"
Dir.chdir ARGV[0]
specs = Dir["gems/*.gem"].sort.map { |path| Gem::Package.new(path).spec }
FileUtils.mkdir_p "quick/Marshal.4.8"
specs.each do |spec|
  spec.abbreviate
  spec.sanitize
  data = Gem.deflate(Marshal.dump(spec))
  File.binwrite "quick/Marshal.4.8/#{spec.original_name}.gemspec.rz", data
end
rows = specs.map { |spec| [spec.name, spec.version, spec.original_platform] }
{ "specs" => rows, "latest_specs" => rows, "prerelease_specs" => [] }.each do |name, list|
  Zlib::GzipWriter.open("#{name}.4.8.gz") { |file| file.write Marshal.dump(list) }
end
"""


class Scene:
    """A gem server, and another server with a proxy of it that asks it each time, and a virtual repository."""

    def __init__(self, upstream: ServerProcess, server: ServerProcess, bench: Callable[[str], RubyBench]) -> None:
        self.upstream = upstream
        self.server = server
        self.bench = bench

    def requests(self, text: str) -> list[str]:
        """The requests that the gem server got, by a part of their log lines."""
        return [line for line in self.upstream.output.splitlines() if f"GET /repositories/main/rb{text} " in line]


@pytest.fixture
def scene(tmp_path_factory: pytest.TempPathFactory, tools: str) -> Iterator[Scene]:
    """The servers. Benches have empty caches."""
    with running(tmp_path_factory.mktemp("upstream"), hosted("ruby", "rb")) as upstream:
        address = f"{upstream.url}/repositories/main/rb"
        configuration = 'proxy.allow_private = ["127.0.0.1"]\n' + "".join(
            (
                hosted("ruby", "own"),
                proxy("ruby", "mirror", address, cache_ttl="0", cache="{ negative_ttl = 0 }"),
                virtual("ruby", "all", "main/own", "main/mirror", publish_to="main/own"),
            )
        )
        with running(tmp_path_factory.mktemp("server"), configuration) as server:

            def bench(name: str) -> RubyBench:
                where = upstream.url if name == "rb" else server.url
                body = {"name": "t", "repositories": [{"repository": "main/*", "actions": ["read", "write", "delete"]}]}
                client = HttpClient(f"{where}/api", ADMIN)
                body["name"] = Path(tmp_path_factory.mktemp("token")).name
                token: str = ok(client.post_json("/user/token", body)).json["token"]
                folder = tmp_path_factory.mktemp("bench")
                return RubyBench(folder, tools, f"{where}/repositories/main/{name}", token)

            yield Scene(upstream, server, bench)


def publish_tree(scene: Scene) -> RubyBench:
    bench = scene.bench("rb")
    bench.publish("leaf", "1.0.0")
    bench.publish("leaf", "1.1.0")
    bench.publish("root", "1.0.0", lines=['s.add_dependency "leaf", ">= 1.0"'])
    return bench


@pytest.mark.shows("proxy", "lock")
def test_bundler_installs_cold_warm_and_without_the_upstream(scene):
    origin = publish_tree(scene)
    cold = scene.bench("mirror")
    cold.write_gemfile("root")
    cold.bundle("install")
    assert "leaf (1.1.0)" in cold.locked()
    scene.upstream.lines("/gems/leaf-1.1.0.gem ", 1)
    warm = scene.bench("mirror")
    warm.write_gemfile("root")
    warm.bundle("install")
    assert len(scene.requests("/gems/leaf-1.1.0.gem")) == 1
    origin.publish("leaf", "1.2.0")
    warm.bundle("update")
    assert "leaf (1.2.0)" in warm.locked()
    scene.upstream.stop()
    late = scene.bench("mirror")
    late.write_gemfile("root")
    late.bundle("install")
    assert "leaf (1.2.0)" in late.locked()


def test_gem_installs_through_a_proxy_and_cannot_push_to_it(scene):
    publish_tree(scene)
    bench = scene.bench("mirror")
    source = ("--clear-sources", "--source", f"{bench.url}/")
    assert "Successfully installed root-1.0.0" in bench.gem("install", "root", "--no-document", *source)
    assert "leaf (1.1.0)" in bench.gem("list", "--remote", *source)
    assert "is a proxy" in bench.push(bench.build("mine", "1.0.0"), status=1)


@pytest.mark.shows("virtual")
def test_a_virtual_repository_serves_own_gems_before_those_of_others(scene):
    origin = publish_tree(scene)
    origin.publish("mine", "9.0.0")
    bench = scene.bench("all")
    bench.publish("mine", "1.0.0", lines=['s.add_dependency "root", ">= 1.0"'])
    bench.write_gemfile("mine")
    bench.bundle("install")
    assert "mine (1.0.0)" in bench.locked()
    assert "leaf (1.1.0)" in bench.locked()
    assert len(scene.requests("/info/mine")) <= 1, "only the first publish of a name asks whether an upstream has it"
    bench.publish("mine", "1.1.0", lines=['s.add_dependency "root", ">= 1.0"'])
    bench.bundle("update")
    assert "mine (1.1.0)" in bench.locked()


def test_gems_of_a_folder_without_a_compact_index_are_installed(tmp_path_factory, tools, scene):
    builder = scene.bench("rb")
    folder = tmp_path_factory.mktemp("folder")
    (folder / "gems").mkdir()
    for each in (
        builder.build("leaf", "1.1.0"),
        builder.build("leaf", "2.0.0", lines=['s.required_ruby_version = ">= 99"']),
        builder.build("root", "1.0.0", lines=['s.add_dependency "leaf", ">= 1.0"']),
    ):
        each.rename(folder / "gems" / each.name)
    builder.ruby(MAKE_INDEX, folder)
    with ScriptedUpstream() as upstream:
        for path in folder.rglob("*"):
            if path.is_file():
                upstream.serve(f"/{path.relative_to(folder)}", path.read_bytes())
        configuration = 'proxy.allow_private = ["127.0.0.1"]\n' + proxy("ruby", "folder", upstream.url)
        with running(tmp_path_factory.mktemp("front"), configuration) as server:
            bench = RubyBench(tmp_path_factory.mktemp("bench"), tools, f"{server.url}/repositories/main/folder", None)
            bench.write_gemfile("root")
            bench.bundle("install")
            assert "leaf (1.1.0)" in bench.locked()
            source = ("--clear-sources", "--source", f"{bench.url}/")
            assert "root (1.0.0)" in bench.gem("list", "--remote", *source)
            bench.gem("uninstall", "--all", "--executables", "root", "leaf")
            assert "Successfully installed root-1.0.0" in bench.gem("install", "root", "--no-document", *source)
