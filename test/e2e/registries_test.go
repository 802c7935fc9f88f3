package e2e

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/routers"
	"github.com/stretchr/testify/require"
)

// imageRegistry is a registry that servers of the local cloud reach, by plain HTTP.
type imageRegistry struct {
	address        string
	user, password string // credentials; empty: none needed
	server         *http.Server
	mutex          sync.Mutex
	pulled         []string // the repositories whose manifests were requested
	wanted         []string // requested as repository:tag, whether it exists or not
}

func startRegistry(t *testing.T, user, password string) *imageRegistry {
	t.Helper()
	listener, err := net.Listen("tcp", outside("1")+":0")
	require.NoError(t, err)
	r := &imageRegistry{address: listener.Addr().String(), user: user, password: password}
	images := registry.New(registry.Logger(log.New(t.Output(), "", 0)))
	r.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		given, secret, _ := request.BasicAuth()
		if given != r.user || secret != r.password {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		if repository, reference, asked := strings.Cut(strings.TrimPrefix(request.URL.Path, "/v2/"), "/manifests/"); asked && request.Method != http.MethodPut {
			r.mutex.Lock()
			if request.Method == http.MethodGet {
				r.pulled = append(r.pulled, repository+" "+request.URL.RawQuery)
			}
			if !strings.Contains(reference, ":") { // which a digest has
				r.wanted = append(r.wanted, repository+":"+reference)
			}
			r.mutex.Unlock()
		}
		images.ServeHTTP(w, request)
	})}
	go func() { _ = r.server.Serve(listener) }()
	t.Cleanup(func() { _ = r.server.Close() })
	return r
}

// forwarder is a proxy that forwards every request to a registry.
type forwarder struct {
	address string
	mutex   sync.Mutex
	asked   []string // the hosts
}

func startForwarder(t *testing.T, to *imageRegistry) *forwarder {
	t.Helper()
	listener, err := net.Listen("tcp", outside("1")+":0")
	require.NoError(t, err)
	f := &forwarder{address: listener.Addr().String()}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		f.mutex.Lock()
		f.asked = append(f.asked, r.In.Host)
		f.mutex.Unlock()
		r.Out.URL.Scheme, r.Out.URL.Host = "http", to.address
	}}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: forward}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return f
}

// demoImage is the node image's demonstration image with another time. With the same content the kubelet would take the node image's for a pulled
// one, and ask for its registry, which does not exist.
func (l *lab) demoImage(t *testing.T) v1.Image {
	t.Helper()
	file := t.TempDir() + "/demo.tar"
	output, err := exec.Command("bash", "-c", `tar -xOf "$1" ./opt/burano/images/demo.tar >"$2"`, "extract", l.image(), file).CombinedOutput()
	require.NoErrorf(t, err, "%s", output)
	image, err := tarball.ImageFromPath(file, nil)
	require.NoError(t, err)
	image, err = mutate.CreatedAt(image, v1.Time{Time: time.Now()})
	require.NoError(t, err)
	return image
}

// push pushes the demonstration's image into a repository.
func (r *imageRegistry) push(t *testing.T, l *lab, repository string) {
	t.Helper()
	reference, err := name.ParseReference(r.address+"/"+repository, name.Insecure)
	require.NoError(t, err)
	login := authn.Anonymous
	if r.user != "" {
		login = &authn.Basic{Username: r.user, Password: r.password}
	}
	require.NoError(t, remote.Write(reference, l.demoImage(t), remote.WithAuth(login)))
}

func (r *imageRegistry) pulls(repository string) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Contains(r.pulled, repository)
}

