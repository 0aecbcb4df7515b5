"""The parts of a deployment, and what stands at its paths: files that may not be replaced, and folders."""

import pytest

from pkgrepo.formats.maven.configuration import PushRules
from pkgrepo.formats.maven.deploy.parts import one_of_each, split_parts
from pkgrepo.formats.maven.deploy.publishing import find_problems
from pkgrepo.formats.maven.paths import parse_text
from pkgrepo.formats.maven.push_rules import PushPermit
from pkgrepo.http.responses import Refusal
from pkgrepo.model import BlobInfo, NewFile
from pkgrepo.model.deployments import StagedFile
from pkgrepo.model.repositories import make_placeholder
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.packages import files
from tests.support.admission import admitted
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, make_blob

BLOB = BlobInfo("0" * 64, 1, "x", {})


def staged(*paths, **attrs):
    return [StagedFile(path, BLOB, attrs.get(path.rpartition(".")[2], {})) for path in paths]


def paths_of(part):
    return [file.path for file, _ in part.files]


SNAPSHOT = "g/a/1-SNAPSHOT/a-1"
PATHS = [
    "g/b/1/b-1.jar",
    f"{SNAPSHOT}-SNAPSHOT.jar",
    f"{SNAPSHOT}-20240102.030405-1.jar",
    "g/a/1/a-1.pom",
    "g/a/1/a-1.jar",
]


def test_versions_and_snapshots_without_timestamp_are_parts_of_their_own():
    parts = split_parts(staged(*PATHS))
    assert [paths_of(part) for part in parts] == [
        ["g/a/1/a-1.pom", "g/a/1/a-1.jar"],
        [f"{SNAPSHOT}-20240102.030405-1.jar"],
        [f"{SNAPSHOT}-SNAPSHOT.jar"],
        ["g/b/1/b-1.jar"],
    ]
    assert [part.first.path for part in parts] == [paths_of(part)[0] for part in parts]


def test_one_file_of_each_part_is_asked_for():
    found = one_of_each([parse_text(path) for path in PATHS])
    assert [(each.coordinates.directory, each.literal_snapshot) for each in found] == [
        ("g/a/1", False),
        ("g/a/1-SNAPSHOT", False),
        ("g/a/1-SNAPSHOT", True),
        ("g/b/1", False),
    ]


def test_the_newest_pom_describes_a_version():
    builds = [f"{SNAPSHOT}-20240102.030405-{number}.pom" for number in (2, 10, 9)]
    files = [StagedFile(path, BLOB, {"meta": {"name": path}}) for path in builds]
    [part] = split_parts(files)
    assert part.meta == {"name": builds[1]}
    [without] = split_parts(staged("g/a/1/a-1.jar"))
    assert without.meta is None


def test_a_part_may_be_a_plugin():
    [part] = split_parts(staged("g/a/1/a-1.jar", "g/a/1/a-1.pom", jar={"plugin": {"prefix": "p", "name": "n"}}))
    assert part.plugin == {"prefix": "p", "name": "n"}
    [other] = split_parts(staged("g/a/1/a-1.pom"))
    assert other.plugin is None


ADMITTED = admitted(make_placeholder(1, "main", "java"))
WHY_NOT = Refusal(409, "it already exists", "file_exists")
JAR = "com/example/app/1.0/app-1.0.jar"


@pytest.fixture
def catalog():
    catalog = MemoryCatalog()
    catalog.repository = catalog.do(add_repository)
    return catalog


def put(catalog, path, content=b"old"):
    def command(tx):
        blob = blobs.claim_blob(tx, catalog.repository.storage_id, make_blob(content), NOW)
        files.add_file(tx, catalog.repository.id, catalog.repository.storage_id, NewFile(path, blob), None, None, NOW)

    catalog.do(command)


def problems(catalog, *paths, overwrite=False):
    parts = split_parts([StagedFile(path, make_blob(b"new")) for path in paths])
    permit = PushPermit(rules=PushRules(), overwrite=overwrite, why_not=WHY_NOT, reuse=True, admitted=ADMITTED)
    return dict(catalog.peek(find_problems, catalog.repository.id, parts, [permit] * len(parts)).texts())


def test_free_paths_have_no_problem(catalog):
    put(catalog, "com/example/app/0.9/app-0.9.jar")
    put(catalog, "com/example/app/maven-metadata.xml")
    assert problems(catalog, JAR, "com/example/other/1.0/other-1.0.pom") == {}


@pytest.mark.parametrize("overwrite", [False, True])
def test_another_file_is_a_problem_where_it_may_not_be_replaced(catalog, overwrite):
    put(catalog, JAR)
    assert problems(catalog, JAR, overwrite=overwrite) == ({} if overwrite else {JAR: ["it already exists"]})


def test_the_same_file_is_no_problem(catalog):
    put(catalog, JAR, b"new")
    assert problems(catalog, JAR) == {}


@pytest.mark.parametrize("file", ["com", "com/example/app", "com/example/app/1.0"])
def test_a_file_where_a_folder_is_needed_is_a_problem(catalog, file):
    put(catalog, file)
    expected = {"com/example/app/1.0": [f"{file} is a file, so that nothing can be below it"]}
    assert problems(catalog, JAR, overwrite=True) == expected


@pytest.mark.parametrize("others", [0, 150])
def test_a_folder_at_the_path_of_a_file_is_a_problem(catalog, others):
    put(catalog, f"{JAR}/below")
    for number in range(others):
        put(catalog, f"com/example/app/1.0/folder-{number}/x")
    assert problems(catalog, JAR, overwrite=True) == {JAR: ["there is a folder at this path"]}


def test_a_file_and_a_folder_of_one_deployment_may_not_have_the_same_path(catalog):
    jar = "com/example/app/1/app-1.jar"
    found = problems(catalog, jar, f"{jar}/2/app-1.jar-2.pom", overwrite=True)
    assert found == {
        jar: ["there is a folder at this path"],
        f"{jar}/2": [f"{jar} is a file, so that nothing can be below it"],
    }
