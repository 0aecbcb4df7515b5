"""From received bytes to a published version: staged blobs -> one transaction with rows, fragments and event."""
