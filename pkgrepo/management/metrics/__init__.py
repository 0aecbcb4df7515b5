"""
Metrics for Prometheus: counters of requests, the lag of the reactor, gauges of the server.

Each source copies its values in the reactor thread; another thread renders them. ``pkgrepo/docs/metrics.md`` explains
each metric.
"""
