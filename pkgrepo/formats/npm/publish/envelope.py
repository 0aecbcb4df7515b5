"""
Parses the document around a published version, and checks that its parts agree.

A provenance bundle is a statement about the tarball, signed by the build service that made it. It is stored and served
unchanged, after a check that it is about the version that it was published with. It is verified where that is asked
for.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm import names, semver
from pkgrepo.formats.npm.limits import PUBLISH_TAGS
from pkgrepo.formats.npm.publish.manifest import with_packed_fields
from pkgrepo.formats.npm.publish.sent_document import SentDocument
from pkgrepo.formats.npm.publish.tarball import TarballContents
from pkgrepo.gateway.responses.content import SMALL
from pkgrepo.model import Pipeline
from pkgrepo.oidc.provenance import Signed, check_signer
from pkgrepo.repositories.semver import Version
from pkgrepo.sigstore.bundles import STATEMENT
from pkgrepo.untrusted.strict_json import decode_as
from pkgrepo.untrusted.text import quoted

_PURL: Final = "pkg:npm/"


@frozen
class Publication:
    """
    A version to be published, as the client describes it.

    ``manifest`` is the version object as it was sent, with the readme, which some clients put elsewhere. ``tags``
    are the dist-tags to set on the version; ``bundle`` is the JSON of a provenance bundle. ``restricted`` is whether
    only some users shall see the package.
    """

    name: str
    version: Version
    manifest: Mapping[str, Any]
    tags: tuple[str, ...]
    bundle: str | None
    restricted: bool = False

    @property
    def filename(self) -> str:
        """The file name of the tarball in this registry, whatever the client's name for it."""
        return names.tarball_name(self.name, self.version.text)


def read_publication(sent: SentDocument, url_name: str | None = None) -> Publication:
    """
    The publication in a publish document; ``url_name`` is the package in the request's address, if there is one.

    :raises Invalid: a part is missing, or two parts contradict each other
    """
    document = sent.value()
    name = read_name(document, url_name)
    names.check_new_name(name)
    text, manifest = _only_version(document, name)
    # Stored without build metadata, as npm itself publishes: a client that asks for 1.0.0 would not find "1.0.0+x".
    version = semver.parse_version(semver.parse_version(text).key)
    if manifest.get("name") != name:
        raise Invalid(
            f"the manifest is of package {names.quoted_or_nothing(manifest.get('name'))}, not {name!r}", "name"
        )
    stated = manifest.get("version")
    if not semver.is_same(stated, version):
        raise Invalid(f"the manifest is of version {names.quoted_or_nothing(stated)}, not {version.text!r}", "version")
    attachments = _mapping(document, "_attachments")
    _check_tarball(attachments, sent.sizes, name, version)
    return Publication(
        name=name,
        version=version,
        manifest=_with_readme(manifest, document),
        tags=_tags(document, version),
        bundle=_bundle(attachments, name, version),
        restricted=document.get("access") in ("restricted", "private"),
    )


def packed_publication(contents: TarballContents, tag: str = "") -> Publication:
    """
    The publication of a tarball that comes without a document; ``tag`` is set on it, by default as package.json says.

    :raises Invalid: package.json has no name or version that can be published, or the tag is malformed
    """
    manifest = contents.manifest
    name = read_name({"name": manifest.get("name")}, None)
    names.check_new_name(name)
    stated = manifest.get("version")
    if not isinstance(stated, str):
        raise Invalid("package.json has no version", "version")
    version = semver.parse_version(semver.parse_version(stated).key)
    wanted = _mapping(manifest, "publishConfig")
    tag = tag or str(wanted.get("tag") or names.DEFAULT_TAG)
    names.check_tag(tag)
    sent = with_packed_fields(manifest, contents, ["bin"], name)
    readme = {"readme": contents.readme, "readmeFilename": contents.readme_filename} if contents.readme else {}
    return Publication(
        name=name,
        version=version,
        manifest={**sent, **readme},
        tags=(tag,),
        bundle=None,
        restricted=wanted.get("access") in ("restricted", "private"),
    )


