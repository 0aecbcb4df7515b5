"""Documents of clients and upstreams: JSON, XML, YAML, HTML, Marshal, lines of indexes, manifests, attestations."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from pkgrepo.composition.core import make_formats
from pkgrepo.config import Config
from pkgrepo.formats.cargo.changes import read_description
from pkgrepo.formats.container.documents import parse_manifest
from pkgrepo.formats.container.evidence import begins_document
from pkgrepo.formats.container.inside import find_configuration, read_configuration
from pkgrepo.formats.container.proxied.labels import parse_labels
from pkgrepo.formats.container.trust.signatures import find_signature_layers
from pkgrepo.formats.maven.metadata.reading import read_metadata
from pkgrepo.formats.npm.audit.matching import quick_response, read_bulk, read_tree, versions_in
from pkgrepo.formats.npm.audit.requests import read_bulk_response
from pkgrepo.formats.npm.change.written_document import read_written
from pkgrepo.formats.npm.publish.sent_document import SentDocument
from pkgrepo.formats.npm.search.merged_requests import read_results
from pkgrepo.formats.python.upload.provenance import parse_attestations
from pkgrepo.formats.rubygems import legacy, marshal
from pkgrepo.formats.rubygems.proxied.legacy_index import read_gemspec
from pkgrepo.formats.rubygems.push.gemspec_yaml import spec_of_fields
from pkgrepo.gateway.imported.listings import parse_listing
from pkgrepo.ldap.messages import Unusable, next_size
from pkgrepo.ldap.messages import read as read_ldap
from pkgrepo.management.packages.statements import read_statement
from pkgrepo.oidc.identity_tokens import read_keys
from pkgrepo.proxy.parts.jobs import Job, NormalisingFailed, normalise
from pkgrepo.proxy.parts.values import Context
from pkgrepo.repositories.advisories.records import read_record
from pkgrepo.s3.documents import DocumentBroken, read_error_code, read_objects, read_parts, read_upload_id, read_uploads
from pkgrepo.sigstore.bundles import read_attestation, read_bundle
from pkgrepo.sigstore.roots import read_trusted_root
from pkgrepo.untrusted.strict_json import decode_json
from pkgrepo.untrusted.toml import read_toml
from pkgrepo.untrusted.yaml_text import read_yaml
from tests.lab.fuzz.target import REFUSALS, Target

from .in_archives import XML_WORDS, YAML_WORDS

OCI_IMAGE: Final = "application/vnd.oci.image.manifest.v1+json"
SIMPLE_JSON: Final = "application/vnd.pypi.simple.v1+json"
URL: Final = "https://up.example/x/"
FOLDER: Final = f"{URL}noarch/repodata.json"
EXPORTS: Final = f"{URL}noarch/run_exports.json"
SHA: Final = "a" * 64
NOW_MS: Final = 1_800_000_000_000
# The dotted name of a normaliser, and what it is asked for
NORMALISERS: Final[Mapping[str, tuple[str, Context]]] = {
    "npm": ("npm.proxied.normaliser:normalise", Context("@s/x", URL)),
    "npm-keys": ("npm.proxied.normaliser:keep_keys", Context("keys", URL)),
    "npm-attestations": ("npm.proxied.normaliser:keep_attestations", Context("a", URL)),
    "python-json": ("python.proxied.normaliser:normalise", Context("demo", URL, SIMPLE_JSON)),
    "python-html": ("python.proxied.normaliser:normalise", Context("demo", URL, "text/html")),
    "python-list-json": ("python.proxied.normaliser:normalise_list", Context("", URL, SIMPLE_JSON)),
    "python-list-html": ("python.proxied.normaliser:normalise_list", Context("", URL, "text/html")),
    "conda": ("conda.proxied.normaliser:normalise_repodata", Context("noarch", URL, "", FOLDER)),
    "conda-exports": ("conda.proxied.normaliser:normalise_exports", Context("noarch", URL, "", EXPORTS)),
    "conda-channel": ("conda.proxied.normaliser:normalise_channeldata", Context("", URL)),
    "maven": ("maven.proxied.normaliser:normalise", Context("g:a", URL)),
    "rubygems-info": ("rubygems.proxied.normaliser:normalise_info", Context("alpha", URL)),
    "rubygems-versions": ("rubygems.proxied.normaliser:keep_versions", Context("", URL)),
    "rubygems-tail": ("rubygems.proxied.normaliser:keep_tail", Context("", URL)),
    "rubygems-gzip": ("rubygems.proxied.normaliser:keep_gzip", Context("", URL)),
    "rubygems-attestations": ("rubygems.provenance:keep_attestations", Context("a", URL)),
    "cargo-config": ("cargo.proxied:read_config", Context("", URL)),
    "cargo": ("cargo.proxied:normalise_index", Context("demo", URL, service={"dl": f"{URL}d"})),
    "go-list": ("go.normaliser:normalise_list", Context("example.com/a", URL)),
    "go-info": ("go.normaliser:normalise_info", Context("example.com/a@latest", URL)),
    "helm": ("helm.entries:normalise_index", Context("index", URL)),
    "raw": ("raw.proxied:normalise", Context("a", URL, "text/html")),
}


def _normalise(data: bytes, name: str, context: Context) -> None:
    try:
        normalise(data, Job(f"pkgrepo.formats.{name}", context, NOW_MS), None, io.BytesIO())
    except NormalisingFailed as error:
        raise AssertionError(error.reason) from None  # what is not known to lie in the document


def _manifest(data: bytes) -> None:
    find_signature_layers(data)
    parse_labels(data)
    for media_type in ("", OCI_IMAGE):
        for others in (False, True):
            try:
                parse_manifest(data, media_type, other_types=others).to_record(f"sha256:{SHA}", SHA, len(data))
            except REFUSALS:
                continue


def _configuration(data: bytes) -> None:
    find_configuration(data)
    read_configuration(data)


def _marshal(data: bytes) -> None:
    for read in (
        marshal.read_value,
        lambda each: list(marshal.read_array(each)),
        lambda each: list(legacy.read_rows(each)),
    ):
        try:
            read(data)
        except REFUSALS:
            continue


def _gemspec(data: bytes) -> None:
    spec_of_fields(read_gemspec(data))


def _written(data: bytes) -> None:
    read_written(SentDocument(data, {}, lambda at: at))


def _tree(data: bytes) -> None:
    tree = read_tree(data)
    versions_in(tree)
    quick_response(tree, {})


def _ldap(data: bytes) -> None:
    size = next_size(data)
    if size is not None:
        read_ldap(data[:size])


def _s3(data: bytes) -> None:
    read_error_code(data)
    for read in (read_objects, read_uploads, read_parts, read_upload_id):
        try:
            read(data)
        except DocumentBroken:
            continue


def _evidence(data: bytes) -> None:
    begins_document(data[:512])
    read_statement(data)


def _bundles(data: bytes) -> None:
    for read in (
        read_bundle,
        read_attestation,
        read_trusted_root,
        lambda each: parse_attestations(each.decode("utf-8", "replace")),
    ):
        try:
            read(data)
        except REFUSALS:
            continue


def _own() -> Iterator[Target]:
    """Documents of clients."""
    yield Target("manifest", _manifest, (b'"subject":', b'"annotations":', b'"config":', b'"layers":'))
    yield Target("image-configuration", _configuration)
    yield Target("crate-description", read_description)
    yield Target("npm-written", _written)
    yield Target("npm-audit-bulk", read_bulk)
    yield Target("npm-audit-tree", _tree)
    yield Target("maven-metadata", read_metadata, XML_WORDS)
    words = (b"\x04\x08", b'I"', b":\x06", b";\x00", b"@\x06", b"[\x07", b"{\x06", b"u:", b"U:", b"o:")
    yield Target("marshal", _marshal, words)
    yield Target("gemspec-marshal", _gemspec, words)
    yield Target("statement", _evidence)
    yield Target("sigstore", _bundles)


def _upstream() -> Iterator[Target]:
    """Documents of upstreams, and of other servers that this one asks."""
    for name, (normaliser, context) in NORMALISERS.items():
        words = XML_WORDS if name in ("maven", "python-html", "raw") else YAML_WORDS if name == "helm" else ()
        yield Target(f"upstream-{name}", partial(_normalise, name=normaliser, context=context), words)
    yield Target("npm-search-results", read_results)
    yield Target("npm-audit-results", partial(read_bulk_response, asked=("a",)))
    ecosystems = {each.ecosystem.name: each.ecosystem for each in make_formats(Config()).values() if each.ecosystem}
    yield Target("osv-record", partial(read_record, ecosystems=ecosystems))
    yield Target("listing", partial(parse_listing, url=URL), XML_WORDS)
    yield Target("s3-documents", _s3, XML_WORDS)
    yield Target("jwks", read_keys)
    yield Target("ldap", _ldap, refuses=(*REFUSALS, Unusable))


def _texts() -> Iterator[Target]:
    """The readers below all of these."""
    yield Target("json", decode_json)
    yield Target("yaml", partial(_decoded, read=read_yaml), YAML_WORDS)
    yield Target("toml", partial(_decoded, read=read_toml), (b"inf", b"0x1_0", b"[[f]]", b'"""'))


def _decoded(data: bytes, read: Callable[[str], object]) -> None:
    read(data.decode("utf-8", "surrogateescape"))


def targets() -> Iterator[Target]:
    """All of them."""
    yield from _own()
    yield from _upstream()
    yield from _texts()
