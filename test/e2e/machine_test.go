package e2e

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// machine is the state of this machine that the local cloud could change.
type machine struct {
	Mounts, Namespaces, Interfaces, Cgroups, Rules []string
	Settings                                       map[string]string
}

// look records the state of the machine.
func look(t *testing.T) machine {
	t.Helper()
	m := machine{Settings: map[string]string{}}
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	for line := range strings.Lines(string(mounts)) {
		m.Mounts = append(m.Mounts, strings.Fields(line)[1])
	}
	if entries, err := os.ReadDir("/run/netns"); err == nil {
		for _, entry := range entries {
			m.Namespaces = append(m.Namespaces, entry.Name())
		}
	}
	interfaces, err := os.ReadDir("/sys/class/net")
	require.NoError(t, err)
	for _, entry := range interfaces {
		m.Interfaces = append(m.Interfaces, entry.Name())
	}
	require.NoError(t, filepath.WalkDir("/sys/fs/cgroup", func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			m.Cgroups = append(m.Cgroups, path)
		}
		return nil // a cgroup may go while it is read
	}))
	rules, err := exec.Command("nft", "list", "ruleset").Output()
	require.NoError(t, err)
	m.Rules = strings.Split(string(rules), "\n")
	for _, root := range []string{"/proc/sys/fs/inotify", "/proc/sys/net/ipv4", "/proc/sys/net/bridge", "/proc/sys/kernel", "/proc/sys/vm"} {
		_ = filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || volatile(path) {
				return nil
			}
			if value, err := os.ReadFile(path); err == nil {
				m.Settings[path] = string(value)
			}
			return nil
		})
	}
	return m
}

// volatile reports whether a setting is a counter or a random number of the kernel.
func volatile(path string) bool {
	for _, part := range []string{"/kernel/random/", "/kernel/ns_last_pid", "/kernel/pty/nr", "/vm/stat_refresh", "/tcp_fastopen_key", "/kernel/perf_"} {
		if strings.Contains(path, part) {
			return true
		}
	}
	return false
}

// ofASlot finds the slot in the name of a namespace, an interface, a control group, a rule or a mount of a local cloud.
var ofASlot = regexp.MustCompile(`(?:^|[/"\s-])b([0-9])-|/e2e-([0-9])/`)

// ofAnotherSlot reports whether a name belongs to the local cloud of another slot, which tests of another checkout may have.
func ofAnotherSlot(name string) bool {
	found := ofASlot.FindStringSubmatch(name)
	return found != nil && found[1]+found[2] != slot()
}

// differences lists additions and removals. Other work on the machine may begin and end meanwhile. So control groups that are gone are no
// difference, nor are control groups with processes: no server of the local cloud runs by then.
func (m machine) differences(now machine) []string {
	var found []string
	compare := func(what string, before, after []string) {
		for _, one := range after {
			if !slices.Contains(before, one) && !ofAnotherSlot(one) && one != "/run/netns" {
				found = append(found, what+" is left: "+one)
			}
		}
		for _, one := range before {
			if !slices.Contains(after, one) && !ofAnotherSlot(one) && one != "/run/netns" {
				found = append(found, what+" is gone: "+one)
			}
		}
	}
	compare("mount", m.Mounts, now.Mounts)
	compare("namespace", m.Namespaces, now.Namespaces)
	compare("interface", m.Interfaces, now.Interfaces)
	for _, one := range now.Cgroups {
		if !slices.Contains(m.Cgroups, one) && !isUsed(one) && !ofAnotherSlot(one) {
			found = append(found, "cgroup is left: "+one)
		}
	}
	compare("rule", m.Rules, now.Rules)
	for path, value := range m.Settings {
		if after, ok := now.Settings[path]; ok && after != value {
			found = append(found, fmt.Sprintf("%s was %q and is %q", path, value, after))
		}
	}
	return found
}

// isUsed reports whether processes are in a control group.
func isUsed(group string) bool {
	processes, _ := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	return len(processes) > 0
}

// guests lists the processes of servers of the local cloud: processes of its control groups, or of our programs. It omits the
// ones in except, and programs that another slot's tests run.
func guests(t *testing.T, programs string, except ...int) []string {
	t.Helper()
	group := "/burano-localcloud-b" + slot() + "-"
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	var found []string
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || slices.Contains(except, pid) {
			continue
		}
		folder := filepath.Join("/proc", entry.Name())
		groups, err := os.ReadFile(filepath.Join(folder, "cgroup"))
		if err != nil {
			continue // it ended
		}
		program, _ := os.Readlink(filepath.Join(folder, "exe"))
		if strings.Contains(string(groups), group+"/") || strings.HasPrefix(program, programs) && !elsewhere(folder) {
			command, _ := os.ReadFile(filepath.Join(folder, "cmdline"))
			found = append(found, entry.Name()+" "+strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return found
}

// elsewhere reports whether a process, by its folder in /proc, was started with another slot.
func elsewhere(folder string) bool {
	environment, _ := os.ReadFile(filepath.Join(folder, "environ"))
	for variable := range strings.SplitSeq(string(environment), "\x00") {
		if value, there := strings.CutPrefix(variable, slotVariable+"="); there {
			return cmp.Or(value, "0") != slot()
		}
	}
	return slot() != "0"
}

func TestWhatAnotherSlotHasIsItsOwn(t *testing.T) {
	t.Setenv(slotVariable, "6")
	for _, other := range []string{"/run/netns/b5-srv-16bbe65e", "b5-net-b42f55bc", "/tmp/x/build/e2e-5/cloud/hypervisor/servers/1/root", `table inet b1-guard {`} {
		require.True(t, ofAnotherSlot(other), other)
	}
	for _, own := range []string{"/run/netns/b6-srv-16bbe65e", "b6-net-b42f55bc", "/tmp/x/build/e2e-6/cloud", "lo", "/proc"} {
		require.False(t, ofAnotherSlot(own), own)
	}
}
