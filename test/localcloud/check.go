package localcloud

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/burano/burano/test/localcloud/fabric"
	"golang.org/x/sys/unix"
)

// Problem prevents a local cloud from running here, with its remedy.
type Problem struct{ What, Remedy string }

func (p Problem) String() string { return p.What + "\n    " + p.Remedy }

// Check reports the missing requirements of this machine. It changes nothing.
func Check(config Config) []Problem {
	config = config.withDefaults()
	var problems []Problem
	miss := func(what, remedy string) { problems = append(problems, Problem{what, remedy}) }
	if os.Geteuid() != 0 {
		miss("not running as root: servers and networks are made with the kernel's own means", "run it as root (sudo)")
	}
	for _, need := range []struct{ program, debian string }{{"runc", "runc"}, {"ip", "iproute2"}, {"nft", "nftables"}} {
		if _, err := exec.LookPath(need.program); err != nil {
			miss("the program "+need.program+" is not in PATH", "apt-get install --no-install-recommends "+need.debian)
		}
	}
	if !knowsOverlay() {
		miss("this kernel does not know the file system overlay, which servers' disks are made of", "modprobe overlay")
	}
	if folder := existing(config.StateDir); onOverlay(folder) {
		miss("the state folder "+config.StateDir+" lies on an overlay file system, on which no other overlay can be put",
			"choose with --state a folder on a file system of a disk (ext4, xfs)")
	}
	if err := checkOwner(config.Prefix, config.StateDir); err != nil {
		miss(err.Error(), "there can be one local cloud on a machine")
	}
	if listener, err := net.Listen("tcp", config.Listen); err != nil {
		miss(fmt.Sprintf("cannot listen at %s: %v", config.Listen, err), "free the port, or choose another with --listen 127.0.0.1:PORT")
	} else {
		_ = listener.Close()
	}
	if config.SecondCIDR.IsValid() {
		if config.ExternalCIDR.Overlaps(config.SecondCIDR) {
			miss(fmt.Sprintf("the external networks %s and %s overlap", config.ExternalCIDR, config.SecondCIDR), "choose another one with --second-region-cidr")
		}
		if taken, err := overlapping(config.second()); err == nil && taken != "" { // the routes are read again, and complained of, below
			miss(fmt.Sprintf("the second region's external network %s overlaps with %s of this host", config.SecondCIDR, taken),
				"choose a free network with --second-region-cidr, such as 10.89.0.0/24")
		}
	}
	if taken, err := overlapping(config); err != nil {
		miss(fmt.Sprintf("the host's routes cannot be read: %v", err), "run it as root")
	} else if taken != "" {
		miss(fmt.Sprintf("the external network %s overlaps with %s of this host", config.ExternalCIDR, taken),
			"choose a free network with --external-cidr, such as 10.89.0.0/24")
	}
	return problems
}

func knowsOverlay() bool {
	file, err := os.Open("/proc/filesystems")
	if err != nil {
		return false
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 0 && fields[len(fields)-1] == "overlay" {
			return true
		}
	}
	return false
}

// existing is the folder itself, or the first one above it that is there.
func existing(folder string) string {
	for {
		if _, err := os.Stat(folder); err == nil || folder == filepath.Dir(folder) {
			return folder
		}
		folder = filepath.Dir(folder)
	}
}

func onOverlay(folder string) bool {
	var about unix.Statfs_t
	return unix.Statfs(folder, &about) == nil && about.Type == unix.OVERLAYFS_SUPER_MAGIC
}

// overlapping names a route of the host that overlaps with the external network and is not the cloud's own.
func overlapping(config Config) (string, error) {
	routes, err := fabric.Dump(func() ([]netlink.Route, error) { return netlink.RouteList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return "", err
	}
	for _, route := range routes {
		if route.Dst == nil {
			continue
		}
		address, ok := netip.AddrFromSlice(route.Dst.IP.To4())
		bits, _ := route.Dst.Mask.Size()
		if !ok || bits == 0 || !netip.PrefixFrom(address, bits).Overlaps(config.ExternalCIDR) {
			continue
		}
		link, err := netlink.LinkByIndex(route.LinkIndex)
		if err != nil || !strings.HasPrefix(link.Attrs().Name, config.Prefix) {
			return "the route to " + route.Dst.String(), nil
		}
	}
	return "", nil
}
