package e2e

import (
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"os/exec"
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
	"github.com/stretchr/testify/require"
)

// imageRegistry is a registry that servers of the local cloud reach, by plain HTTP.
type imageRegistry struct {
	address        string
	user, password string // who may use it; empty: everybody
	mutex          sync.Mutex
	pulled         []string // the repositories whose manifests were asked for
	wanted         []string // what was asked for by repository:tag, be it there or not
}

func startRegistry(t *testing.T, user, password string) *imageRegistry {
	t.Helper()
	listener, err := net.Listen("tcp", outside("1")+":0")
	require.NoError(t, err)
	r := &imageRegistry{address: listener.Addr().String(), user: user, password: password}
	images := registry.New(registry.Logger(log.New(t.Output(), "", 0)))
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
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
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return r
}

// forwarder is a proxy that asks a registry for whatever it is asked for.
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

// demoImage is the demonstration's image, as it is in the node image but for its time. With the same content the kubelet would take that of the node
// image for a pulled one, and want to ask its registry, which is none.
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

// push puts the demonstration's image into a repository.
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

// missing are those images that somebody wanted and are not among these, each once.
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

// mirrorName is a mirror that is reached through a proxy only.
const mirrorName = "mirror.example.org"

// imagesComeFromRegistries has pods run images of a registry that wants to know who asks, and, through a proxy, of Docker Hub's mirror.
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
