"""
What is kept of upstreams, and what becomes of it: documents, tags, lists, and files that may change.

``states`` is the table of what is served and what is asked for again, ``search_order`` that of who is asked, and
``revalidation`` the engine that does so. What it needs to know of a kind of content is its L{Cached}, which is beside
the content. That of metadata is in ``documents``: ``questions`` are asked of one route at a time by ``asking``, and the
responses are ``kept``.
"""
