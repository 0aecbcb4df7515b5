"""The process and its environment: memory allocator, log output, messages to systemd."""
