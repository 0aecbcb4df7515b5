"""Parsing of requests: the channel gives bytes to ``head`` and ``framing``, a handler reads chunks from ``body``."""
