package kube

import (
	"fmt"
	"strings"

	"github.com/burano/burano/nodes/systemd"
)

// Host is the machine below a node. The zero value is a container that shares its host's kernel and disk, as the servers of the local cloud are: such a
// node leaves the host's settings alone. A machine has its own kernel, memory and disk, and reserves parts of them for programs outside of pods. This file
// has all differences between the two on a node; differences in the system itself are in images/machine.
type Host struct {
	Machine bool
	// MemoryGiB is a machine's memory, rounded up, so that another kernel does not change the node's settings.
	MemoryGiB int
	// Controls is true if a control plane runs beside the pods.
	Controls bool
}

// reserved is the memory that pods do not get on a machine, in MiB: a fixed part, and a sixteenth of the memory over 1 GiB, in all at most 4 GiB. A
// minion's kubelet, containerd, network and etcd were measured at 230 MiB. A control plane has a quarter of the memory beside that, at most 1.5 GiB.
func (h Host) reserved() (kube, system int) {
	all := min(256+max(0, h.MemoryGiB-1)*1024/16, 4096)
	kube, system = all*6/10, all-all*6/10
	if h.Controls {
		system += min(h.MemoryGiB*1024/4, 1536)
	}
	return kube, system
}

// LeastDisk is how many percent of the disk must be free: below it the kubelet has pods leave. A container's disk is its host's, where others
// take and free room.
func (h Host) LeastDisk() int {
	if h.Machine {
		return 10
	}
	return 1
}

// kubelet are settings of the kubelet: of the whole kernel, and when pods have to leave.
func (h Host) kubelet() (kernel, limits string) {
	if !h.Machine {
		return `failSwapOn: false
# the local cloud's hosts may still have cgroup v1
failCgroupV1: false
oomScoreAdj: 0
maxOpenFiles: 16384
`, fmt.Sprintf(`evictionHard: {nodefs.available: %[1]d%%, imagefs.available: %[1]d%%, memory.available: 50Mi}
`, h.LeastDisk())
	}
	kube, system := h.reserved()
	return `failSwapOn: true
oomScoreAdj: -999
maxOpenFiles: 1000000
`, fmt.Sprintf(`kubeReserved: {cpu: 100m, memory: %[1]dMi, ephemeral-storage: 1Gi}
systemReserved: {cpu: 100m, memory: %[2]dMi}
evictionHard: {nodefs.available: %[3]d%%, nodefs.inodesFree: 5%%, imagefs.available: %[3]d%%, memory.available: 100Mi}
evictionMinimumReclaim: {nodefs.available: 500Mi, imagefs.available: 500Mi}
`, kube, system, h.LeastDisk())
}

// proxy are settings of kube-proxy. Its settings for tracked connections belong to the whole kernel.
func (h Host) proxy() string {
	if !h.Machine {
		return `oomScoreAdj: 0
# these are the host's to set: a server that is a container may not
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`
	}
	return `oomScoreAdj: -999
conntrack: {maxPerCore: 32768, min: 131072, tcpEstablishedTimeout: 24h, tcpCloseWaitTimeout: 1h}
`
}

// restrictOOM: where root may not lower that value (some containers as servers), pods would not start.
func (h Host) restrictOOM() bool { return !h.Machine }

// openFiles limits the API server.
func (h Host) openFiles() int {
	if !h.Machine {
		return 16384
	}
	return 1 << 20
}

// audit are the API server's flags for its audit log, which takes at most 500 MB of a machine's disk. In a container the disk is the host's.
func (h Host) audit() []string {
	if !h.Machine {
		return nil
	}
	return []string{
		"--audit-policy-file=" + auditPolicy,
		"--audit-log-path=/var/log/kubernetes/audit.log",
		"--audit-log-maxsize=50",
		"--audit-log-maxbackup=9",
		"--audit-log-maxage=30",
	}
}

// oomScores decide what the kernel spares when a machine has no memory left: first the programs that reach and run the machine, then the ones that other
// nodes need.
var oomScores = map[string]int{
	"kubelet": -999, criUnit: -999, "kube-proxy": -999, "calico-node": -998, "calico-bird": -998, "calico-confd": -998, "flanneld": -998, "etcd": -997, "etcd-forwarder": -997, "kube-apiserver": -997,
	"kube-controller-manager": -996, "kube-scheduler": -996, "burano-gateway": -996, "virtual-address": -996, "burano-publish": -996, StorageUnit: -996,
	StorageNodeUnit: -996,
}

// Unit adds this host's settings to a unit of ours.
func (h Host) Unit(unit systemd.Unit) systemd.Unit {
	score, known := oomScores[unit.Name]
	if !h.Machine || unit.Packaged || !known {
		return unit
	}
	lines := []string{fmt.Sprintf("OOMScoreAdjust=%d", score)}
	for _, line := range unit.Service {
		if !strings.HasPrefix(line, "OOMScoreAdjust=") {
			lines = append(lines, line)
		}
	}
	unit.Service = lines
	return unit
}
