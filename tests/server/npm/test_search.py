"""Search requests, and the old list of all packages."""

from urllib.parse import quote

import pytest

pytestmark = pytest.mark.server


@pytest.fixture
def shop(repository, publish):
    """A repository with some packages."""
    where = repository("search")
    if where.get("/apple-pie").status == 404:
        publish("apple-pie", where=where, description="Sweet thing", keywords=["food", "fruit"], license="MIT")
        publish("apple-pie", "2.0.0-rc.1", where=where, tag="next")
        publish("pie", where=where, author={"name": "Ann Other"}, repository="git+https://example.org/pie.git")
        publish("@food/stew", where=where, description='Hot "thing"', keywords="food, hot")
        publish("@food/apple", where=where, description="Äpfel")
    return where


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pie", ["pie", "apple-pie"]),
        ("apple", ["@food/apple", "apple-pie"]),
        ("PIE apple", ["apple-pie"]),
        ("thing", ["@food/stew", "apple-pie"]),
        ('"thing"', ["@food/stew"]),
        ("äpfel", ["@food/apple"]),
        ("@food", ["@food/apple", "@food/stew"]),
        ("scope:food stew", ["@food/stew"]),
        ("keywords:hot,fruit", ["@food/stew", "apple-pie"]),
        ("author:ann", ["pie"]),
        ("maintainer:admin stew", ["@food/stew"]),
        ("nothing-of-that", []),
        ("", ["@food/apple", "@food/stew", "apple-pie", "pie"]),
        ("%_", []),
    ],
)
def test_search_finds_matches(shop, text, expected):
    reply = shop.get(f"/-/v1/search?text={quote(text)}&size=20&from=0")
    assert reply.status == 200
    assert sorted(each["package"]["name"] for each in reply.json["objects"]) == sorted(expected)
    assert reply.json["total"] == len(expected)
    if expected and text in ("pie", "apple"):
        assert reply.json["objects"][0]["package"]["name"] == expected[0]


def test_a_result_has_the_fields_that_clients_print(shop):
    found = {each["package"]["name"]: each for each in shop.get("/-/v1/search?text=pie").json["objects"]}
    package = found["apple-pie"]["package"]
    assert (package["version"], package["scope"], package["license"]) == ("1.0.0", "unscoped", "MIT")
    assert package["publisher"]["username"] == "admin"
    assert package["date"].endswith("Z")
    assert found["pie"]["package"]["links"]["repository"] == "https://example.org/pie"
    assert found["pie"]["score"]["detail"].keys() == {"quality", "popularity", "maintenance"}


def test_results_come_in_pages_and_follow_changes(shop, publish):
    first = shop.get("/-/v1/search?text=&size=2").json
    second = shop.get("/-/v1/search?text=&size=2&from=2").json
    names = [each["package"]["name"] for each in first["objects"] + second["objects"]]
    assert (len(names), len(set(names)), first["total"]) == (4, 4, 4)
    publish("brand-new", where=shop)
    assert shop.get("/-/v1/search?text=brand-new").json["total"] == 1
    rev = shop.get("/brand-new?write=true").json["_rev"]
    shop.ask("DELETE", f"/brand-new/-rev/{rev}")
    assert shop.get("/-/v1/search?text=brand-new").json["total"] == 0


def test_the_old_list_has_all_packages(shop):
    for path in ("/-/all", "/-/all/since?stale=update_after&startkey=1"):
        listed = shop.get(path).json
        assert {"apple-pie", "pie", "@food/stew", "_updated"} <= listed.keys()


def test_the_old_list_follows_changes(shop, publish):
    shop.get("/-/all")
    publish("late-comer", where=shop)
    assert shop.get("/-/all").json["late-comer"]["versions"] == {"1.0.0": "latest"}
    rev = shop.get("/late-comer?write=true").json["_rev"]
    shop.ask("DELETE", f"/late-comer/-rev/{rev}")
    assert "late-comer" not in shop.get("/-/all").json


def test_a_caller_sees_only_readable_packages(repository, publish, as_token):
    private, some = repository("private"), as_token("scoped in private", "private")
    names = {"@team/to-be-seen", "not-to-be-seen"}
    for name in names:
        publish(name, where=private)
    for where, expected in ((private, names), (some, {"@team/to-be-seen"})):
        found = where.get("/-/v1/search?text=be-seen").json
        assert {each["package"]["name"] for each in found["objects"]} == expected
        assert found["total"] == len(expected)
        assert where.get("/-/all").json.keys() & names == expected
    assert private.as_user().get("/-/all").status == 401
