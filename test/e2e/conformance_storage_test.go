package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/burano/burano/test/conformance"
)

// thirdMinion is in another zone than the two others.
const thirdMinion = `      - "?": {type: com.mirantis.docker.kubernetes.KubernetesMinionNode}
        instance: {"?": {type: io.murano.resources.LinuxMuranoInstance}, name: murano-kube-4, flavor: m1.large, image: burano-node, availabilityZone: east, assignFloatingIp: true}
`

// TestKubernetesTestsTheStorageDriver runs Kubernetes' tests of storage drivers with the driver of Cinder's volumes; BURANO_FOCUS selects some of them.
func TestKubernetesTestsTheStorageDriver(t *testing.T) {
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skipf("servers' volumes are loop devices, which this machine has not: %v", err)
	}
	zoned := func(t *testing.T, tags ...string) *lab { return startIn(t, []string{"--zones", "nova,east"}, tags...) }
	u := startUpstream(t, zoned, []string{
		"name: conformance-cluster", "name: conformance-cluster\n    storageClasses: [{name: burano-cinder, backend: cinder, default: true, zones: [nova, east]}]\n    enableRegistry: false\n    keepVolumes: false",
		"nodeCount: 2", "nodeCount: 3",
		"    gatewayCount: 1", thirdMinion + "    gatewayCount: 1",
	})
	u.lab.relaunch(t, watchful...)
	u.lab.run(t, u.lab.as("burano-demo"), "burano", "environment", "delegation", "set", "conformance")
	u.cluster.kubectl(t, "", "label", "node", "murano-kube-2", "cinder.burano.io/zone=east", "--overwrite")
	require.Contains(t, u.lab.run(t, u.lab.as("burano-demo"), "burano", "deploy", u.model, "--follow"), "servers are in other zones than before")
	require.Equal(t, "nova nova east", u.cluster.kubectl(t, "", "get", "nodes", "-o", `jsonpath={.items[*].metadata.labels.cinder\.burano\.io/zone}`))
	driver := conformance.StorageDriver{Class: "burano-cinder", Grows: has(t, unix.CAP_SYS_RESOURCE)}
	text, err := driver.File()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "driver.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	focus := "External.Storage"
	if more := os.Getenv("BURANO_FOCUS"); more != "" {
		focus += ".*(" + more + ")"
	}
	u.run(t, "tests of the storage driver", driver.Unclaimed()+conformance.LeftOut(), append(conformance.Choice(), "--focus="+focus), []string{"--storage.testdriver=" + file})
	pages, err := volumes.List(u.lab.user(t, "burano-demo").service(t, openstack.NewBlockStorageV3), volumes.ListOpts{}).AllPages(t.Context())
	require.NoError(t, err)
	left, err := volumes.ExtractVolumes(pages)
	require.NoError(t, err)
	require.Empty(t, left, "the tests have deleted their claims")
}

// has reports whether this process has a capability; servers of the local cloud can have it only then
// (capabilities(7)).
func has(t *testing.T, capability int) bool {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(status), "\nCapEff:")
	line, _, _ := strings.Cut(rest, "\n")
	effective, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	require.NoError(t, err)
	return effective>>capability&1 == 1
}
