"""Signatures of images, in both forms that cosign writes, held against the public keys that a repository trusts."""
