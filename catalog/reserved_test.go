package catalog_test

import (
	"bytes"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/internal/fault"
)

// inGo are the embedded packages with methods in Go. The others may be uploaded, as their next versions are.
var inGo = map[string]bool{"io.murano": true, "com.example.docker.DockerApp": true, "com.mirantis.docker.DockerStandaloneHost": true, "com.mirantis.docker.Interfaces": true,
	"com.mirantis.docker.kubernetes.KubernetesCluster": true, "com.mirantis.docker.kubernetes.KubernetesPod": true, "io.burano.Gateways": true, "io.burano.HelmRelease": true,
	"io.burano.Prometheus": true, "io.burano.Route": true}

func TestAnUploadedPackageHasNotTheNameOfOneWhoseMethodsAreInGo(t *testing.T) {
	embedded, err := apps.Packages()
	require.NoError(t, err)
	reserved := catalog.ReservedBy(embedded)
	for _, one := range embedded {
		var archive bytes.Buffer
		require.NoError(t, one.WriteZip(&archive))
		uploaded, err := catalog.ReadZip(bytes.NewReader(archive.Bytes()), int64(archive.Len()))
		require.NoError(t, err, one.FullName())
		err = reserved.Check(uploaded)
		if !inGo[one.FullName()] {
			require.NoError(t, err, one.FullName())
			continue
		}
		require.Equal(t, fault.Conflict, fault.KindOf(err), one.FullName())
		require.EqualError(t, err, "The package "+one.FullName()+" comes with Burano, and its methods run in Burano itself, not from a package that is "+
			"uploaded: use the one that is there, or give yours another name and let its classes extend these")
		require.NoError(t, reserved.Check(one))
	}
	other, err := catalog.ReadFolder(fstest.MapFS{
		"manifest.yaml": {Data: []byte("Format: 1.4\nType: Library\nFullName: org.test.Mine\nClasses: {com.mirantis.docker.kubernetes.KubernetesCluster: A.yaml, org.test.Mine: B.yaml}\n")},
	})
	require.NoError(t, err)
	require.ErrorContains(t, reserved.Check(other), "The class com.mirantis.docker.kubernetes.KubernetesCluster comes with Burano (package com.mirantis.docker.kubernetes.KubernetesCluster ")
	require.NoError(t, catalog.ReservedBy(nil).Check(other))
}
