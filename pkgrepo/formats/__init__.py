"""One room for each package format; none of them knows another."""
