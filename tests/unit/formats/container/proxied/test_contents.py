"""Rules over what images have inside: hosted, of an upstream, through virtual repositories, by tag, digest and blob."""

from __future__ import annotations

import gzip
import json
import tarfile
from typing import Any

import pytest
from attrs import evolve

from pkgrepo.concurrency.together import together
from pkgrepo.formats.container.proxied import contents
from tests.support.images import (
    OCI_CONFIG,
    OCI_LAYER,
    Image,
    Registry,
    describe,
    digest_of,
    make_artifact,
    make_image,
    make_index,
    make_layer_tar,
    sentence,
)
from tests.support.upstreams.messages import Answer

from .conftest import Mirrors
from .test_blocks import statuses

USER = {"User": "1000"}
SU = gzip.compress(make_layer_tar([("usr/bin/su", 0o4755, tarfile.REGTYPE, "", b"su")]), mtime=0)
NO_SU = gzip.compress(make_layer_tar([("usr/bin/.wh.su", 0)]), mtime=0)
PLAIN = make_image("plain", settings=USER)
ROOT = make_image("plain")
BAD = make_image("bad", settings=USER, more_layers=[SU])
MENDED = make_image("bad", settings=USER, more_layers=[SU, NO_SU])
ARM = make_image("arm", architecture="arm64", settings=USER)
INDEX = make_index([ARM, BAD])
LARGE = bytes(range(256)) * 4096
RULE = {"name": "inside", "reason": "not here", "match": {"contents": ["setuid"]}}


async def fill(mirrors: Mirrors, kind: str, **images: Image) -> str:
    """Have ``app`` with tags; returns the name of the repository to read from."""
    children = (ARM, BAD)
    if kind == "own":
        await mirrors.stack.add_repository("own", format="docker", config={"type": "Hosted"})
        registry = Registry(mirrors.stack, "main/own/app")
        for each in children if "both" in images else ():
            await registry.push(each)
        for tag, image in images.items():
            await registry.push(image, tag)
        return "own"
    await mirrors.add(cache_ttl=0)
    for tag, image in images.items():
        mirrors.up.push("app", image, tag, children=children if image is INDEX else ())
    if kind == "all":
        await mirrors.add("all", members=["main/mirror"])
    return kind


async def set_rules(mirrors: Mirrors, *rules: Any) -> None:
    await mirrors.stack.ok("PUT", "/policy/rules", {"rules": list(rules)})


def blobs_of(image: Image) -> list[str]:
    return [f"blobs/{digest_of(each)}" for each in image.blobs]


@pytest.mark.parametrize("kind", ["own", "mirror", "all"])
async def test_an_image_is_refused_by_what_is_in_its_layers_on_every_road(mirrors: Mirrors, kind: str) -> None:
    name = await fill(mirrors, kind, plain=PLAIN, bad=BAD, mended=MENDED)
    await set_rules(mirrors, RULE)
    refused = ["manifests/bad", f"manifests/{BAD.digest}", f"blobs/{digest_of(BAD.blobs[0])}"]
    assert await statuses(mirrors, name, *refused) == [403] * 3
    served = ["manifests/plain", f"manifests/{PLAIN.digest}", *blobs_of(PLAIN), "manifests/mended"]
    assert await statuses(mirrors, name, *served) == [200] * len(served)
    said = sentence(await mirrors.get("app/manifests/bad", name))
    assert "not here" in said
    assert "setuid usr/bin/su inside" in said
    assert "'inside'" in (await mirrors.explain("app", "bad", name))["sentence"]
    tags = (await mirrors.get("app/tags/list", name)).json["tags"]
    assert tags == ["mended", "plain"]
    await set_rules(mirrors)
    assert await statuses(mirrors, name, *refused) == [200] * 3


