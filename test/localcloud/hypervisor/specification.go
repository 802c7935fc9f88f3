package hypervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// specification is the part of the OCI runtime configuration that servers need
// (https://github.com/opencontainers/runtime-spec/blob/main/config.md).
type specification struct {
	Version  string          `json:"ociVersion"`
	Hostname string          `json:"hostname"`
	Root     rootFileSystem  `json:"root"`
	Mounts   []mount         `json:"mounts"`
	Process  firstProcess    `json:"process"`
	Linux    linuxProperties `json:"linux"`
}

type rootFileSystem struct {
	Path string `json:"path"`
}

type mount struct {
	Destination string   `json:"destination"`
	Type        string   `json:"type"`
	Source      string   `json:"source"`
	Options     []string `json:"options,omitempty"`
}

type firstProcess struct {
	User struct {
		UID int `json:"uid"`
		GID int `json:"gid"`
	} `json:"user"`
	Args         []string            `json:"args"`
	Env          []string            `json:"env"`
	Directory    string              `json:"cwd"`
	Capabilities map[string][]string `json:"capabilities"`
}

type linuxProperties struct {
	Namespaces  []namespace       `json:"namespaces"`
	Devices     []device          `json:"devices"`
	Sysctl      map[string]string `json:"sysctl"`
	Resources   resources         `json:"resources"`
	CgroupsPath string            `json:"cgroupsPath"`
}

type namespace struct {
	Type string `json:"type"`
	Path string `json:"path,omitempty"`
}

type device struct {
	Path  string `json:"path"`
	Type  string `json:"type"`
	Major int    `json:"major"`
	Minor int    `json:"minor"`
	Mode  int    `json:"fileMode"`
}

type resources struct {
	Devices []deviceRule `json:"devices"`
	Memory  *limit       `json:"memory,omitempty"`
	CPU     *shares      `json:"cpu,omitempty"`
	PIDs    limit        `json:"pids"`
}

type deviceRule struct {
	Allow  bool   `json:"allow"`
	Type   string `json:"type,omitempty"`
	Major  int    `json:"major,omitempty"`
	Minor  int    `json:"minor,omitempty"`
	Access string `json:"access"`
}

type limit struct {
	Limit int64 `json:"limit"`
}

type shares struct {
	Shares uint64 `json:"shares"`
}

// volumes are the folders below /var/lib that must not lie on an overlay: the one in which a node's containerd makes overlays of its own, and folders with
// file system statistics or many syncs.
func volumes() []string { return []string{"containerd", "docker", "kubelet", "etcd"} }

// rescued is where the system that rescues a server has the server's own disk, which is no block device that it could mount there.
const rescued = "/mnt"

// processLimit is for one server; a node of Kubernetes with its pods stays far below.
const processLimit = 16384

