"""Metrics for Prometheus: gauges and histograms of requests, the reactor and the server. ``metrics.md`` lists them."""
