package images

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// module is a folder below modules/ and the programs that are built from it.
type module struct {
	name string
	// folder is the one below modules/ that it is built from where that is not called as the module.
	folder string
	// main is the module whose version the programs carry, and which the manifest names.
	main     string
	programs []program
	// parts are modules that the programs have in them and that the manifest names, too, by the names that they have there.
	parts map[string]string
	// files are of the main module, by the names that they get beside the programs: each is several, one after the other, as YAML has documents.
	files map[string][]string
	// stamp returns the linker's -X settings for a version; nil is none.
	stamp func(version string) []string
}

type program struct {
	name string
	// path is the package, in this module ("./x") or in one that it pins.
	path string
}

// kubernetesModule is the module of the newest Kubernetes; the modules of former minor versions are beside it, as kubernetes-1.35.
const kubernetesModule = "kubernetes"

// modulesWith are the modules of an image with another minor version of Kubernetes ("1.35") than the newest, or with that ("").
func modulesWith(source, minor string) ([]module, error) {
	list := modules()
	if minor == "" {
		return list, nil
	}
	i := slices.IndexFunc(list, func(m module) bool { return m.name == kubernetesModule })
	newest, err := moduleVersion(context.Background(), filepath.Join(source, "modules", kubernetesModule), list[i].main)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(newest, "v"+minor+".") {
		return list, nil
	}
	list[i].folder = kubernetesModule + "-" + minor
	if _, err := os.Stat(filepath.Join(source, "modules", list[i].folder, "go.mod")); err != nil {
		there := []string{strings.TrimPrefix(newest, "v")}
		others, _ := filepath.Glob(filepath.Join(source, "modules", kubernetesModule+"-*"))
		for _, other := range others {
			there = append(there, strings.TrimPrefix(filepath.Base(other), kubernetesModule+"-"))
		}
		return nil, fmt.Errorf("no image can be built with Kubernetes %s: there are %s", minor, strings.Join(there, ", "))
	}
	return list, nil
}

// in is the folder of a module.
func (m module) in(source string) string {
	return filepath.Join(source, "modules", cmp.Or(m.folder, m.name))
}

// piece is the name of its built programs: another version of the module is another piece.
func (m module) piece() string {
	if strings.HasPrefix(m.folder, m.name+"-") {
		return m.folder
	}
	return m.name
}

