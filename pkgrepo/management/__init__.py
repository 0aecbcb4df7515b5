"""
The JSON API below ``/api``, and ``/metrics``, health checks and the token service beside it.

Each resource has a room with its routes and its schema; ``api`` has what all of them use. A request passes the
dispatcher in ``api``, then the handler of its route, which returns a record.
"""
