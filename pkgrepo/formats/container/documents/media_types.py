"""Media types of manifests, and the grammars of media types."""

from __future__ import annotations

import re

OCI_IMAGE = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_ARTIFACT = "application/vnd.oci.artifact.manifest.v1+json"
DOCKER_IMAGE = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"

IMAGES = frozenset({OCI_IMAGE, DOCKER_IMAGE})
INDEXES = frozenset({OCI_INDEX, DOCKER_LIST})

MEDIA_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}")
# wider than a media type: the types of some artifacts have parameters
ARTIFACT_TYPE = re.compile(r"[\x21-\x7e][\x20-\x7e]{0,254}")
SCHEMA_1 = re.compile(r"application/vnd\.docker\.distribution\.manifest\.v1\+(json|prettyjws)")
