"""Text and JSON from outside: read strictly, within limits, and quoted in messages without control characters."""
