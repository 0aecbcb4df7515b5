"""Each task of the lab of faults finds nothing wrong with a sound server, and finds what was spoiled."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any

import pytest

from tests.lab.faults.clients import Idle
from tests.lab.faults.jobs.backing import Backing
from tests.lab.faults.jobs.blocking import Blocking
from tests.lab.faults.jobs.carrying import INTO, Carrying
from tests.lab.faults.jobs.collecting import Collecting
from tests.lab.faults.jobs.crew import TASKS, Crew
from tests.lab.faults.jobs.importing import Importing
from tests.lab.faults.jobs.limiting import Limiting
from tests.lab.faults.jobs.people import People
from tests.lab.faults.jobs.promoting import Promoting
from tests.lab.faults.jobs.proxying import Proxying
from tests.lab.faults.jobs.replicating import LINE, Replicating
from tests.lab.faults.jobs.retaining import FORMATS, Line, Retaining
from tests.lab.faults.jobs.staging import Staging
from tests.lab.faults.jobs.tagging import Tagging
from tests.lab.faults.jobs.task import Kept, Task
from tests.lab.faults.jobs.tokens import Tokens
from tests.lab.faults.jobs.trashing import Trashing
from tests.lab.faults.jobs.twins import Twins
from tests.lab.faults.jobs.uploading import Uploading
from tests.lab.faults.ledger import Item, Ledger, sha256_of
from tests.lab.faults.rounds import AUTH
from tests.support.first_publishes import REPOSITORIES, Publisher
from tests.support.server_process import running

pytestmark = [pytest.mark.faults, pytest.mark.folder("processes of one server"), pytest.mark.timeout(600)]

STEPS = 60  # of each task


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    """All tasks, at a server that no fault reaches, with some items of writers."""
    folder = tmp_path_factory.mktemp("lab")
    found = Crew(folder / "tasks", Ledger(folder / "ledger.jsonl"), random.Random(7))
    with running(folder, found.job.configuration) as server, closing(found):
        publisher = Publisher(server.url, AUTH)
        for format_, name in REPOSITORIES.items():
            publisher.create(name, format_)
            item = Item(format_, "written", "1.0.0")
            found.lab.ledger.begin("publish", item)
            found.lab.ledger.end("publish", item.published(publisher.publish(format_, item.name, "1.0.0")), there=True)
        found.prepare(server.url)
        yield found


def work(task: Task) -> None:
    """Do steps of a task, each kind of them; one of a task that has long ones alone."""
    first = [*task.steps]
    more = task.rng.choices(first, [*task.steps.values()], k=STEPS) if len(first) > 1 else []
    for what in [*first, *more]:
        with suppress(Idle):
            getattr(task, what)()


def test_a_collection_is_refused_by_nothing(crew: Crew) -> None:
    task = the(crew, Collecting)
    work(task)
    assert [*task.check()] == []


def the(crew: Crew, kind: type[Any]) -> Any:
    [found] = [each for each in crew.tasks if isinstance(each, kind)]
    return found


def _backing(task: Backing) -> None:
    lost = Item("raw", "lost", "1.0.0", file="lost", sha256=sha256_of(b"lost"))
    task.lab.ledger.end("publish", lost, there=True)
    [state] = [each for each in task.lab.ledger.states() if each.item is lost]
    state.since = 0.0  # long before the backup


def _blocking(task: Blocking) -> None:
    key = "npm"
    if key not in task.blocks:
        body = {"repository": f"main/{REPOSITORIES[key]}", "package": "blockable"}
        task.api().ask("POST", "api/policy/blocks", json=body)
    else:
        task.api().ask("DELETE", f"api/policy/blocks/{task.blocks[key]}")


def _carrying(task: Carrying) -> None:
    load = next(each for each in task.loads if each.is_carried)
    task.api().ask("DELETE", f"api/package/main%2F{INTO}/{load.name}")


def _importing(task: Importing) -> None:
    done = next(each for each in task.sources if each.done)
    path = done.files[0].path.split("/", 3)[3]
    into = done.files[0].path.split("/")[2]
    paths = [path, "/".join(path.split("/")[:2]), f"packages/{path}"]
    task.api().ask("DELETE", f"api/repository/main%2F{into}/packages", json={"paths": paths})


def _limiting(task: Limiting) -> None:
    for place in task.places:
        task.api().ask("PUT", f"repositories/main/{place.repository}/more/1.0/file.bin", data=b"of somebody else")


def _people(task: People) -> None:
    task.make()
    person = task.people[-1]
    with task.history.writing(person.register(0), "refused"):
        person.may = False  # which the server was not told


def _promoting(task: Promoting) -> None:
    each = next(each for each in task.every if each.in_target)
    each.in_target = False


def _proxying(task: Proxying) -> None:
    assert any(each.kept for each in task.files)
    for each in ("npm", "python", "raw"):
        task.api().ask("POST", f"api/repository/main%2Fodd-{each}/cache/purge?wait=60", json={"pattern": "*"})


def _replicating(task: Replicating) -> None:
    place = f"api/package/main%2F{LINE}-npm/last/versions"
    version = task.api().ask("GET", place).json()["items"][0]["version"]
    task.api().ask("PUT", f"{place}/{version}/pin", json={})  # so that it stays
    task.far.api.ask("DELETE", f"{place}/{version}")


def _retaining(task: Retaining) -> None:
    line = next(each for each in task.lines if each.format == "npm")
    assert line.versions, "nothing was published"
    task.api().ask("DELETE", f"api/package/main%2F{FORMATS['npm']}/line")


def _staging(task: Staging) -> None:
    stage = next(each for each in task.stages if each.state == "approved")
    stage.state = "rejected"


def _tagging(task: Tagging) -> None:
    path = f"repositories/main/{REPOSITORIES['npm']}/-/package/tagged/dist-tags/once"
    task.api().ask("PUT", path, data='"0.0.0"', headers={"Content-Type": "application/json"})


def _tokens(task: Tokens) -> None:
    task.make()  # the steps may have revoked all others
    token = task.tokens[-1]
    with task.history.writing(f"{token.id} read", "refused"):
        token.lives = False  # which the server was not told


def _trashing(task: Trashing) -> None:
    package = next(each for each in task.packages if each.there)
    task.api().ask("DELETE", package.place)


def _twins(task: Twins) -> None:
    lost = Item("python", "lost", "1.0.0", file="lost", sha256=sha256_of(b"lost"))
    task.lab.ledger.end("publish", lost, there=True)


def _uploading(task: Uploading) -> None:
    task.finished[-1].data = b"other bytes"


SPOILED: dict[type[Task], Callable[[Any], None]] = {
    Backing: _backing,
    Blocking: _blocking,
    Carrying: _carrying,
    Importing: _importing,
    Limiting: _limiting,
    People: _people,
    Promoting: _promoting,
    Proxying: _proxying,
    Replicating: _replicating,
    Retaining: _retaining,
    Staging: _staging,
    Tagging: _tagging,
    Tokens: _tokens,
    Trashing: _trashing,
    Twins: _twins,
    Uploading: _uploading,
}


@pytest.mark.parametrize("kind", SPOILED, ids=lambda each: each.__name__)
def test_what_was_spoiled_is_told(crew: Crew, kind: type[Task]) -> None:
    task = the(crew, kind)
    work(task)
    assert [*task.check()] == []
    assert [*task.finish()] == []
    if kind in (Trashing, Tokens, Retaining, Blocking):
        work(task)
    SPOILED[kind](task)
    found = [*task.finish()]
    assert found
    if kind is Backing:
        assert [each for each in found if "lacks raw lost 1.0.0" in each] == found


def test_every_task_is_tried() -> None:
    assert {*SPOILED, Collecting} == {*TASKS}


def test_a_version_whose_publish_had_no_answer_may_count_for_the_rules() -> None:
    kept = [Kept(str(number), "", "") for number in range(5)]
    line = Line("npm", [*kept[:3], None, *kept[3:]])
    assert line.kept == kept[3:]  # and of the third one it is not known
    assert line.old == kept[:2]
    line.pinned.append(kept[0])
    assert (line.kept, line.old) == ([*kept[3:], kept[0]], [kept[1]])
    line.publishing = True
    assert line.kept == [*kept[3:], kept[0]]
    line.versions.append(None)
    assert line.kept == [kept[4], kept[0]]
