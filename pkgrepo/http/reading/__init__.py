"""Parsing of requests: the channel gives bytes to ``head`` and ``body``, and a handler reads chunks from ``body``."""