// modules are in the order of their builds: the likeliest to fail comes first.
func modules() []module {
	return []module{
		{name: "programs", programs: []program{{"node-init", "./node-init"}, {"pause", "./pause"}, {"demo", "./demo"}}},
		{name: "cni", main: "github.com/containernetworking/plugins", programs: []program{
			{"bridge", "github.com/containernetworking/plugins/plugins/main/bridge"},
			{"loopback", "github.com/containernetworking/plugins/plugins/main/loopback"},
			{"host-local", "github.com/containernetworking/plugins/plugins/ipam/host-local"},
			{"portmap", "github.com/containernetworking/plugins/plugins/meta/portmap"},
			{"ptp", "github.com/containernetworking/plugins/plugins/main/ptp"},
		}},
		// The last version of the plugins that had Flannel's: since then it has a module of its own.
		{name: "flannelcni", main: "github.com/containernetworking/plugins", programs: []program{
			{"flannel-cni", "github.com/containernetworking/plugins/plugins/meta/flannel"},
		}},
		{name: "flannel", main: "github.com/flannel-io/flannel", programs: []program{{"flanneld", "."}}},
		{name: "etcd", main: "go.etcd.io/etcd/server/v3", programs: []program{
			{"etcd", "go.etcd.io/etcd/server/v3"},
			{"etcdctl", "go.etcd.io/etcd/etcdctl/v3"},
		}},
		{name: "containerd", main: "github.com/containerd/containerd/v2", stamp: containerdVersion, programs: []program{
			{"containerd", "github.com/containerd/containerd/v2/cmd/containerd"},
			{"containerd-shim-runc-v2", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"},
			{"ctr", "github.com/containerd/containerd/v2/cmd/ctr"},
		}},
		{name: "coredns", main: "github.com/coredns/coredns", programs: []program{{"coredns", "."}}},
		{name: kubernetesModule, main: "k8s.io/kubernetes", stamp: kubernetesVersion, programs: []program{{"kubernetes", "."}}},
		{name: "metricsserver", main: "sigs.k8s.io/metrics-server", programs: []program{{"metrics-server", "sigs.k8s.io/metrics-server/cmd/metrics-server"}}},
		{name: "storage", main: "sigs.k8s.io/sig-storage-lib-external-provisioner/v13", programs: []program{
			{"storage-controllers", "./storage-controllers"},
			{"storage-node", "./storage-node"},
		}, parts: map[string]string{"cinder": "github.com/kubernetes-csi/external-attacher/v4"}},
		{name: "volumesnapshots", folder: "storage", main: "github.com/kubernetes-csi/external-snapshotter/client/v8", files: map[string][]string{"volume-snapshots.yaml": {
			"config/crd/snapshot.storage.k8s.io_volumesnapshotclasses.yaml",
			"config/crd/snapshot.storage.k8s.io_volumesnapshotcontents.yaml",
			"config/crd/snapshot.storage.k8s.io_volumesnapshots.yaml",
		}}},
		{name: "distribution", main: "github.com/distribution/distribution/v3", programs: []program{{"registry", "."}}},
		{name: "helm", main: "helm.sh/helm/v4", programs: []program{{"helm-release", "."}}},
		{name: "gatewayapi", main: "sigs.k8s.io/gateway-api", files: map[string][]string{"gateway-api.yaml": {
			"config/crd/standard/gateway.networking.k8s.io_backendtlspolicies.yaml",
			"config/crd/standard/gateway.networking.k8s.io_gatewayclasses.yaml",
			"config/crd/standard/gateway.networking.k8s.io_gateways.yaml",
			"config/crd/standard/gateway.networking.k8s.io_grpcroutes.yaml",
			"config/crd/standard/gateway.networking.k8s.io_httproutes.yaml",
			"config/crd/standard/gateway.networking.k8s.io_listenersets.yaml",
			"config/crd/standard/gateway.networking.k8s.io_referencegrants.yaml",
			"config/crd/standard/gateway.networking.k8s.io_tcproutes.yaml",
			"config/crd/standard/gateway.networking.k8s.io_tlsroutes.yaml",
			"config/crd/standard/gateway.networking.k8s.io_udproutes.yaml",
		}}},
		{name: "calico-definitions", folder: "calico", main: "github.com/projectcalico/calico", files: map[string][]string{"calico.yaml": {"manifests/crds.yaml"}}},
		// Apart from the programs, which take long to build, and which a project publishes without them.
		{name: "calico-files", folder: "calico", main: "github.com/projectcalico/calico", files: map[string][]string{
			"bird.toml":              {"confd/etc/calico/confd/conf.d/bird.toml"},
			"bird_aggr.toml":         {"confd/etc/calico/confd/conf.d/bird_aggr.toml"},
			"bird_ipam.toml":         {"confd/etc/calico/confd/conf.d/bird_ipam.toml"},
			"bird.cfg.template":      {"confd/etc/calico/confd/templates/bird.cfg.template"},
			"bird_aggr.cfg.template": {"confd/etc/calico/confd/templates/bird_aggr.cfg.template"},
			"bird_ipam.cfg.template": {"confd/etc/calico/confd/templates/bird_ipam.cfg.template"},
		}},
		{name: "calico", main: "github.com/projectcalico/calico", programs: []program{
			{"calico-node", "github.com/projectcalico/calico/node/cmd/calico-node"},
			{"calico-cni", "github.com/projectcalico/calico/cni-plugin/cmd/calico"},
			{"calico-kube-controllers", "github.com/projectcalico/calico/kube-controllers/cmd/kube-controllers"},
			{"calicoctl", "github.com/projectcalico/calico/calicoctl/calicoctl"},
		}},
	}
}

// optionalModules are the modules of optional elements, by the names of these.
func optionalModules() map[string][]module {
	return map[string][]module{
		"docker": {{name: "cridockerd", main: "github.com/Mirantis/cri-dockerd", stamp: criDockerdVersion, programs: []program{{"cri-dockerd", "github.com/Mirantis/cri-dockerd"}}}},
	}
}

// kubernetesVersion sets the version of Kubernetes programs, on which they decide about compatibility: a program without it is a v0.0.0. Commit and date
// are fixed, so that a build can be repeated.
func kubernetesVersion(version string) []string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) != 3 {
		return nil
	}
	values := [][2]string{
		{"gitVersion", version}, {"gitMajor", parts[0]}, {"gitMinor", parts[1]}, {"gitTreeState", "clean"},
		{"gitCommit", strings.Repeat("0", 40)}, {"buildDate", "1970-01-01T00:00:00Z"},
	}
	var settings []string
	for _, in := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, value := range values {
			settings = append(settings, in+"."+value[0]+"="+value[1])
		}
	}
	return settings
}

