package nodes

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/systemd"
)

//go:embed scripts/facts.sh
var factsScript string

//go:embed scripts/place-files.sh
var placeFilesScript string

//go:embed scripts/start.sh
var startScript string

// runtimeScript is the beginning of scripts that talk to the container runtime.
//
//go:embed scripts/runtime.sh
var runtimeScript string

//go:embed scripts/images.sh
var imagesScript string

// facts describe a node as it was found.
type facts struct {
	mtu     int
	host    kube.Host
	device  string // the interface that has its address
	six     bool   // it has the address of IPv6 that was asked for
	metrics bool   // its image has metrics-server
	storage bool   // its image can serve volumes
	cinder  bool   // also the volumes of Cinder
	zoned   bool   // also volumes in the zone of the node
	manila  bool   // also shares of Manila
	// keepalived is true if its image has it, and virtual if the node shares the address of the gateways, or did when it ran last.
	keepalived, virtual bool
	docker              bool         // its image has Docker's engine
	websockets          bool         // its kubelet also speaks WebSocket itself, as from 1.36 on
	runtime             kube.Runtime // by which its containers run since it began; "" before that
	machine             string       // its machine-id: another server has another one
	resolvers           []netip.Addr
	files               map[string]string // path → sha256 of the content
	links               map[string]string // path → target
}

func parseFacts(text string) facts {
	f := facts{files: map[string]string{}, links: map[string]string{}}
	words := map[string]*bool{"metrics": &f.metrics, "storage": &f.storage, "cinder": &f.cinder, "zoned": &f.zoned, "manila": &f.manila, "keepalived": &f.keepalived,
		"virtual": &f.virtual, "docker": &f.docker, "websockets": &f.websockets, "six": &f.six}
	for line := range strings.Lines(text) {
		kind, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		first, second, _ := strings.Cut(rest, " ")
		if word := words[kind]; word != nil {
			*word = true
		}
		switch kind {
		case "mtu":
			f.mtu, _ = strconv.Atoi(first)
		case "memory": // in KiB
			if kibibytes, err := strconv.Atoi(first); err == nil {
				f.host = kube.Host{Machine: true, MemoryGiB: (kibibytes + 1<<20 - 1) >> 20}
			}
		case "device":
			f.device = first
		case "runtime":
			f.runtime = kube.Runtime(first)
		case "machine":
			f.machine = first
		case "resolver":
			// A resolver on the node itself is none for pods.
			if address, err := netip.ParseAddr(first); err == nil && !address.IsLoopback() {
				f.resolvers = append(f.resolvers, address)
			}
		case "file":
			f.files[second] = first
		case "link":
			f.links[first] = second
		}
	}
	return f
}

// missing returns the files that the node does not have, or not with this content.
func (f facts) missing(files []ssh.File) []ssh.File {
	return slices.DeleteFunc(slices.Clone(files), func(file ssh.File) bool {
		if file.Link != "" {
			return f.links[file.Path] == file.Link
		}
		return f.files[file.Path] == file.Digest()
	})
}

// installed is a node whose files are in place.
type installed struct {
	layout
	facts facts
}

// fileSteps give nodes their files, and start nothing.
type fileSteps struct{ *deployment }

func (d fileSteps) steps() []step {
	return []step{
		{name: stepFiles, on: d.present(), after: needs(here(stepConnect), ifPlanned(here(stepMachine))), run: d.install},
		// after the files, because other steps wait for the files
		{name: stepBinary, on: d.with(Master, Gateway), skipIf: d.design.binary == "", after: here(stepFiles), run: d.copyBinary},
	}
}

