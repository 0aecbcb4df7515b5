"""Single gemspecs, as ``gem`` and Bundler read them from the legacy index (``quick/Marshal.4.8``)."""

from __future__ import annotations

import zlib
from typing import Final

from pkgrepo.formats.rubygems.gemspec import Dependency, GemSpec
from pkgrepo.formats.rubygems.names import RUBY, is_prerelease

from .marshal import FALSE, TRUE, VERSION, Stream, array, counted, integer
from .platforms import parse_platform

SPECIFICATION_VERSION: Final = 4


def quick_gemspec(spec: GemSpec) -> bytes:
    """
    A gemspec as ``quick/Marshal.4.8/<full name>.gemspec.rz`` has it: a zlib stream.

    Like those of the public registry it is abbreviated: it names no files and has no certificates.
    """
    return zlib.compress(marshal_gemspec(spec), 9)


def marshal_gemspec(spec: GemSpec) -> bytes:
    """The same before compression: a Gem::Specification, which dumps itself as an array in a stream of its own."""
    return VERSION + b"u" + Stream().symbol("Gem::Specification") + counted(_fields(spec))


def _fields(spec: GemSpec) -> bytes:
    stream = Stream()
    fields = [
        stream.string(spec.rubygems_version),
        b"i" + integer(SPECIFICATION_VERSION),
        stream.string(spec.name),
        stream.version(spec.number),
        stream.utc_day(spec.date),
        stream.string(spec.summary),
        stream.requirement(spec.required_ruby),
        stream.requirement(spec.required_rubygems),
        stream.string(spec.original_platform),
        array([_dependency(stream, each) for each in spec.dependencies]),
        stream.string(""),  # the RubyForge project, which no client reads
        stream.strings(spec.email) if isinstance(spec.email, tuple) else stream.optional_string(spec.email),
        stream.strings(spec.authors),
        stream.optional_string(spec.description),
        stream.optional_string(spec.homepage),
        TRUE,  # has documentation
        _platform(stream, spec.platform),
        stream.strings(spec.licenses),
        stream.string_map(spec.metadata),
    ]
    return VERSION + array(fields)


def _platform(stream: Stream, text: str) -> bytes:
    """The text ``ruby``, or a Gem::Platform."""
    if text == RUBY:
        return stream.string(text)
    platform = parse_platform(text)
    variables = (("@cpu", platform.cpu), ("@os", platform.os), ("@version", platform.version))
    head = stream.object_head("Gem::Platform", len(variables))
    return head + b"".join(stream.symbol(name) + stream.optional_string(value) for name, value in variables)


def _dependency(stream: Stream, dependency: Dependency) -> bytes:
    prerelease = any(is_prerelease(number) for _, number in dependency.requirement)
    return b"".join(
        (
            stream.object_head("Gem::Dependency", 5),
            stream.symbol("@name"),
            stream.string(dependency.name),
            stream.symbol("@requirement"),
            stream.requirement(dependency.requirement),
            stream.symbol("@type"),
            stream.symbol(dependency.kind),
            stream.symbol("@prerelease"),
            TRUE if prerelease else FALSE,
            stream.symbol("@version_requirements"),
            stream.requirement(dependency.requirement),
        )
    )
