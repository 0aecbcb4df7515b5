"""A package registry: npm, container images, Maven, RubyGems and Python from one daemon."""

__version__ = "0.1.0"
