"""What happens around a start: checks before it, what is created when it is missing, what the console is told."""