@pytest.mark.parametrize("kind", ["own", "mirror", "all"])
async def test_a_blob_is_refused_before_its_manifest_was_asked_for_again(mirrors: Mirrors, kind: str) -> None:
    name = await fill(mirrors, kind, bad=BAD)
    assert await statuses(mirrors, name, "manifests/bad") == [200]
    await set_rules(mirrors, {**RULE, "missing": "allow"})
    assert await statuses(mirrors, name, *blobs_of(BAD)) == [403] * 3


async def test_a_blob_that_no_manifest_has_is_refused_unless_the_rule_lets_it_pass(mirrors: Mirrors) -> None:
    name = await fill(mirrors, "mirror", plain=PLAIN)
    await set_rules(mirrors, RULE)
    assert await statuses(mirrors, name, *blobs_of(PLAIN)) == [403, 403]
    assert await statuses(mirrors, name, "manifests/plain", *blobs_of(PLAIN)) == [200] * 3


@pytest.mark.parametrize("kind", ["own", "mirror"])
async def test_the_user_is_that_of_the_configuration(mirrors: Mirrors, kind: str) -> None:
    name = await fill(mirrors, kind, plain=PLAIN, root=ROOT)
    await set_rules(mirrors, {"name": "no root", "match": {"contents": ["root_user"]}})
    assert await statuses(mirrors, name, "manifests/plain", "manifests/root") == [200, 403]
    assert "root_user inside" in sentence(await mirrors.get("app/manifests/root", name))


async def test_what_root_runs_is_said(mirrors: Mirrors) -> None:
    settings = {"ENTRYPOINT": ["/bin/run"], "Cmd": ["-v\n", "x"]}
    name = await fill(mirrors, "mirror", root=make_image("running", settings=settings))
    await set_rules(mirrors, {"name": "no root", "match": {"contents": ["root_user"]}})
    assert "(root_user running '/bin/run -v\\n x' inside)" in sentence(await mirrors.get("app/manifests/root", name))


@pytest.mark.parametrize("kind", ["own", "mirror", "all"])
async def test_a_platform_is_judged_by_itself_and_an_index_by_all_of_them(mirrors: Mirrors, kind: str) -> None:
    name = await fill(mirrors, kind, both=INDEX)
    await set_rules(mirrors, RULE)
    index = ["manifests/both", f"manifests/{INDEX.digest}"]
    assert await statuses(mirrors, name, *index) == [200, 200]
    assert [each.path for each in mirrors.up.requests() if "/blobs/" in each.path] == []
    children = [f"manifests/{ARM.digest}", f"manifests/{BAD.digest}"]
    assert await statuses(mirrors, name, *children, *index) == [200, 403, 200, 200]
    await set_rules(mirrors, {"name": "inside", "match": {"contents": ["setuid"]}}, {"name": "arm", "match": {}})
    assert await statuses(mirrors, name, *index) == [403, 403]


async def test_an_index_of_which_all_platforms_are_refused_is_refused(mirrors: Mirrors) -> None:
    other = make_image("other", architecture="arm64", settings=USER, more_layers=[SU])
    index = make_index([BAD, other])
    await mirrors.add(cache_ttl=0)
    mirrors.up.push("app", PLAIN, "latest")
    await statuses(mirrors, "mirror", "manifests/latest")
    mirrors.pass_days(1)
    mirrors.up.push("app", index, "latest", children=(BAD, other))
    await set_rules(mirrors, RULE)
    children = [f"manifests/{BAD.digest}", f"manifests/{other.digest}"]
    assert await statuses(mirrors, "mirror", "manifests/latest", *children) == [200, 403, 403]
    assert await statuses(mirrors, "mirror", f"manifests/{index.digest}") == [403]
    assert (await mirrors.get("app/manifests/latest")).body == PLAIN.manifest  # the last one that is not refused


