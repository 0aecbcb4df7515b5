//go:build tools

// Package tools names the client programs that tests drive, so that go.sum holds the hashes of all they are made of.
package tools

import (
	_ "github.com/google/go-containerregistry/cmd/crane"
	_ "github.com/sigstore/cosign/v2/cmd/cosign"
	_ "helm.sh/helm/v3/cmd/helm"
	_ "oras.land/oras/cmd/oras"
)
