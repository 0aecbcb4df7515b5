"""
Files on their way from an upstream into a storage and, at the same time, to the clients that want them.

``running`` finds the transfer of a file, or starts it. In a ``transfer`` readers have what ``receiving`` has received of
the ``download`` so far, until it is verified and recorded. ``arriving`` is what one client reads of it meanwhile;
``answers`` judges the answers of the upstream.
"""
