"""Uploads in the ways of several tools, and what clients read of them."""

import base64
import hashlib
import json

import pytest
import yaml

from tests.support.charts import make_chart, make_provenance, pack
from tests.support.http_client import BOUNDARY, form_body

pytestmark = pytest.mark.server

MIXED = make_chart("mixed", "1.0.0")
RAW, FORM = "application/gzip", f"multipart/form-data; boundary={BOUNDARY}"


def post(client, data, query="", path="/api/charts"):
    return client.ask("POST", f"{path}{query}", data, {"Content-Type": RAW})


def post_form(client, *parts):
    return client.ask("POST", "/api/charts", form_body(list(parts)), {"Content-Type": FORM})


def entries(client, name):
    """The entries of a chart in the index, as YAML readers find them."""
    reply = client.get("/index.yaml")
    assert reply.status == 200
    return yaml.safe_load(reply.body)["entries"].get(name, [])


def test_a_chart_is_in_the_index_at_once(charts):
    data = make_chart("atonce", "0.2.0+b1", appVersion="1.10", odd=1)
    assert (post(charts, data).status, post(charts, data).status) == (201, 201)
    [entry] = entries(charts, "atonce")
    assert entry.pop("created")
    assert entry == {
        "apiVersion": "v2",
        "name": "atonce",
        "version": "0.2.0+b1",
        "appVersion": "1.10",
        "description": "A chart",
        "urls": ["charts/atonce-0.2.0+b1.tgz"],
        "digest": hashlib.sha256(data).hexdigest(),
    }
    for path in ("/charts/atonce-0.2.0+b1.tgz", "/charts/atonce-0.2.0%2Bb1.tgz", "/atonce-0.2.0+b1.tgz"):
        reply = charts.get(path)
        assert (reply.status, reply.body, reply.headers["content-type"]) == (200, data, "application/gzip")
    assert charts.get("/charts/atonce-0.2.0+b1.tgz.prov").status == 404


def test_the_index_is_json_with_the_path_of_the_api_for_the_client(charts, format_server):
    reply = charts.get("/index.yaml")
    document = json.loads(reply.body)
    assert (document["apiVersion"], document["serverInfo"]) == ("v1", {"contextPath": "/repositories/main/charts"})
    assert charts.get("/index.yaml", **{"If-None-Match": reply.headers["etag"]}).status == 304
    assert yaml.safe_load(charts.get("/api/charts").body) == document["entries"]


def test_the_newest_version_is_the_first(charts):
    for version in ("1.2.0", "1.10.0", "2.0.0-rc.1", "v1.11.0"):
        assert post(charts, make_chart("order", version)).status == 201
    wanted = ["2.0.0-rc.1", "v1.11.0", "1.10.0", "1.2.0"]
    assert [each["version"] for each in entries(charts, "order")] == wanted
    assert [each["version"] for each in charts.get("/api/charts/order").json] == wanted
    assert charts.get("/api/charts/order/1.10.0").json["version"] == "1.10.0"
    assert charts.get("/api/charts/order/1.10").status == 404
    assert charts.get("/api/charts/absent").status == 404


def test_a_file_is_put_at_its_name_and_at_no_other(charts):
    data = make_chart("putty", "1.0.0")
    assert charts.put("/charts/putty-1.0.0.tgz", data).status == 201
    assert charts.put("/putty-1.0.0.tgz", data).status == 201
    refused = charts.put("/charts/putty-1.0.1.tgz", data)
    assert (refused.status, "putty-1.0.0.tgz" in refused.json["error"]) == (400, True)
    assert charts.put("/other/putty-1.0.0.tgz", data).status == 404


def test_other_content_is_refused_unless_the_policy_and_the_client_want_it(charts, repository, as_token):
    one, two = (make_chart("demo", "1.0.0", description=text) for text in ("one", "two"))
    lax = repository("lax")
    for client in (charts, lax):
        assert post(client, one).status == 201
        assert post(client, two).status == 409
    assert post(charts, two, "?force").status == 409
    assert post(as_token("no-overwrite", "lax"), two, "?force").status == 409
    assert post(lax, two, "?force").status == 201
    assert [each["description"] for each in entries(lax, "demo")] == ["two"]


def test_provenance_is_kept_beside_its_archive(charts, repository):
    data = make_chart("signed", "1.0.0")
    provenance = make_provenance("signed-1.0.0.tgz", hashlib.sha256(data).hexdigest())
    early = post(charts, provenance, path="/api/prov")
    assert (early.status, "send the archive first" in early.json["error"]) == (400, True)
    assert post_form(charts, ("prov", "p", provenance), ("chart", "c", data)).status == 201
    assert charts.get("/charts/signed-1.0.0.tgz.prov").body == provenance
    assert post(charts, provenance, path="/api/prov").status == 201
    lax = repository("lax")
    assert post(lax, data).status == 201
    assert lax.put("/charts/signed-1.0.0.tgz.prov", provenance).status == 201
    assert post(lax, make_chart("signed", "1.0.0", description="other"), "?force").status == 201
    assert lax.get("/charts/signed-1.0.0.tgz.prov").status == 404  # it was of the other archive


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([("prov", "p", b"-----BEGIN PGP SIGNED MESSAGE-----\n")], "signed text with the digest"),
        ([("chart", "c", MIXED), ("prov", "p", make_provenance("mixed-1.0.0.tgz", "0" * 64))], "another archive"),
        ([("file", "c", MIXED)], "no part 'chart' or 'prov'"),
        ([("chart", "c", b"text")], "gzip"),
    ],
)  # fmt: skip
def test_forms_with_something_else_are_refused_and_nothing_is_stored(charts, parts, reason):
    refused = post_form(charts, *parts)
    assert (refused.status, reason in refused.json["error"]) == (400, True), refused.json
    assert charts.get("/api/charts/mixed").status == 404


