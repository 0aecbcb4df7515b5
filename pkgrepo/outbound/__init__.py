"""
Connections to upstreams and to the servers of buckets: to checked addresses or through a proxy, with TLS, and with
limits of what they may send.

`agent` is the face, which treq and the requests to buckets drive. It takes an idle connection from `connections`, or
makes one by `endpoints`, `tunnel` and `tls`. A `connection` sends a request, reads the `head` of its answer, and
passes the body on.

Twisted's own client below treq takes a fifth more function calls for a whole cold request than this.
"""
