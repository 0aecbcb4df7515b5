"""What was yanked and deleted at the source stays so here, also once it is hosted here; verify finds nothing wrong."""

from __future__ import annotations

from functools import partial

import pytest

from tests.server.replication.conftest import Sites, wait_for
from tests.server.replication.test_following import DOCUMENTS, paths
from tests.server.replication.test_promotion import promote
from tests.support.forked_programs import run_pkgrepo
from tests.support.gems import make_gem
from tests.support.npm_packages import make_tarball
from tests.support.python_packages import make_sdist
from tests.support.server_process import clean_environment

pytestmark = pytest.mark.server

FORMATS = ("ruby", "python", "npm")


def made(format: str, version: str, *, name: str = "demo", other: bool = False) -> tuple[str, bytes]:
    """A file of a version, or one with other bytes."""
    match format:
        case "ruby":
            return f"{name}-{version}.gem", make_gem(name, version, extra="licenses:\n- MIT" if other else "")
        case "python":
            return make_sdist(name, version, summary="another" if other else "")
        case _:
            return f"{name}-{version}.tgz", make_tarball(name, version, files={"other.js": b"1"} if other else None)


def check_layout(sites: Sites) -> None:
    """The readable layout here is what the catalog has, once the server has stopped in order."""
    sites.here.process.stop()
    options = ["--set", f"data.dir={sites.here.process.folder / 'data'}", "verify"]
    done = run_pkgrepo(*options, environ=clean_environment(), folder=sites.here.process.folder)
    assert done.returncode == 0, done.stdout + done.stderr
    sites.here.again()


def gone(sites: Sites, name: str) -> bool:
    """Whether nothing is left here of the version that was deleted there."""
    path, fields, *_ = DOCUMENTS[name]
    listed = b"0.9.0" in sites.here.get(path, **fields)
    return not listed and not [each for each in paths(sites, name, "demo") if "0.9.0" in each]


def here_are(sites: Sites, name: str, count: int) -> bool:
    return len(paths(sites, name, "demo")) >= count


def test_what_was_yanked_or_deleted_there_is_not_published_anew_after_a_promotion(sites: Sites) -> None:
    there, here = sites.there, sites.here
    for name in FORMATS:
        sites.pair(name, name, files=["*"])
        for version in ("1.0.0", "1.1.0", "0.9.0"):
            there.upload(name, *made(name, version))
        wait_for(partial(here_are, sites, name, 6 if name == "ruby" else 3))
        sites.settled(name)
    there.upload("ruby", *made("ruby", "1.2.0"))
    there.api("POST", "/package/main%2Fruby/demo/versions/1.2.0/yank", {})
    sites.follow("late", "ruby", "ruby", files=["*"])  # which has never seen 1.2.0 but yanked
    for name in FORMATS:
        there.api("DELETE", f"/package/main%2F{name}/demo/versions/0.9.0")
        if name != "npm":
            there.api("POST", f"/package/main%2F{name}/demo/versions/1.1.0/yank", {"reason": "it loses data"})
        wait_for(partial(gone, sites, name))
    wait_for(lambda: b"1.1.0" not in here.get("/repositories/main/ruby/info/demo"))
    wait_for(lambda: here.api("GET", "/package/main%2Fruby/demo/versions/1.1.0")["state"] == "yanked")
    assert not here.get("/repositories/main/ruby/gems/demo-1.1.0.gem")
    for name in (*FORMATS, "late"):
        sites.settled(name)
    check_layout(sites)

    there.process.stop()
    for name in (*FORMATS, "late"):
        assert promote(sites, name, f"confirm={name}")[0] == 200
    refused = {
        "ruby": ("1.1.0", "1.2.0", "0.9.0"),
        "late": ("1.1.0", "1.2.0"),
        "python": ("1.1.0", "0.9.0"),
        "npm": ("0.9.0",),
    }
    for name, some in refused.items():
        kind = "ruby" if name == "late" else name
        for version in some:
            form = [("file", *made(kind, version, other=True))]
            reply = here.client.post_form(f"/api/repository/main%2F{name}/upload", form)
            assert reply.status in (403, 409), (name, version, reply.status, reply.body)
        here.upload(name, *made(kind, "2.0.0"))
    check_layout(sites)
    there.again()  # for the tests that follow, in whatever order


def test_names_of_what_was_never_here_are_taken_after_a_promotion(sites: Sites) -> None:
    there, here = sites.there, sites.here
    kinds = {f"gone-{each}": each for each in FORMATS}
    for name, kind in kinds.items():
        sites.pair(name, kind)  # which fetches nothing by itself
        for version in ("0.8.0", "0.9.0", "1.0.0"):
            there.upload(name, *made(kind, version))
        there.api("DELETE", f"/package/main%2F{name}/demo/versions/0.8.0")
        sites.settled(name)
        sites.follow(f"late-{name}", kind, name, files=["*"])
        there.api("DELETE", f"/package/main%2F{name}/demo/versions/0.9.0")
        there.api("DELETE", f"/repository/main%2F{name}/packages", {"paths": ["demo"]})
        sites.settled(f"late-{name}")
    for name in (*kinds, *(f"late-{each}" for each in kinds)):
        sites.settled(name)
        wait_for(partial(same_names, sites, name, name.removeprefix("late-")))
    for name, kind in kinds.items():
        for each in (name, f"late-{name}"):
            assert promote(sites, each, f"confirm={each}")[0] == 200
            for version in ("0.8.0", "0.9.0", "1.0.0"):
                form = [("file", *made(kind, version, other=True))]
                reply = here.client.post_form(f"/api/repository/main%2F{each}/upload", form)
                assert reply.status in (403, 409), (each, version, reply.status, reply.body)
            retired = here.api("GET", f"/repository/main%2F{each}/retired-names")["items"]
            assert [found["key"] for found in retired] == ["demo"]
            here.upload(each, *made(kind, "2.0.0"))
            assert not here.api("GET", f"/repository/main%2F{each}/retired-names")["items"]
    check_layout(sites)


def same_names(sites: Sites, here: str, there: str) -> bool:
    """Whether the same names are taken here and there by what was deleted."""
    lists = [
        site.api("GET", f"/repository/main%2F{name}/deleted-names?limit=1000")["items"]
        for site, name in ((sites.here, here), (sites.there, there))
    ]
    found = [[(each["package"], each["path"], each["sha256"]) for each in some] for some in lists]
    return bool(found[0]) and found[0] == found[1]