// install writes the files that a node does not have as they should be, and starts nothing.
func (d fileSteps) install(ctx context.Context, node Node) error {
	pairs, err := d.design.pairs(ctx, d.cluster, node)
	if err != nil {
		return err
	}
	paths, err := d.paths(node, pairs)
	if err != nil {
		return err
	}
	look := map[string]string{"ADDRESS": node.Address.String(), "PATHS": strings.Join(paths, "\n")}
	if node.Six.IsValid() {
		look["ADDRESS6"] = node.Six.String()
	}
	out, err := d.script(ctx, node, "look around", factsScript, look)
	if err != nil {
		return err
	}
	found := parseFacts(out)
	if node.Six.IsValid() && !found.six {
		return fmt.Errorf("%s does not have its address of IPv6, %s: images of former versions take none of subnets with an ipv6_address_mode; use a newer image, or a subnet without", node.Name, node.Six)
	}
	design := d.design
	design.host, design.metrics = found.host, found.metrics && d.cluster.config.Metrics
	design.shares, design.device, design.serves = found.keepalived, found.device, found.storage
	design.attaches, design.zoned, design.mounts = found.cinder, found.zoned, found.manila
	design.proxied = found.files[kube.ProxyOfContainerd] != "" || found.files[kube.ProxyOfDocker] != ""
	design.runtime, design.websockets = cmp.Or(found.runtime, d.design.runtime), found.websockets
	if node.Role == Minion && design.runtime == kube.Docker && !found.docker {
		return fmt.Errorf("%s: %w", node.Name, ErrNoDocker)
	}
	final, err := design.layout(node, pairs, found.mtu)
	if err != nil {
		return err
	}
	if most := found.mtu - d.design.driver.Overhead(); found.mtu > 0 && d.cluster.config.PodMTU > most {
		return fmt.Errorf("pods are to send packets of %d bytes (podMtu), and the network of %s carries %d, of which %d are left for them: ask for %d at most, or give the network a larger MTU",
			d.cluster.config.PodMTU, node.Name, found.mtu, most, most)
	}
	files := final.files()
	if d.cluster.config.idle(node) {
		files = final.idle(files, d.design.servingUnits(node, final))
	}
	missing := signInSteps(d).unstaged(found, found.missing(files))
	client, err := d.cluster.connect(ctx, node)
	if err != nil {
		return err
	}
	if err := client.Upload(ctx, missing); err != nil {
		return err
	}
	reload := slices.ContainsFunc(missing, func(file ssh.File) bool { return strings.HasPrefix(file.Path, systemd.Folder) })
	env := map[string]string{"RELOAD": "no"}
	if reload {
		env["RELOAD"] = "yes"
	}
	if node.Role == Master { // others find the API through their forwarder, which comes first
		env["HOSTS"], env["KUBECONFIG_OF_ROOT"] = final.hosts, kube.RootKubeconfig
	}
	if _, err := d.script(ctx, node, "place files", placeFilesScript, env); err != nil {
		return err
	}
	d.mu.Lock()
	d.installed[node.Name] = installed{layout: final, facts: found}
	d.mu.Unlock()
	if len(missing) > 0 {
		d.report(ctx, node, fmt.Sprintf("files installed: %d", len(missing)))
	}
	return nil
}

// sketch has the facts on which the paths of a node's files depend, beside the cluster.
type sketch struct {
	role        Role
	voter, pods bool
}

// paths are the paths of all possible files of a node.
func (d fileSteps) paths(node Node, pairs map[string]pki.Pair) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	kind := sketch{role: node.Role, voter: slices.Contains(d.design.voters, node.Name), pods: node.RunsPods()}
	if paths, known := d.sketched[kind]; known {
		return paths, nil
	}
	// A machine has all files of a container, and more: the list of paths does not depend on the kind.
	design := d.design
	design.host, design.metrics, design.shares, design.proxied = kube.Host{Machine: true}, d.cluster.config.Metrics, true, true
	design.serves, design.attaches, design.zoned, design.mounts = true, true, true, true
	runtimes := []kube.Runtime{design.runtime}
	if node.Role == Minion { // it may have begun with another runtime than new ones get
		runtimes = append(runtimes, otherRuntime(design.runtime))
	}
	var paths []string
	for _, runtime := range runtimes {
		design.runtime = runtime
		layout, err := design.layout(node, pairs, 0)
		if err != nil {
			return nil, err
		}
		for _, file := range layout.files() {
			paths = append(paths, file.Path)
		}
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	if d.sketched == nil {
		d.sketched = map[sketch][]string{}
	}
	d.sketched[kind] = paths
	return paths, nil
}

