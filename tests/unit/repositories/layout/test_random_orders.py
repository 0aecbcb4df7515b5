"""After any order of uploads, yanks, deletions and state changes, documents and layout equal the catalog."""

import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pkgrepo.errors import Conflict, FileBurned, FileExists
from pkgrepo.formats.python.index import pages
from pkgrepo.formats.python.index.indexing import file_entry, read_parts, splice
from pkgrepo.formats.python.index.pages import HTML_PAGE, JSON_PAGE
from pkgrepo.model import SYSTEM, VersionState
from pkgrepo.repositories.publish.package_changes import remove_files, set_package_meta, set_version_state
from pkgrepo.storage.catalog.packages import files, packages, versions
from pkgrepo.storage.catalog.server import repositories
from tests.support.admission import admitted
from tests.support.python_packages import make_sdist, make_wheel
from tests.support.repositories import InlinePools, RepositoryServices, now

NAMES = st.sampled_from(["Demo", "demo", "d.e"])
VERSIONS = st.sampled_from(["1.0", "1.0.0", "2.0rc1", "1!0.5", "1.0+local"])
SERIALS = re.compile(rb'"_last-serial":\d+|<!--SERIAL \d+-->')


def rendered(world, package):
    """A project's pages, made from nothing but its rows."""
    entries = []
    every = world.catalog.peek(versions.list_versions, package.id)
    for version in every:
        stored = world.catalog.peek(files.files_of_version, version.id)
        entries += [file_entry(file, version) for file in stored if file.role is None]
    hidden = package.meta.get("status") == "quarantined"
    entries = [] if hidden else entries
    texts = [] if hidden else [version.text for version in every]
    common = {"status": package.meta.get("status", "active"), "reason": package.meta.get("status_reason")}
    key, serial = package.key, package.serial
    return {
        JSON_PAGE: pages.project_page_json(key, serial, texts, [*map(pages.file_fragment_json, entries)], **common),
        HTML_PAGE: pages.project_page_html(key, serial, texts, [*map(pages.file_fragment_html, entries)], **common),
    }


def spliced(world):
    """The pages of every project as they are made from their fragments, by project and kind."""
    keys = [row[0] for row in world.catalog.peek(lambda reader: reader.all("SELECT key FROM package"))]
    found = {}
    for key in keys:
        for kind in (JSON_PAGE, HTML_PAGE):
            parts, package = world.catalog.peek(read_parts, world.repository.id, key, kind)
            found[key, kind] = splice(key, kind, package.serial, [parts]).joined()
    return found


def everything(world):
    """What readers see, but for serials."""
    found = {where: SERIALS.sub(b"", body) for where, body in spliced(world).items()}
    found["names"] = world.catalog.peek(packages.package_names, world.repository.id)
    return found


class Orders(RuleBasedStateMachine):
    """One repository, and every way to change it."""

    @initialize()
    def begin(self):
        self.folder = Path(tempfile.mkdtemp())
        self.world = RepositoryServices(self.folder / "store", InlinePools())
        now(self.world.start())

    def teardown(self):
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    @property
    def present(self):
        packages_ = self.world.catalog.peek(packages.list_packages, self.world.repository.id)
        return [(p, v) for p in packages_ for v in self.world.catalog.peek(versions.list_versions, p.id)]

    @rule(
        name=NAMES,
        version=VERSIONS,
        sdist=st.booleans(),
        pad=st.integers(0, 1),
        overwrite=st.booleans(),
        reuse=st.booleans(),
    )
    def upload(self, name, version, sdist, pad, overwrite, reuse):
        make = make_sdist if sdist else make_wheel
        filename, data = make(name, version, pad=pad, requires_python=">=3.8" if pad else None)
        text = next(
            (v.text for p, v in self.present if v.key == self.key(version) and p.key == self.package(name)), None
        )
        with suppress(Conflict, FileExists, FileBurned):
            now(self.world.publish(filename, data, overwrite=overwrite, reuse=reuse, text=text or version))

    @precondition(lambda self: self.present)
    @rule(
        pick=st.randoms(use_true_random=False), state=st.sampled_from(VersionState), reason=st.sampled_from(["", "<b>"])
    )
    def mark_version(self, pick, state, reason):
        package, version = pick.choice(self.present)
        reason = "" if state is VersionState.LIVE else reason
        self.change(
            set_version_state, package.key, version.key, state, reason, admitted(self.world.repository), self.index
        )

    @precondition(lambda self: self.present)
    @rule(pick=st.randoms(use_true_random=False), status=st.sampled_from(["active", "archived", "quarantined"]))
    def mark_project(self, pick, status):
        package, _ = pick.choice(self.present)
        self.change(
            set_package_meta,
            package.key,
            {"status": status, "status_reason": ""},
            admitted(self.world.repository),
            self.index,
        )

    @precondition(lambda self: self.present)
    @rule(pick=st.randoms(use_true_random=False), whole=st.booleans(), burn=st.booleans())
    def delete(self, pick, whole, burn):
        package, version = pick.choice(self.present)
        stored = self.world.catalog.peek(files.files_of_version, version.id)
        main = pick.choice([file.path for file in stored if file.role is None])
        paths = None if whole else [file.path for file in stored if file.path.startswith(main)]
        self.change(remove_files, package.key, version.key, paths, SYSTEM, self.index, burn)

    @rule()
    def follow(self):
        now(self.world.follow())

    @invariant()
    def documents_are_a_rendering_from_scratch(self):
        if not hasattr(self, "world"):
            return
        expected = {}
        for package in {p.id: p for p, _ in self.present}.values():
            for kind, body in rendered(self.world, package).items():
                expected[package.key, kind] = body.joined()
        assert spliced(self.world) == expected

    @invariant()
    def figures_are_a_count_from_scratch(self):
        if not hasattr(self, "world"):
            return
        repository = self.world.catalog.peek(repositories.get_repository, self.world.repository.id)
        held = self.world.catalog.peek(lambda reader: reader.one("SELECT COALESCE(SUM(size), 0) FROM file"))[0]
        assert (repository.bytes_used, repository.package_count) == (held, self.world.count("package"))
        assert self.world.count("fragment") == 2 * sum(
            file.role is None
            for _, version in self.present
            for file in self.world.catalog.peek(files.files_of_version, version.id)
        )

    @invariant()
    def every_copy_is_named(self):
        if not hasattr(self, "world"):
            return
        named = self.world.catalog.peek(lambda reader: reader.all("SELECT locator FROM blob"))
        assert {row[0] for row in named} == set(self.world.copies())

    @rule()
    def begin_again_from_the_layout(self):
        now(self.world.follow())
        report = now(self.world.verify())
        assert report.problems == []
        again = RepositoryServices(self.world.root, InlinePools())
        now(again.start(repository=False))
        restored = now(again.reindex())
        assert restored.problems == []
        assert everything(again) == everything(self.world)
        second = now(again.reindex())
        assert (second.repositories, second.versions, second.files) == (0, 0, 0)
        shown = self.world.shown()
        now(again.follow())
        assert again.shown() == shown
        report = now(again.verify())
        assert [each for each in report.problems if "no row names" not in each] == []  # of what was deleted
        again.follower.stopService()

    @property
    def index(self):
        return self.world.format.index

    def key(self, version):
        return self.world.format.version_key(version)

    def package(self, name):
        return self.world.format.package_key(name)

    def change(self, command, *args):
        now(self.world.content.change(command, self.world.repository, *args))


TestOrders = Orders.TestCase
TestOrders.settings = settings(
    max_examples=12, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
)
