"""Which blobs each storage holds, what refers to them, and what may be collected; uploads between two requests."""