// copyBinary puts our own program on a node, if another one or none is there.
func (d fileSteps) copyBinary(ctx context.Context, node Node) error {
	out, err := d.script(ctx, node, "look at the burano program", factsScript, map[string]string{"ADDRESS": node.Address.String(), "PATHS": remoteBinary})
	if err != nil {
		return err
	}
	if parseFacts(out).files[remoteBinary] == d.design.binary {
		return nil
	}
	client, err := d.cluster.connect(ctx, node)
	if err != nil {
		return err
	}
	if err := client.Copy(ctx, d.cluster.config.Binary, remoteBinary); err != nil {
		return err
	}
	d.report(ctx, node, "burano program copied")
	return nil
}

// digests are of files, by fileState: a hundred megabytes are not read for each deployment, nor at once for all that begin while the first reads them.
var digests sync.Map

// fileState changes with each change of a file: its inode's time does, and no program can set that time.
type fileState struct {
	device, inode uint64
	changed       syscall.Timespec
}

func digestOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("the burano program to copy to the nodes: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", fmt.Errorf("the burano program to copy to the nodes: %w", err)
	}
	status := info.Sys().(*syscall.Stat_t)
	state := fileState{status.Dev, status.Ino, status.Ctim}
	made, _ := digests.LoadOrStore(state, sync.OnceValues(func() (string, error) {
		hash := sha256.New()
		if _, err := io.Copy(hash, file); err != nil {
			digests.Delete(state) // the next one reads it again
			return "", fmt.Errorf("read %s: %w", path, err)
		}
		return hex.EncodeToString(hash.Sum(nil)), nil
	}))
	return made.(func() (string, error))()
}

// start starts units of a node, or restarts units that run with outdated files, and reports them.
func (d *deployment) start(ctx context.Context, node Node, block bool, names ...string) error {
	script, err := d.starting(node, block, names)
	if err != nil {
		return err
	}
	_, err = d.runStarting(ctx, node, script)
	return err
}

// startAnd starts units and waits until they are up, and then runs a script, whose output it returns, in the same session.
func (d *deployment) startAnd(ctx context.Context, node Node, then ssh.Script, names ...string) (string, error) {
	script, err := d.starting(node, true, names)
	if err != nil {
		return "", err
	}
	script.Name += ", " + then.Name
	script.Body += then.Body
	maps.Copy(script.Env, then.Env)
	return d.runStarting(ctx, node, script)
}

// starting is the script that starts units.
func (d *deployment) starting(node Node, block bool, names []string) (ssh.Script, error) {
	layout := d.found(node).layout
	var lines []string
	for _, name := range names {
		unit, there := layout.units[name]
		if !there {
			return ssh.Script{}, fmt.Errorf("node %s has no unit %s", node.Name, name)
		}
		lines = append(lines, name+" "+unit.Fingerprint())
	}
	env := map[string]string{"UNITS": strings.Join(lines, "\n"), "NO_BLOCK": "yes"}
	if block {
		env["NO_BLOCK"] = "no"
	}
	return ssh.Script{Name: "start " + strings.Join(names, ", "), Body: startScript, Env: env}, nil
}

// runStarting runs a script that starts units, reports the started units, and returns its other output.
func (d *deployment) runStarting(ctx context.Context, node Node, script ssh.Script) (rest string, err error) {
	out, err := d.cluster.script(ctx, node.Name, script)
	for line := range strings.Lines(out) {
		switch what, name, _ := strings.Cut(strings.TrimSpace(line), " "); what {
		case "started", "reloaded":
			d.report(ctx, node, name+" "+what)
		case "kept":
		default:
			rest += line
		}
	}
	return rest, err
}

// ErrNoDocker is the error of a server that is to run containers by Docker, and whose image has it not.
var ErrNoDocker = errors.New("containerRuntime is docker, and its image has no Docker: make it from one that has (burano image build --with docker), or leave containerRuntime at containerd")

// otherRuntime is the one of the two that this is not.
func otherRuntime(r kube.Runtime) kube.Runtime {
	if r == kube.Docker {
		return kube.Containerd
	}
	return kube.Docker
}
