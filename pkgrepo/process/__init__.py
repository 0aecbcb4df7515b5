"""The process as the operating system sees it: memory allocator, log output, messages to systemd."""
