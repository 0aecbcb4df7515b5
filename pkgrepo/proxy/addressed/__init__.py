"""
Files of one proxy that are asked of upstreams by their paths, whether or not a document lists them.

A ``request`` says which file it is, and finds the digests that the file must have. ``walk`` asks the routes for it in
order. ``chosen_routes`` remembers the route that has served a version before; of several processes one chooses it.
``files`` are the files that never change, and are kept as ordinary files of the proxy; ``mutable`` are the others.
"""
