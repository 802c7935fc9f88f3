package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// StorageDriver configures Kubernetes' tests of storage drivers for ours, cinder.burano.io: a storage class of a cluster that uses it, the zones' label, and the known
// features that it claims (test/e2e/storage/external in the module k8s.io/kubernetes).
type StorageDriver struct {
	Class string // of the cluster, of which each test makes a copy
	// Grows is set if the kernel lets a mounted ext4 grow, which some machines do not permit to servers of the local cloud.
	Grows bool
}

// claimed are the features of the driver, by their names as Capability there.
func claimed() []string {
	return []string{"block", "controllerExpansion", "exec", "fsGroup", "multiplePVsSameID", "multipods", "nodeExpansion", "offlineExpansion", "persistence", "pvcDataSource", "readWriteOncePod",
		"snapshotDataSource", "topology", "volumeLimits"}
}

const onlineExpansion = "onlineExpansion"

// unclaimed are the features that the driver does not claim, and why.
func unclaimed() map[string]string {
	return map[string]string{
		"RWX":                            "a volume of Cinder is attached to one node at a time",
		"capReadOnlyMany":                "a volume of Cinder is attached to one node at a time",
		"singleNodeVolume":               "its opposite is claimed: volumes follow their pods to other nodes",
		"capacity":                       "Cinder does not tell projects how much room it has",
		"FSResizeFromSourceNotSupported": "its opposite is claimed: copies may be larger than what they are made of",
		"snapshotMetadata":               "Cinder does not tell which blocks of a snapshot differ",
		"groupSnapshot":                  "Cinder's groups of volumes are not used",
		"volumeMountGroup":               "the kubelet gives what is on a volume to fsGroup",
		"seLinuxMount":                   "nodes have no SELinux",
	}
}

// File is the driver's definition, in the form of -storage.testdriver.
func (d StorageDriver) File() ([]byte, error) {
	capabilities := map[string]bool{onlineExpansion: d.Grows}
	for _, one := range claimed() {
		capabilities[one] = true
	}
	for one := range unclaimed() {
		capabilities[one] = false
	}
	none := map[string]any{}
	return yaml.Marshal(map[string]any{
		"StorageClass":  map[string]any{"FromExistingClassName": d.Class},
		"SnapshotClass": map[string]any{"FromName": true},
		"DriverInfo": map[string]any{
			"Name":                            "cinder.burano.io",
			"SupportedSizeRange":              map[string]any{"Min": "1Gi"},
			"SupportedFsType":                 map[string]any{"": none, "ext4": none, "xfs": none},
			"SupportedMountOption":            map[string]any{"noatime": none},
			"TopologyKeys":                    []string{"cinder.burano.io/zone"},
			"Capabilities":                    capabilities,
			"StressTestOptions":               map[string]any{"NumPods": 3, "NumRestarts": 3},
			"VolumeSnapshotStressTestOptions": map[string]any{"NumPods": 3, "NumSnapshots": 3},
		},
	})
}

// Unclaimed names the features that are not claimed, a line each, with the reasons.
func (d StorageDriver) Unclaimed() string {
	reasons := unclaimed()
	if !d.Grows {
		reasons[onlineExpansion] = "it is claimed but for machines like this one, whose kernel refuses servers of the local cloud to have a mounted ext4 grow (CAP_SYS_RESOURCE is missing)"
	}
	var text strings.Builder
	for _, feature := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(&text, "not claimed: %s: %s\n", feature, reasons[feature])
	}
	return text.String()
}

// Choice are Ginkgo's options that leave out the tests of LeftOut.
func Choice() []string {
	return []string{"--label-filter=!Disruptive", "--skip=any volume data source"}
}

// LeftOut names the tests that are not run though their features are claimed, a line each, with the reasons.
func LeftOut() string {
	return `left out: those that are disruptive: they stop kubelets over SSH, as somebody who knows the cluster's cloud
left out: "any volume data source": the images of its populator and validator are not made, since their modules cannot be had
`
}