def test_a_version_is_deleted_with_its_provenance(charts):
    data = make_chart("gone", "1.0.0")
    provenance = make_provenance("gone-1.0.0.tgz", hashlib.sha256(data).hexdigest())
    assert post_form(charts, ("chart", "c", data), ("prov", "p", provenance)).status == 201
    deleted = charts.ask("DELETE", "/api/charts/gone/1.0.0", b"")
    assert (deleted.status, deleted.json) == (200, {"deleted": True})
    assert charts.ask("DELETE", "/api/charts/gone/1.0.0", b"").status == 404
    assert entries(charts, "gone") == []
    for path in ("/charts/gone-1.0.0.tgz", "/charts/gone-1.0.0.tgz.prov"):
        assert charts.get(path).status == 404


def test_a_token_for_some_charts_publishes_no_other_ones(as_token, charts):
    team = as_token("team")
    assert post(team, make_chart("team-app", "1.0.0")).status == 201
    assert post(team, make_chart("other", "1.0.0")).status == 403
    assert post(as_token("reader"), make_chart("team-app", "2.0.0")).status == 403
    assert charts.as_user().ask("DELETE", "/api/charts/team-app/1.0.0", b"").status == 401


def test_a_private_repository_wants_credentials(repository):
    private = repository("private")
    assert post(private, make_chart("secret", "1.0.0")).status == 201
    for path in ("/index.yaml", "/charts/secret-1.0.0.tgz", "/api/charts"):
        refused = private.as_user().get(path)
        assert (refused.status, refused.headers["www-authenticate"].split()[0]) == (401, "Basic")
        assert private.get(path).status == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("POST", "/x", 404),
        ("POST", "/index.yaml", 405),
        ("PUT", "/api/charts", 405),
        ("GET", "/api/x", 404),
    ],
)
def test_other_addresses_say_where_charts_go(charts, method, path, status):
    refused = charts.ask(method, path, b"x")
    assert refused.status == status
    if method != "GET":
        assert refused.json["error"].endswith(f"charts are uploaded by POST to {charts.url}/api/charts")


def test_values_and_templates_of_a_chart_are_read_out_of_its_archive(charts):
    files = {
        "values.yaml": "a: 1\n",
        "templates/b.yaml": "kind: B\n",
        "templates/a.yaml": "kind: A\n",
        "README.md": "r",
    }
    assert post(charts, make_chart("inside", "1.0.0", files=files)).status == 201
    values = charts.get("/api/charts/inside/1.0.0/values")
    assert (values.status, values.body, values.headers["content-type"]) == (200, b"a: 1\n", "application/yaml")
    found = charts.get("/api/charts/inside/1.0.0/templates").json
    assert [(each["name"], base64.b64decode(each["data"])) for each in found] == [
        ("templates/a.yaml", b"kind: A\n"),
        ("templates/b.yaml", b"kind: B\n"),
        ("templates/service.yaml", b"kind: Service\n"),
    ]
    manifest = b"apiVersion: v2\nname: empty\nversion: 1.0.0\n"
    assert post(charts, pack({"empty/Chart.yaml": manifest})).status == 201
    assert charts.get("/api/charts/empty/1.0.0/templates").json == []
    for path in ("empty/1.0.0/values", "inside/9.0.0/values", "absent/1.0.0/templates"):
        reply = charts.get(f"/api/charts/{path}")
        assert (reply.status, "error" in reply.json) == (404, True), path
    assert charts.get("/api/charts/a%20b/1.0.0/values").status == 400
    assert (charts.head("/api/charts/inside/1.0.0").status, charts.head("/api/charts/inside/1.0.1").status) == (
        200,
        404,
    )


def test_a_part_of_all_charts_is_read(charts):
    for name in ("page-a", "page-b", "page-c"):
        assert post(charts, make_chart(name, "1.0.0")).status == 201
    every = charts.get("/api/charts").json
    names = list(every)
    assert names == sorted(names)
    for query, some in (
        ("offset=1&limit=2", names[1:3]),
        ("limit=1", names[:1]),
        ("offset=2", names[2:]),
        ("offset=999", []),
        ("limit=none", names),
    ):
        assert charts.get(f"/api/charts?{query}").json == {each: every[each] for each in some}, query
