"""
Connections to upstreams and to the servers of buckets: to checked addresses or through a proxy, with TLS, and with
limits of what they may send.

``client`` sends requests with treq, for upstreams and buckets alike, over the ``agent``. That takes an idle connection
from the ``pool``, or makes one to checked ``addresses`` or through ``http_proxies``; ``tls_policy`` verifies
certificates. A ``connection`` sends a request, reads the ``head`` of its response, and passes the body on.

Twisted's own client below treq takes a fifth more function calls for a whole cold request than this.
"""