async def test_what_is_in_common_is_read_once(mirrors: Mirrors) -> None:
    name = await fill(mirrors, "mirror", bad=BAD, mended=MENDED)
    await set_rules(mirrors, RULE)
    for _ in range(2):
        assert await statuses(mirrors, name, "manifests/bad", "manifests/mended") == [403, 200]
    asked = [each.path for each in mirrors.up.requests() if "/blobs/" in each.path]
    assert len(asked) == len(set(asked)) == len({*blobs_of(BAD), *blobs_of(MENDED)}), asked
    # and known in another repository of the server, whose upstream is asked for the manifest alone
    await mirrors.add("second")
    assert await statuses(mirrors, "second", "manifests/bad", "manifests/mended") == [403, 200]
    assert [each.path for each in mirrors.up.requests() if "/blobs/" in each.path] == asked


async def test_who_asks_at_the_same_time_waits_for_one_reading(mirrors: Mirrors) -> None:
    name = await fill(mirrors, "mirror", bad=BAD, mended=MENDED)
    await set_rules(mirrors, RULE)
    paths = ["manifests/bad", "manifests/mended", f"manifests/{BAD.digest}", *blobs_of(BAD)] * 2
    found = await together(mirrors.get(f"app/{each}", name) for each in paths)
    assert {each.status for each in found} <= {200, 403}
    assert [found[at].status for at in (0, 1, 2)] == [403, 200, 403]
    asked = [each.path for each in mirrors.up.requests() if "/blobs/" in each.path and each.method == "GET"]
    assert len(asked) == len(set(asked)), asked


@pytest.mark.parametrize(
    "layer",
    [b"no archive", gzip.compress(b"x" * 5000)[:-30], gzip.compress(make_layer_tar([("a", 0o755)])) + b"more"],
    ids=["plain", "truncated", "longer"],
)
@pytest.mark.parametrize("kind", ["own", "mirror"])
async def test_a_layer_that_cannot_be_read_is_missing(mirrors: Mirrors, kind: str, layer: bytes) -> None:
    odd = make_image("odd", settings=USER, more_layers=[layer])
    name = await fill(mirrors, kind, odd=odd)
    await set_rules(mirrors, RULE)
    refused = await mirrors.get("app/manifests/odd", name)
    assert (refused.status, "what it has inside is not known" in sentence(refused)) == (403, True)
    await set_rules(mirrors, {**RULE, "missing": "allow"})
    assert await statuses(mirrors, name, "manifests/odd") == [200]
    await set_rules(mirrors, {**RULE, "missing": "quarantine"})
    assert await statuses(mirrors, name, "manifests/odd") == [403]


async def test_an_image_with_too_many_layers_is_missing(mirrors: Mirrors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "MOST_LAYERS", 2)
    name = await fill(mirrors, "mirror", bad=BAD, mended=MENDED)
    await set_rules(mirrors, RULE)
    assert "setuid usr/bin/su inside" in sentence(await mirrors.get("app/manifests/bad", name))
    assert "what it has inside is not known" in sentence(await mirrors.get("app/manifests/mended", name))


async def test_a_layer_that_is_fetched_from_elsewhere_is_missing(mirrors: Mirrors) -> None:
    foreign = {**describe(SU, OCI_LAYER), "urls": ["https://example.com/layer"]}
    odd = make_image(settings=USER, layers=[describe(PLAIN.blobs[1], OCI_LAYER), foreign])
    name = await fill(mirrors, "mirror", odd=odd)
    await set_rules(mirrors, RULE)
    assert await statuses(mirrors, name, "manifests/odd") == [403]


async def test_an_upstream_that_fails_meanwhile_fails_the_request_and_is_asked_again(mirrors: Mirrors) -> None:
    name = await fill(mirrors, "mirror", lost=PLAIN)
    path = mirrors.up.blob_path("app", digest_of(PLAIN.blobs[1]))
    there = mirrors.up.documents[path]
    mirrors.up.serve(path, Answer(500))
    await set_rules(mirrors, {**RULE, "action": "warn"})
    assert await statuses(mirrors, name, "manifests/lost") == [200]
    await set_rules(mirrors, RULE)
    assert (await statuses(mirrors, name, "manifests/lost"))[0] >= 500
    mirrors.up.serve(path, there)
    mirrors.pass_days(1)
    assert await statuses(mirrors, name, "manifests/lost") == [200]


