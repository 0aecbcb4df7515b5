"""What faults are made of: signals to processes, disks and calls that fail, limits, clocks and pairs of faults."""
