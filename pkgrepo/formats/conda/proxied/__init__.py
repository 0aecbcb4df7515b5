"""
Channels of upstreams: what is asked (``questions``), the parts that answers are made into (``normaliser``), how a file
is kept (``releases``), and the documents that proxies and virtual repositories show.

These are written by ``pieces`` from the ``members`` that a channel has, of which a ``selection`` is shown, and kept by
``channels`` in temporary files; ``requests`` answers with them.
"""