async def test_a_layer_that_the_storage_has_lost_leaves_it_unknown_what_is_inside(mirrors: Mirrors) -> None:
    big = make_image("big", settings=USER, more_layers=[make_layer_tar([("a", 0o755, tarfile.REGTYPE, "", LARGE)])])
    name = await fill(mirrors, "own", big=big)
    digest = digest_of(big.blobs[2]).partition(":")[2]
    (lost,) = [each for each in mirrors.stack.folder.rglob(f"{digest}*") if each.is_file() and "blobs" in each.parts]
    lost.unlink()
    await set_rules(mirrors, RULE)
    refused = await mirrors.get("app/manifests/big", name)
    assert (refused.status, "what it has inside is not known" in sentence(refused)) == (403, True)
    await set_rules(mirrors, {**RULE, "missing": "allow"})
    assert await statuses(mirrors, name, "manifests/big") == [200]


async def test_nothing_is_read_where_other_conditions_decide(mirrors: Mirrors) -> None:
    name = await fill(mirrors, "mirror", bad=BAD)
    match = {"contents": ["setuid"]}
    await set_rules(
        mirrors,
        {"name": "a", "match": {**match, "packages": ["other"]}},
        {"name": "b", "match": {**match, "versions": "9.*"}},
        {"name": "c", "match": {**match, "source": "hosted"}},
        {"name": "d", "match": match, "exempt": ["app@bad"]},
        {"name": "e", "match": {**match, "labels": {"stage": "dev"}}},
    )
    assert await statuses(mirrors, name, "manifests/bad") == [200]
    assert [each.path for each in mirrors.up.requests() if digest_of(SU) in each.path] == []


async def test_signatures_and_other_artifacts_have_nothing_inside(mirrors: Mirrors) -> None:
    about = b'{"name":"chart","version":"1.0.0"}'
    chart = make_image("chart", config=describe(about, "application/vnd.cncf.helm.config.v1+json"))
    chart = evolve(chart, blobs=(about, chart.blobs[1]))
    name = await fill(mirrors, "mirror", sbom=make_artifact(None, "application/x"), chart=chart)
    await set_rules(mirrors, {"name": "all", "match": {"contents": ["setuid", "root_user"]}})
    assert await statuses(mirrors, name, "manifests/sbom", "manifests/chart") == [200, 200]


async def test_the_words_of_other_formats_mean_nothing_for_images(mirrors: Mirrors) -> None:
    name = await fill(mirrors, "mirror", bad=BAD)
    rule = {"name": "x", "match": {"contents": ["install_script", "native_binary"]}}
    await set_rules(mirrors, rule)
    assert await statuses(mirrors, name, "manifests/bad") == [200]
    reply = await mirrors.stack.api("PUT", "/repository/main%2Fmirror/config/policy", {"rules": [rule]})
    assert (reply.status, "can never be met" in reply.body.decode()) == (422, True)


DISGUISED = make_image("disguised", settings={"Labels": {"stage": "dev"}}, more_layers=[SU])
DISGUISED = evolve(DISGUISED, manifest=DISGUISED.manifest.replace(OCI_LAYER.encode(), b"text/spdx+json"))


