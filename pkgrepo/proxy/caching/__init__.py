"""
What becomes of what is kept of upstreams, whatever it is: documents, tags, lists, and files that may change.

``states`` is the table of what is served and what is asked for again, ``search_order`` that of who is asked, and
``revalidation`` the engine that does so. What it needs to know of a kind of content is its L{Cached}, which is beside
the content. ``absences`` has what no upstream has.
"""
