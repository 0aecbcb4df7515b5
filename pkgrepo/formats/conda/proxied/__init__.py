"""
Channels of upstreams. ``normaliser`` makes parts of what upstreams answer, and ``restoring`` says what is asked.

``pieces`` writes the documents that proxies and virtual repositories show, from the ``members`` that a channel has;
``channels`` keeps them in temporary files, and answers with them.
"""