// missing are the requested images that are not among these, each once.
func (r *imageRegistry) missing(there []string) (names []string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, name := range r.wanted {
		if !slices.Contains(there, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// mirrorName is a mirror that only a proxy can reach.
const mirrorName = "mirror.example.org"

// imagesComeFromRegistries has pods run images of a registry that demands credentials, and, through a proxy, of Docker Hub's mirror.
func imagesComeFromRegistries(t *testing.T, l *lab, c *cluster, own, mirror *imageRegistry, proxy *forwarder) {
	own.push(t, l, "team/hello:1")
	mirror.push(t, l, "library/hello:1")
	for pod, image := range map[string]string{"of-own": own.address + "/team/hello:1", "of-hub": "hello:1"} {
		c.kubectl(t, "", "run", pod, "--image="+image, "--image-pull-policy=Always")
	}
	c.kubectl(t, "", "wait", "--for=condition=Ready", "pod/of-own", "pod/of-hub", "--timeout=90s")
	require.True(t, own.pulls("team/hello "), "%v", own.pulled)
	require.True(t, mirror.pulls("library/hello ns=docker.io"), "%v", mirror.pulled)
	proxy.mutex.Lock()
	require.Contains(t, proxy.asked, mirrorName, "nobody but the proxy knows the mirror")
	for _, host := range proxy.asked {
		require.Equal(t, mirrorName, host, "a registry of noProxy, the API and pods are reached without")
	}
	proxy.mutex.Unlock()
	c.kubectl(t, "", "delete", "pod", "of-own", "of-hub", "--now")
}

// TestMinionsReachRegistriesThroughTheMaster has a network whose router forwards only servers with a floating address to the outside, and minions have none.
// They get images of the registries that their cluster names, through the master, and of no others.
func TestMinionsReachRegistriesThroughTheMaster(t *testing.T) {
	soakOnly(t, "`make soak` runs this: TestFlannelConnectsThePodsToo has minions reach a mirror through a proxy")
	l := start(t)
	demo := l.user(t, "burano-demo")
	router := demo.routerWith(t, &routers.GatewayInfo{EnableSNAT: new(bool)})
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	own, mirror, other := startRegistry(t, "team", "not-for-everybody"), startRegistry(t, "", ""), startRegistry(t, "", "")
	own.push(t, l, "team/hello:1")
	mirror.push(t, l, "library/hello:1")
	other.push(t, l, "hello:1")

	usual, err := os.ReadFile("testdata/scaling.yaml")
	require.NoError(t, err)
	text := strings.Replace(string(usual), "applications:\n",
		"defaultNetworks:\n  flat: null\n  environment: {\"?\": {type: io.murano.resources.NeutronNetwork}, name: own, externalRouterId: "+router+"}\n\napplications:\n", 1)
	for _, minion := range []string{"murano-kube-2", "murano-kube-3", "murano-kube-4"} {
		const end = ", flavor: m1.medium, image: burano-node, assignFloatingIp: "
		require.Contains(t, text, minion+end+"true")
		text = strings.Replace(text, minion+end+"true", minion+end+"false", 1)
	}
	registries := fmt.Sprintf("\n    dockerRegistry: %s\n    dockerRegistryUser: team\n    dockerRegistryPassword: not-for-everybody\n    dockerMirror: http://%s\n", own.address, mirror.address)
	file := filepath.Join(t.TempDir(), "closed.yaml")
	deploy := func(through string) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(text, "name: scaling-cluster\n", "name: scaling-cluster"+registries+through, 1)), 0o600))
		l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	}
	deploy("")
	l.deleteIfFailed(t, "scaling")
	environment := environmentNamed(t, demo, "scaling")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	c := s.cluster
	output, err := c.on("murano-kube-2", "curl", "--silent", "--show-error", "--max-time", "5", "http://"+mirror.address+"/v2/")
	require.Error(t, err, "a minion has a way out of its own: %s", output)
	output, err = c.on("murano-kube-1", "curl", "--silent", "--show-error", "--fail", "--max-time", "5", "http://"+mirror.address+"/v2/")
	require.NoError(t, err, output)
	run := func(pod, image string) { c.kubectl(t, "", "run", pod, "--image="+image, "--image-pull-policy=Always") }
	failure := func(pod, told string) {
		t.Helper()
		l.eventually(t, 60*time.Second, pod+" has no image", func() error {
			if events := c.kubectl(t, "", "get", "events", "--field-selector", "involvedObject.name="+pod, "-o", "jsonpath={.items[*].message}"); !strings.Contains(events, told) {
				return fmt.Errorf("events: %s", events)
			}
			return nil
		})
	}
	run("before", own.address+"/team/hello:1")
	failure("before", "Failed to pull image")

	deploy("    registriesThroughMasters: registry.example.org, .example.net\n")
	run("of-own", own.address+"/team/hello:1")
	run("of-hub", "hello:1")
	c.kubectl(t, "", "wait", "--for=condition=Ready", "pod/before", "pod/of-own", "pod/of-hub", "--timeout=180s")
	require.True(t, own.pulls("team/hello "), "%v", own.pulled)
	require.True(t, mirror.pulls("library/hello ns=docker.io"), "%v", mirror.pulled)
	run("of-other", other.address+"/hello:1")
	failure("of-other", "Forbidden")
	require.False(t, other.pulls("hello "), "%v", other.pulled)
	output, err = c.on("murano-kube-2", "curl", "--silent", "--show-error", "--insecure", "--max-time", "5", "https://"+s.fixed(t)["murano-kube-1"].String()+":6444/")
	require.Error(t, err, "whoever shows no certificate is not served: %s", output)
	require.Regexp(t, "certificate|alert|SSL", output)

	// A new minion has it from the beginning.
	s.act(t, "scaling-cluster", "scaleNodesUp", map[string]any{})
	c = l.clusterOf(t, demo, environment)
	s.cluster = c
	c.kubectl(t, "", "run", "of-new", "--image="+own.address+"/team/hello:1", "--image-pull-policy=Always", "--overrides", `{"spec": {"nodeName": "murano-kube-3"}}`)
	c.kubectl(t, "", "wait", "--for=condition=Ready", "pod/of-new", "--timeout=90s")

	deploy("")
	output, _ = c.on("murano-kube-1", "systemctl", "is-active", "registries-way")
	require.Equal(t, "inactive", strings.TrimSpace(output))
	run("after", own.address+"/team/hello:1")
	failure("after", "Failed to pull image")

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	asBefore(t, demo, found)
}
