"""The server as a whole: health checks, version and limits, the installation of the first admin."""
