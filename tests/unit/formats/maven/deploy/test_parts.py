"""Files of a deployment are published in parts to which the same push rules apply."""

from pkgrepo.formats.maven.deploy.publishing import one_of_each, split_parts
from pkgrepo.formats.maven.paths import parse_text
from pkgrepo.model import BlobInfo
from pkgrepo.model.deployments import StagedFile

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
