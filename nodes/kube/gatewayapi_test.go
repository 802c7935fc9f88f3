package kube_test

import (
	"bytes"
	"compress/gzip"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes/kube"
)

var update = flag.Bool("update", false, "take the definitions of Gateway API from its module")

func TestTheDefinitionsOfGatewayAPIAreThoseOfTheModule(t *testing.T) {
	output, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	require.NoError(t, err)
	var all []byte
	for _, kind := range []string{"gatewayclasses", "gateways", "httproutes", "referencegrants", "tlsroutes"} {
		content, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(output)), "config", "crd", "standard", "gateway.networking.k8s.io_"+kind+".yaml"))
		require.NoError(t, err)
		all = append(append(all, content...), "\n---\n"...)
	}
	if *update {
		var packed bytes.Buffer
		writer, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		require.NoError(t, err)
		_, err = writer.Write(all)
		require.NoError(t, err)
		require.NoError(t, writer.Close())
		require.NoError(t, os.WriteFile("manifests/gateway-api.yaml.gz", packed.Bytes(), 0o644))
		return
	}
	has, err := kube.GatewayAPIDefinitions()
	require.NoError(t, err)
	require.True(t, bytes.Equal(all, has), "another release of the module: run this test with -update")
	objects, err := kube.Objects(has)
	require.NoError(t, err)
	require.Len(t, objects, 5)
}
