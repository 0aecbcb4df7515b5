"""From received bytes to a version that readers see: staged blobs -> one transaction of rows, index and event."""
