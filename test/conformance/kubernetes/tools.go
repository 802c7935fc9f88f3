//go:build tools

// Package kubernetes pins what the conformance tests of Kubernetes are made of, at the version of the node image: the tests' program, the
// runner for it, and the programs of the container images that they run.
package kubernetes

import (
	_ "github.com/onsi/ginkgo/v2/ginkgo"
	_ "k8s.io/kubernetes/test/e2e"
	_ "k8s.io/kubernetes/test/images/agnhost"
	_ "k8s.io/sample-apiserver"
)
