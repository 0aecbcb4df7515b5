"""The process and its environment: memory and processors, log output, messages to systemd."""
