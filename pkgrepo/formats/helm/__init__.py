"""
The Helm format: classic chart repositories, with an index and chart archives.

Read ``names`` first, then ``chart`` (what a chart says of itself), ``index`` (the document out), ``proxied`` (documents
of upstreams in), ``publish`` (charts in), and ``routes`` last. Charts in registries of images are not of this format.
"""