// specification of a server. There are no rlimits, since raising them needs a right that root in a container may lack, and no
// masked paths, since the containers inside would then not be allowed to mount /proc.
func (h *Hypervisor) specification(server Server, capabilities []string) specification {
	d := h.disk(server.ID)
	spec := specification{
		Version:  "1.0.2",
		Hostname: server.Hostname,
		Root:     rootFileSystem{Path: d.path("root")},
		Mounts: []mount{
			{"/proc", "proc", "proc", nil},
			{"/dev", "tmpfs", "tmpfs", []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
			{"/dev/pts", "devpts", "devpts", []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
			{"/dev/shm", "tmpfs", "shm", []string{"nosuid", "noexec", "nodev", "mode=1777"}},
			{"/dev/mqueue", "mqueue", "mqueue", []string{"nosuid", "noexec", "nodev"}},
			// Read-only: systemd then knows that devices are not its own.
			{"/sys", "sysfs", "sysfs", []string{"nosuid", "noexec", "nodev", "ro"}},
			// In its own namespace of cgroups, and writable: kubelet and systemd make their own there.
			{"/sys/fs/cgroup", "cgroup", "cgroup", []string{"nosuid", "noexec", "nodev", "rw"}},
			{"/run", "tmpfs", "tmpfs", []string{"nosuid", "nodev", "mode=755"}},
			{"/tmp", "tmpfs", "tmpfs", []string{"nosuid", "nodev", "mode=1777"}},
			{"/run/config-drive", "bind", d.path("drive"), []string{"bind", "ro", "nosuid", "nodev", "noexec"}},
		},
		Process: firstProcess{
			Args: []string{"/sbin/init"},
			// systemd learns from "container" that it is in one.
			Env:          []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "container=runc"},
			Directory:    "/",
			Capabilities: map[string][]string{"bounding": capabilities, "effective": capabilities, "permitted": capabilities},
		},
		Linux: linuxProperties{
			Namespaces: []namespace{
				{Type: "pid"}, {Type: "ipc"}, {Type: "uts"}, {Type: "mount"}, {Type: "cgroup"},
				{Type: "network", Path: filepath.Join("/run/netns", server.NetNS)},
			},
			// kubelet does not start without it.
			Devices: []device{{Path: "/dev/kmsg", Type: "c", Major: 1, Minor: 11, Mode: 0o600}},
			// A node forwards; systemd does not apply sysctl settings in servers, since most would be the machine's.
			Sysctl: map[string]string{"net.ipv4.ip_forward": "1"},
			// kubelet reads the kernel's log; servers cannot write there.
			Resources: resources{Devices: []deviceRule{
				{Allow: true, Access: "rwm"}, {Allow: false, Type: "c", Major: 1, Minor: 11, Access: "w"},
			}, PIDs: limit{processLimit}},
			CgroupsPath: h.cgroup(server.ID),
		},
	}
	own := "/" // where its own disk is
	if server.RescueImageID != "" {
		own = rescued
		spec.Root.Path = d.rescue().path("root")
		spec.Mounts = append(spec.Mounts, mount{rescued, "bind", d.path("root"), []string{"rbind", "rw"}})
	}
	if _, ownDisk := server.rootDisk(); !ownDisk {
		for _, volume := range volumes() {
			spec.Mounts = append(spec.Mounts, mount{filepath.Join(own, "var/lib", volume), "bind", d.path("volumes", volume), []string{"rbind", "rw"}})
		}
	}
	if server.MemoryMiB > 0 {
		spec.Linux.Resources.Memory = &limit{int64(server.MemoryMiB) << 20}
		spec.Mounts = append(spec.Mounts, mount{"/proc/meminfo", "bind", d.path("meminfo"), []string{"bind", "ro"}})
	}
	if server.VCPUs > 0 {
		spec.Linux.Resources.CPU = &shares{uint64(server.VCPUs) * 1024}
	}
	return spec
}

// memoryInfo is a /proc/meminfo with the server's memory instead of the machine's; it cannot show its use.
func memoryInfo(mib int) string {
	var text strings.Builder
	for _, line := range []struct {
		name string
		kib  int
	}{
		{"MemTotal", mib * 1024}, {"MemFree", mib * 1024}, {"MemAvailable", mib * 1024}, {"Buffers", 0}, {"Cached", 0},
		{"SwapCached", 0}, {"Active", 0}, {"Inactive", 0}, {"SwapTotal", 0}, {"SwapFree", 0}, {"Shmem", 0}, {"Slab", 0},
		{"SReclaimable", 0}, {"SUnreclaim", 0},
	} {
		fmt.Fprintf(&text, "%-15s %8d kB\n", line.name+":", line.kib)
	}
	return text.String()
}

// serverCapabilities (capabilities(7)) are all capabilities that a system with containers needs, by their numbers. It excludes capabilities over parts
// of the machine: the kernel's modules, the machine's clock, its raw devices, its power.
func serverCapabilities() map[int]string {
	return map[int]string{
		0: "CHOWN", 1: "DAC_OVERRIDE", 2: "DAC_READ_SEARCH", 3: "FOWNER", 4: "FSETID", 5: "KILL", 6: "SETGID", 7: "SETUID",
		8: "SETPCAP", 9: "LINUX_IMMUTABLE", 10: "NET_BIND_SERVICE", 11: "NET_BROADCAST", 12: "NET_ADMIN", 13: "NET_RAW",
		14: "IPC_LOCK", 15: "IPC_OWNER", 18: "SYS_CHROOT", 19: "SYS_PTRACE", 21: "SYS_ADMIN", 22: "SYS_BOOT", 23: "SYS_NICE",
		24: "SYS_RESOURCE", 26: "SYS_TTY_CONFIG", 27: "MKNOD", 28: "LEASE", 29: "AUDIT_WRITE", 31: "SETFCAP", 33: "MAC_ADMIN",
		34: "SYSLOG",
	}
}

// hostCapabilities are the serverCapabilities that this process has and can thus give: root in a container lacks some.
func hostCapabilities() ([]string, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, err
	}
	_, rest, _ := strings.Cut(string(status), "\nCapEff:")
	line, _, _ := strings.Cut(rest, "\n")
	effective, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	if err != nil {
		return nil, fmt.Errorf("read the rights of this process: %w", err)
	}
	return among(effective), nil
}

func among(effective uint64) []string {
	var names []string
	known := serverCapabilities()
	for number := range 64 {
		if name, ok := known[number]; ok && effective>>number&1 == 1 {
			names = append(names, "CAP_"+name)
		}
	}
	return names
}