// containerdVersion sets containerd's version, which is "unknown" otherwise.
func containerdVersion(version string) []string {
	return []string{"github.com/containerd/containerd/v2/version.Version=" + version}
}

// criDockerdVersion sets cri-dockerd's version.
func criDockerdVersion(version string) []string {
	return []string{"github.com/Mirantis/cri-dockerd/cmd/version.Version=" + strings.TrimPrefix(version, "v")}
}

// toolchain is the Go that builds the programs.
type toolchain struct{ version, system, architecture, level string }

func findToolchain(ctx context.Context) (toolchain, error) {
	output, err := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOOS", "GOARCH", "GOAMD64").Output()
	if err != nil {
		return toolchain{}, fmt.Errorf("ask Go for its version (is it installed and in PATH?): %w", err)
	}
	lines := strings.Split(string(output), "\n")
	if len(lines) < 4 {
		return toolchain{}, fmt.Errorf("ask Go for its version: it says %q", output)
	}
	return toolchain{version: lines[0], system: lines[1], architecture: lines[2], level: lines[3]}, nil
}

// module builds the programs of a module, or fetches them.
func (b *builder) module(ctx context.Context, m module) (piece, error) {
	folder := m.in(b.source)
	version, err := moduleVersion(ctx, folder, m.main)
	if err != nil {
		return piece{}, fmt.Errorf("module %s: %w", m.name, err)
	}
	if b.prebuilt != nil {
		if release, there := b.prebuilt.of(m.name, version, b.toolchain.architecture); there {
			return b.prebuiltModule(ctx, m, version, release)
		}
	}
	flags := linkerFlags(m, version)
	key := newKey()
	key.add("module", b.toolchain.version, b.toolchain.system, b.toolchain.architecture, b.toolchain.level, flags)
	for _, program := range m.programs {
		key.add(program.name, program.path)
	}
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		key.add(append([]string{name}, m.files[name]...)...)
	}
	if err := key.addTree(folder, isSource); err != nil {
		return piece{}, fmt.Errorf("module %s: read its source: %w", m.name, err)
	}
	doing := "building " + strings.Join(m.names(), ", ")
	return b.cache.piece(b.progress, m.piece(), key.String(), doing, func(out string, output io.Writer) error {
		var ahead sync.WaitGroup
		defer ahead.Wait()
		ahead.Go(func() { b.fetchAfter(ctx, m) })
		return m.compile(ctx, folder, out, flags, output)
	})
}

// fetchAfter downloads the sources of the module that is built after this one.
func (b *builder) fetchAfter(ctx context.Context, m module) {
	if i := slices.IndexFunc(b.modules, func(one module) bool { return one.name == m.name }); i >= 0 && i+1 < len(b.modules) {
		b.modules[i+1].fetch(ctx, b.modules[i+1].in(b.source))
	}
}

func (m module) names() []string {
	var names []string
	for _, program := range m.programs {
		names = append(names, program.name)
	}
	return slices.AppendSeq(names, maps.Keys(m.files))
}

func linkerFlags(m module, version string) string {
	flags := "-s -w"
	if m.stamp != nil {
		for _, setting := range m.stamp(version) {
			flags += " -X " + setting
		}
	}
	return flags
}

func isSource(name string) bool {
	return name == "go.mod" || name == "go.sum" || (strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"))
}

// moduleVersion is the version at which a module pins another.
func moduleVersion(ctx context.Context, folder, of string) (string, error) {
	if of == "" {
		return "", nil
	}
	command := exec.CommandContext(ctx, "go", "mod", "edit", "-json")
	command.Dir = folder
	command.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("read go.mod: %w", err)
	}
	var file struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(output, &file); err != nil {
		return "", fmt.Errorf("read go.mod: %w", err)
	}
	for _, required := range file.Require {
		if required.Path == of {
			return required.Version, nil
		}
	}
	return "", fmt.Errorf("go.mod does not pin %s", of)
}