@pytest.mark.parametrize(
    "match", [{"contents": ["setuid"]}, {"contents": ["root_user"]}, {"labels": {"stage": "dev"}}, {"age_days": 3}]
)
@pytest.mark.parametrize("kind", ["own", "mirror", "all"])
async def test_layers_that_call_themselves_documents_are_looked_into(mirrors: Mirrors, kind: str, match: Any) -> None:
    name = await fill(mirrors, kind, disguised=DISGUISED)
    await set_rules(mirrors, {**RULE, "match": match})
    layers = [f"blobs/{digest_of(each)}" for each in DISGUISED.blobs[1:]]
    asked = ["manifests/disguised", f"manifests/{DISGUISED.digest}", *layers]
    assert await statuses(mirrors, name, *asked) == [403] * len(asked)


SBOM = b'{"spdxVersion":"SPDX-2.3"}'


def documents(*layers: bytes) -> Image:
    described = [describe(each, "text/spdx+json") for each in layers]
    made = make_artifact(None, "text/spdx+json", layers=described)
    return evolve(made, blobs=(*made.blobs, *layers))


@pytest.mark.parametrize("kind", ["own", "mirror"])
async def test_documents_of_an_upstream_pass_all_rules(mirrors: Mirrors, kind: str) -> None:
    name = await fill(mirrors, kind, sbom=documents(SBOM), many=documents(*(b"{%d}" % each for each in range(33))))
    matches: list[Any] = [{"contents": ["setuid"]}, {"labels": {"stage": "dev"}}, {"age_days": 3}]
    await set_rules(mirrors, *({**RULE, "name": f"r{each}", "match": match} for each, match in enumerate(matches)))
    assert await statuses(mirrors, name, "manifests/sbom", f"blobs/{digest_of(SBOM)}") == [200, 200]
    asked = [each.path for each in mirrors.up.requests() if digest_of(SBOM) in each.path]
    assert kind == "own" or asked.count(mirrors.up.blob_path("app", digest_of(SBOM))) <= 2


async def test_what_was_read_of_bytes_under_another_media_type_tells_nothing_of_an_image(mirrors: Mirrors) -> None:
    bare = json.loads(BAD.manifest)
    del bare["mediaType"]
    image = evolve(BAD, manifest=json.dumps(bare).encode())
    other = {"type": "Hosted", "policy": {"other_media_types": True}}
    await mirrors.stack.add_repository("other", format="docker", config=other)
    await set_rules(mirrors, RULE)
    await Registry(mirrors.stack, "main/other/app").push(evolve(image, media_type="application/vnd.other+json"), "bad")
    await statuses(mirrors, "other", "manifests/bad")
    name = await fill(mirrors, "mirror", bad=image)
    assert await statuses(mirrors, name, "manifests/bad") == [403]


@pytest.mark.parametrize("data", [b"{}", b'{"config":{"User":"1000"}}'])
async def test_of_an_image_whose_configuration_names_no_layers_it_is_not_known(mirrors: Mirrors, data: bytes) -> None:
    odd = make_image("odd", config=describe(data, OCI_CONFIG), layers=[describe(SU, OCI_LAYER)])
    name = await fill(mirrors, "mirror", odd=evolve(odd, blobs=(data, SU)))
    await set_rules(mirrors, RULE)
    refused = await mirrors.get("app/manifests/odd", name)
    assert (refused.status, "what it has inside is not known" in sentence(refused)) == (403, True)


async def test_a_layer_that_cannot_be_read_is_read_once_for_all_images(
    mirrors: Mirrors, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, real = [], contents.programs_with

    def counted(content: int | bytes, name: str, below: Any) -> tuple[str, ...]:
        read.append(name)
        return real(content, name, below)

    monkeypatch.setattr(contents, "programs_with", counted)
    one, other = (make_image("odd", architecture=each, settings=USER, more_layers=[b"none"]) for each in ("a", "b"))
    name = await fill(mirrors, "mirror", one=one, other=other)
    await set_rules(mirrors, RULE)
    for each in ("one", "other"):
        refused = await mirrors.get(f"app/manifests/{each}", name)
        assert (refused.status, "what it has inside is not known" in sentence(refused)) == (403, True)
    assert len(read) == len({*read}) == 2
