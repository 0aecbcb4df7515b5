"""
Connections to upstreams: to checked addresses or through a proxy, with TLS, and with limits of what they may send.

`agent` is the face; it takes endpoints from `endpoints`, `tunnel` and `tls`, and wraps connections (`connection`).
"""
