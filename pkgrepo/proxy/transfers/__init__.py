"""
Files on their way from an upstream into a storage and, at the same time, to the clients that want them.

``running`` finds the transfer of a file, or starts it. A ``transfer`` gives its readers what ``receiving`` has received
of the ``download`` so far, and has the verified file recorded. ``arriving`` is what one client reads meanwhile. Of
several processes one fetches a file, and the others read it meanwhile (``following``): see ``sharing``, and ``notices``
for what they tell each other.
"""
