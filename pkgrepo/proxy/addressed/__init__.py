"""
Files of one proxy that are asked of upstreams by their paths, whether or not a document lists them.

A ``request`` says which file it is. ``walk`` asks the routes for it in order, of which ``winners`` remembers the one
that has served a version before; of several processes one chooses it, see ``decisions``. ``announced`` finds out which
digests the file must have. ``files`` are the files that never change, and are kept as ordinary files of the proxy;
``mutable`` are the others. All use one ``context``.
"""
