"""Uploads in the ways of several tools."""

import hashlib

import pytest

from tests.support.conda_packages import make_conda, make_tar_bz2

pytestmark = pytest.mark.server


def records(client, subdir="noarch"):
    document = client.get(f"/{subdir}/repodata.json").json
    return {**document["packages"], **document["packages.conda"]}


def test_an_uploaded_package_is_in_the_repodata_at_once(ch, push):
    data = make_conda("atonce", "1.0")
    assert push("atonce").status == 201
    record = records(ch)["atonce-1.0-py_0.conda"]
    assert (record["name"], record["size"], record["sha256"], record["md5"]) == (
        "atonce",
        len(data),
        hashlib.sha256(data).hexdigest(),
        hashlib.md5(data).hexdigest(),
    )
    assert ch.get("/noarch/atonce-1.0-py_0.conda").body == data


@pytest.mark.parametrize("prefix", ["", "/any-channel"])
def test_a_tar_bz2_is_put_with_and_without_the_name_of_a_channel(ch, prefix):
    name = f"plain{len(prefix)}"
    reply = ch.put(f"{prefix}/linux-64/{name}-1.0-0.tar.bz2", make_tar_bz2(name, "1.0", "0", subdir="linux-64"))
    assert reply.status == 201
    assert f"{name}-1.0-0.tar.bz2" in ch.get("/linux-64/repodata.json").json["packages"]


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize("path", ["", "/", "/{}", "/noarch", "/x/y/noarch/{}", "/api/channels/x/upload", "/upload/{}"])
def test_uploads_to_other_addresses_are_told_the_right_one(ch, method, path):
    reply = ch.ask(method, path.format("astray-1.0-py_0.conda"), make_conda("astray"))
    assert (reply.status, reply.json["detail"].partition("; ")[2]) == (
        405,
        f"packages are uploaded by PUT to {ch.url}/<subdir>/<file>",
    )


def test_a_folder_that_the_package_is_not_for_is_refused(ch):
    reply = ch.put("/linux-64/strayed-1.0-py_0.conda", make_conda("strayed"))
    assert reply.status == 400
    assert "noarch" in reply.json["detail"]


@pytest.mark.parametrize("path", ["/noarch/many-1.0-py_0.conda", "/api/channels/x/upload/many-1.0-py_0.conda"])
def test_the_options_of_an_upload_are_few(ch, path):
    reply = ch.ask("PUT" if path.startswith("/noarch") else "POST", f"{path}?{'a=1&' * 17}", make_conda("many"))
    assert (reply.status, reply.json["detail"]) == (400, "there are more than 16 fields")