def read_name(document: Mapping[str, Any], url_name: str | None) -> str:
    """
    The name of the package in a document that publishes or changes one.

    ``url_name`` is the package in the request's address, if there is one.

    :raises Invalid: the document names another package, or two, or neither it nor the address names one
    """
    stated = [document[key] for key in ("name", "_id") if document.get(key) is not None]
    name = url_name if url_name is not None else stated[0] if stated else None
    if not isinstance(name, str):
        raise Invalid("the document does not name the package", "name")
    for each in stated:
        if each != name:
            raise Invalid(f"the document is of package {names.quoted_or_nothing(each)}, not {name!r}", "name")
    return name


def _only_version(document: Mapping[str, Any], name: str) -> tuple[str, Mapping[str, Any]]:
    versions = _mapping(document, "versions")
    if len(versions) != 1:
        raise Invalid(f"the publish document of {name} must have one version, and has {len(versions)}", "versions")
    ((text, manifest),) = versions.items()
    if not isinstance(manifest, dict):
        raise Invalid(f"version {quoted(text)} in the publish document is no object", "versions")
    return text, manifest


def _with_readme(manifest: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The manifest with a readme: yarn 4.18 puts it beside the versions, not into the manifest."""
    if manifest.get("readme"):
        return manifest
    return {**manifest, **{key: document[key] for key in ("readme", "readmeFilename") if document.get(key)}}


def _check_tarball(attachments: Mapping[str, Any], sizes: Mapping[str, int], name: str, version: Version) -> None:
    wanted = names.tarball_name(name, version.text)
    found = [each for each in sizes if _is_file_name(each, name, version, names.TARBALL)]
    if len(found) != 1 or len(sizes) != 1:
        got = " and ".join(map(quoted, sizes)) or "none"
        raise Invalid(f"the publish document must have one tarball {wanted!r} attached, and has {got}", "_attachments")
    attachment = found[0]
    length = attachments[attachment].get("length")
    if length is not None and length != sizes[attachment]:
        raise Invalid(f"{wanted} is {sizes[attachment]} bytes long, not {quoted(str(length))} as announced", "length")


def _is_file_name(attachment: str, name: str, version: Version, suffix: str) -> bool:
    """
    Whether an attachment has the name of a version's file.

    Clients write the scope, with its slash, before the name. Some spell the version as in package.json, and another
    way elsewhere in the document: yarn 4.18 keeps a leading "v", bun 1.4 keeps build metadata.
    """
    front = f"{names.split_scope(name)[1]}-"
    filename = attachment.rpartition("/")[2]
    if not (filename.startswith(front) and filename.endswith(suffix)):
        return False
    return semver.is_same(filename[len(front) : -len(suffix)], version)


def _bundle(attachments: Mapping[str, Any], name: str, version: Version) -> str | None:
    for key, value in attachments.items():
        if _is_file_name(key, name, version, names.BUNDLE) and isinstance(value, dict):
            text = value.get("data")
            if isinstance(text, str) and isinstance(value.get("content_type"), str):
                return text
            raise Invalid(f"the attachment {quoted(key)} is no provenance bundle", "_attachments")
    return None


def _tags(document: Mapping[str, Any], version: Version) -> tuple[str, ...]:
    tags = _mapping(document, "dist-tags")
    if len(tags) > PUBLISH_TAGS:
        raise Invalid(f"the publish document has more than {PUBLISH_TAGS} dist-tags", "dist-tags")
    for tag, target in tags.items():
        names.check_tag(tag)
        if not semver.is_same(target, version):
            raise Invalid(
                f"tag {quoted(tag)} stands for {names.quoted_or_nothing(target)}, which is not what is published",
                "dist-tags",
            )
    return tuple(tags) or (names.DEFAULT_TAG,)


def _mapping(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = document.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Invalid(f"{key!r} in the publish document must be an object", key)
    return value


class _Signature(msgspec.Struct, frozen=True):
    sig: str


class _Envelope(msgspec.Struct, frozen=True):
    payload: str
    signatures: list[_Signature]
    payloadType: str = STATEMENT


class _Certificate(msgspec.Struct, frozen=True):
    rawBytes: str


class _Chain(msgspec.Struct, frozen=True):
    certificates: list[_Certificate]


class _Material(msgspec.Struct, frozen=True):
    certificate: _Certificate | None = None
    x509CertificateChain: _Chain | None = None


class _Bundle(msgspec.Struct, frozen=True):
    """A bundle with a signed statement (DSSE), the only content that npm knows."""

    dsseEnvelope: _Envelope
    verificationMaterial: _Material = _Material()


class _Subject(msgspec.Struct, frozen=True):
    name: str = ""
    digest: dict[str, str] = {}


class _Statement(msgspec.Struct, frozen=True):
    """The parts of an in-toto statement that are read."""

    predicateType: str
    subject: list[_Subject]


@frozen
class Attestation:
    """A bundle as it is stored, and the type of its statement."""

    text: bytes
    predicate_type: str


def read_bundle(bundle: str, name: str, version: Version, sha512: str, pipeline: Pipeline | None = None) -> Attestation:
    """
    The attestation in a bundle that was published with a version whose tarball has this digest.

    A bundle that clients could not verify is refused here: one of them makes ``npm audit signatures`` fail for the
    whole project that depends on the package. ``pipeline`` is the one that publishes: if the bundle has a certificate,
    it must be of this pipeline.

    :raises Invalid: the bundle is malformed, about another version or other bytes, or of another pipeline
    """
    text = bundle.encode()
    if len(text) > SMALL:
        raise Invalid(f"the provenance bundle is longer than {SMALL} bytes", "_attachments")
    try:
        parts = decode_as(text, _Bundle, what="it")
        payload, statement = _statement(parts.dsseEnvelope)
    except Invalid as error:
        raise Invalid(f"the provenance bundle is none: {error}", "_attachments") from None
    subject = statement.subject[0] if statement.subject else _Subject()
    package, _, spelled = subject.name.removeprefix(_PURL).rpartition("@")
    # npm.toPurl encodes the "@" of a scope and nothing else.
    named = subject.name.startswith(_PURL) and package == name.replace("@", "%40") and semver.is_same(spelled, version)
    if not named:
        raise Invalid(
            f"the provenance bundle speaks of {quoted(subject.name)}, not {name}@{version.text}", "_attachments"
        )
    if subject.digest.get("sha512", "").lower() != sha512:
        raise Invalid("the provenance bundle speaks of another tarball", "_attachments")
    if pipeline is not None:
        _check_signer(parts, payload, pipeline)
    return Attestation(text=text, predicate_type=statement.predicateType)


def _check_signer(bundle: _Bundle, payload: bytes, pipeline: Pipeline) -> None:
    """Check that the pipeline that publishes has signed a bundle with a certificate. :raises Invalid: it has not"""
    material, envelope = bundle.verificationMaterial, bundle.dsseEnvelope
    chain = [] if material.x509CertificateChain is None else material.x509CertificateChain.certificates
    certificate = material.certificate or next(iter(chain), None)
    if certificate is None:
        return
    try:
        der, *signatures = (
            base64.b64decode(each, validate=True)
            for each in (certificate.rawBytes, *(each.sig for each in envelope.signatures))
        )
    except ValueError:
        raise Invalid(
            "the provenance bundle has a certificate or signature that is not base64", "_attachments"
        ) from None
    for signature in signatures:
        signed = Signed(der, payload, signature, envelope.payloadType)
        check_signer(pipeline, signed, "the provenance bundle", "_attachments")


def _statement(envelope: _Envelope) -> tuple[bytes, _Statement]:
    """The statement that an envelope signs, and its bytes. :raises Invalid: it is no statement, or not signed"""
    if not envelope.signatures:
        raise Invalid("it has no signature")
    try:
        payload = base64.b64decode(envelope.payload, validate=True)
    except ValueError:
        raise Invalid("its payload is not base64") from None
    return payload, decode_as(payload, _Statement, what="its payload")
