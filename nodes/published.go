package nodes

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/gateway/seal"
	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/plan"
)

// TLS is how gateways treat TLS sessions of a host.
type TLS string

// They have no sessions, because the host is served by HTTP; they open sessions, with a certificate; or they pass them on unopened, by the name that the
// client sends.
const (
	NoTLS    TLS = ""
	OpensTLS TLS = "terminate"
	PassTLS  TLS = "passThrough"
)

// Publication is a service that gateways alone serve for an owner: a port, or the requests to a host.
type Publication struct {
	Name     string          `json:"name"`            // of small letters, digits and hyphens; no other publication has it
	Port     uint16          `json:"port"`            // of the gateways, passed on as it comes; 0 with a Host
	Host     string          `json:"host,omitempty"`  // such as www.example.org or *.example.org, served at ports 80 and 443
	Path     string          `json:"path,omitempty"`  // that requests to the host begin with
	TLS      TLS             `json:"tls,omitempty"`   // of the host
	Since    time.Time       `json:"since,omitzero"`  // when it was published first
	Backends []route.Backend `json:"backends"`        // the servers, with their ports
	Chain    []byte          `json:"chain,omitempty"` // certificates of the host in PEM, its own first; none: each gateway signs one itself
	Key      []byte          `json:"key,omitempty"`   // in PEM
}

// publications are all services of some gateways, by their owners.
type publications map[string]Publication

const (
	vaultPublished = "published"
	// publishedNamespace stands where routes of a cluster have the namespace of their Service.
	publishedNamespace = "burano"
	// servePatience is how long a gateway may take until it serves its new routes.
	servePatience = 40 * time.Second
)

// Publish makes gateways alone serve an owner's publication in place of the former one (nil: none any more), and returns when each of them serves it.
// Publications of other owners stay: a request for their port, or for their path of a host, is refused.
func (c *gateways) Publish(ctx context.Context, owner string, wanted *Publication) error {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	all, err := c.published(ctx)
	if err != nil {
		return err
	}
	former, there := all[owner]
	if wanted == nil {
		delete(all, owner)
	} else {
		made := *wanted
		made.Since = time.Now().UTC().Truncate(time.Second)
		if there {
			made.Since = former.Since
		}
		if err := all.admits(owner, made); err != nil {
			return err
		}
		all[owner] = made
	}
	if wanted == nil && !there {
		return nil
	}
	if _, err := all.http(); err != nil {
		return err
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := c.config.Vault.Store(ctx, vaultPublished, text); err != nil {
		return fmt.Errorf("store what gateways %s serve: %w", c.config.Name, err)
	}
	p := &plan.Plan{}
	for _, node := range c.config.gateways() {
		c.addStep(p, plan.Step{Name: stepPublished}, node, c.config.StepPatience, func(ctx context.Context, _ plan.Progress) error { return c.serve(ctx, node, all) })
	}
	_, err = p.Run(ctx)
	return err
}

// Published is the service that the gateways alone with this vault serve for an owner; nil for none.
func Published(ctx context.Context, vault Vault, owner string) (*Publication, error) {
	all, err := loadPublished(ctx, vault)
	if one, there := all[owner]; there {
		return &one, err
	}
	return nil, err
}

func (c *gateways) published(ctx context.Context) (publications, error) {
	return loadPublished(ctx, c.config.Vault)
}

func loadPublished(ctx context.Context, vault Vault) (publications, error) {
	all := publications{}
	text, found, err := vault.Load(ctx, vaultPublished)
	if err == nil && found {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read what the gateways serve: %w", err)
	}
	return all, nil
}

// admits returns the reason why gateways cannot serve a publication beside the ones of others.
func (p publications) admits(owner string, wanted Publication) error {
	if (wanted.Port == 0) != (wanted.Host != "") {
		return errors.New("what gateways serve has a port or a host")
	}
	if why := refusedPort(wanted.Port); why != "" {
		return errors.New(why)
	}
	if wanted.TLS == OpensTLS && len(wanted.Chain) > 0 {
		if _, err := wanted.certificate(); err != nil {
			return err
		}
	}
	for id, other := range p {
		if id == owner {
			continue
		}
		ours, theirs := wanted.ports(), other.ports()
		common := slices.ContainsFunc(ours, func(port uint16) bool { return slices.Contains(theirs, port) })
		switch {
		case other.Name == wanted.Name:
			return fmt.Errorf("the gateways serve another route %s: give this one another name", other.Name)
		case !common:
		case wanted.Port != 0 || other.Port != 0:
			port := cmp.Or(wanted.Port, other.Port)
			return fmt.Errorf("port %d of the gateways belongs to the route %s: give this one another port, or a host that shares it", port, other.Name)
		case wanted.Host != other.Host:
		case (wanted.TLS == PassTLS) != (other.TLS == PassTLS):
			return fmt.Errorf("TLS sessions of %s are opened for one of the routes %s and %s, and passed through for the other: give them different hosts", wanted.Host, other.Name, wanted.Name)
		case wanted.TLS == PassTLS || wanted.path().Key() == other.path().Key():
			return fmt.Errorf("%s%s belongs to the route %s: give this one another host or path", wanted.Host, wanted.Path, other.Name)
		case len(wanted.Chain) > 0 && len(other.Chain) > 0 && !bytes.Equal(wanted.Chain, other.Chain):
			return fmt.Errorf("the host %s has the certificate of the route %s: give this one the same, or none", wanted.Host, other.Name)
		}
	}
	return nil
}

// ports are the gateways' ports that serve it.
func (p Publication) ports() []uint16 {
	switch {
	case p.Port != 0:
		return []uint16{p.Port}
	case p.TLS == NoTLS:
		return []uint16{route.HTTPPort}
	case p.TLS == PassTLS:
		return []uint16{route.HTTPSPort}
	}
	return []uint16{route.HTTPPort, route.HTTPSPort}
}

// pool is the set of its servers.
func (p Publication) pool() route.Pool {
	pool := route.Pool{Namespace: publishedNamespace, Service: p.Name, Port: "servers", Backends: p.Backends}
	return pool
}

// path is the destination of requests to a host; requests without TLS are redirected to HTTPS where there is TLS.
func (p Publication) path() route.Path {
	return route.Path{Host: p.Host, Path: cmp.Or(p.Path, "/"), Pool: p.pool().Name(), Redirect: p.TLS == OpensTLS}
}

// certificate is that of its host, with its key, as gateways have it: written anew, so that nothing else reaches them.
func (p Publication) certificate() ([]byte, error) {
	pair, err := tls.X509KeyPair(p.Chain, p.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate and certificateKey of the host %s are no certificate and its key: %w", p.Host, err)
	}
	if key, ok := pair.Leaf.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() < 2048 {
		return nil, fmt.Errorf("the RSA key of the host %s has %d bits, and needs 2048", p.Host, key.N.BitLen())
	}
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return nil, err
	}
	var content []byte
	for _, one := range pair.Certificate {
		content = append(content, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: one})...)
	}
	return append(content, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...), nil
}

// tcp are the routes of ports, by these.
func (p publications) tcp() (routes []route.Route) {
	for _, one := range p {
		if one.Port != 0 {
			routes = append(routes, route.Route{Namespace: publishedNamespace, Service: one.Name, Port: "servers", GatewayPort: one.Port, Protocol: route.TCP, Backends: one.Backends, Since: one.Since})
		}
	}
	slices.SortFunc(routes, func(a, b route.Route) int { return cmp.Compare(a.GatewayPort, b.GatewayPort) })
	return routes
}

// http are the routes by hosts, by their keys in etcd.
func (p publications) http() (map[string]string, error) {
	var h route.HTTP
	listeners := map[uint16]route.Listener{}
	for _, owner := range slices.Sorted(maps.Keys(p)) {
		one := p[owner]
		if one.Host == "" {
			continue
		}
		for _, port := range one.ports() {
			l := listeners[port]
			l.Port, l.TLS, l.Passes = port, port == route.HTTPSPort, l.Passes || one.TLS == PassTLS
			if l.Since.IsZero() || one.Since.Before(l.Since) {
				l.Since = one.Since
			}
			listeners[port] = l
		}
		h.Pools = append(h.Pools, one.pool())
		site := route.Site{Namespace: publishedNamespace, Ingress: one.Name}
		if one.TLS == PassTLS {
			site = route.Site{Namespace: publishedNamespace, Kind: route.KindTLSRoute, Name: one.Name, Since: one.Since,
				Sessions: []route.Session{{Port: route.HTTPSPort, Host: one.Host, Targets: []route.Target{{Pool: one.pool().Name(), Weight: 1}}}}}
		} else {
			site.Paths = []route.Path{one.path()}
			if len(one.Chain) > 0 {
				site.Certificates = []route.Certificate{{Host: one.Host, Secret: one.Name}}
			}
		}
		h.Sites = append(h.Sites, site)
	}
	h.Listeners = slices.Collect(maps.Values(listeners))
	values := map[string]string{}
	for _, part := range h.Parts() {
		value, err := route.EncodePart(part)
		if err != nil {
			return nil, err
		}
		values[route.PartKey(part)] = string(value)
	}
	return values, nil
}

// writeRoutes makes the store of a gateway alone hold exactly the published routes, and returns the last changes.
func (c *gateways) writeRoutes(ctx context.Context, node Node, published publications) (at route.Applied, err error) {
	tcp := map[string]string{}
	for _, one := range published.tcp() {
		value, err := route.Encode(one)
		if err != nil {
			return at, err
		}
		tcp[route.Key(one)] = string(value)
	}
	web, err := published.http()
	if err != nil {
		return at, err
	}
	exactly := func(values map[string]string) func(map[string]string) (map[string]string, error) {
		return func(map[string]string) (map[string]string, error) { return values, nil }
	}
	return at, c.withStore(ctx, node, func(client *clientv3.Client) error {
		// A port that moves from TCP to hosts, or the other way round, is never free in between: the gateway gives it to the route while both want it.
		if at.HTTP, err = etcd.Fold(ctx, client, route.HTTPPrefix, exactly(web)); err != nil {
			return err
		}
		at.Routes, err = etcd.Fold(ctx, client, route.RoutesPrefix, exactly(tcp))
		return err
	})
}

// writeCertificates seals the certificates of published services for a gateway alone, once the gateway has published its key.
func (c *gateways) writeCertificates(ctx context.Context, node Node, published publications) (revision int64, err error) {
	contents := map[string][]byte{}
	for _, one := range published {
		if one.TLS == OpensTLS && len(one.Chain) > 0 {
			if contents[one.Name], err = one.certificate(); err != nil {
				return 0, err
			}
		}
	}
	return revision, c.withStore(ctx, node, func(client *clientv3.Client) error {
		var public [32]byte
		if len(contents) > 0 {
			if public, err = sealKeyOf(ctx, client, node.Name); err != nil {
				return err
			}
		}
		revision, err = etcd.Fold(ctx, client, route.CertificatesPrefix, func(held map[string]string) (map[string]string, error) {
			values := map[string]string{}
			for name, content := range contents {
				sum := sha256.Sum256(append(public[:], content...))
				one := route.Sealed{Gateway: node.Name, Namespace: publishedNamespace, Secret: name, Digest: hex.EncodeToString(sum[:])}
				key := route.SealedKey(one)
				if has, err := route.DecodeSealed(key, []byte(held[key])); err == nil && has.Digest == one.Digest {
					values[key] = held[key]
					continue
				}
				var err error
				if one.Box, err = seal.Close(public, content); err != nil {
					return nil, fmt.Errorf("seal the certificate of %s for %s: %w", name, node.Name, err)
				}
				value, err := route.EncodeSealed(one)
				if err != nil {
					return nil, err
				}
				values[key] = string(value)
			}
			return values, nil
		})
		return err
	})
}

// sealKeyOf waits until a gateway has published the key under which certificates for it are sealed.
func sealKeyOf(ctx context.Context, client *clientv3.Client, gateway string) (public [32]byte, err error) {
	return public, wait.Every(pollEvery).For(servePatience).Until(ctx, func(ctx context.Context) error {
		key := route.KeyOf(gateway)
		found, err := client.Get(ctx, key)
		if err != nil {
			return wait.Again(err)
		}
		if len(found.Kvs) == 0 {
			return wait.Again(fmt.Errorf("gateway %s has not said to what key certificates for it are sealed: journalctl -u burano-gateway says why", gateway))
		}
		one, err := route.DecodeKey(key, found.Kvs[0].Value)
		public = one.Public
		return err
	})
}

// How large the answer of a gateway's daemon may be, in bytes and in memory: it has some hundred bytes for each of its ports.
const (
	mostStatus        = 8 << 20
	mostStatusDecoded = 64 << 20
)

// awaitServed waits until a gateway serves the published services, up to these changes.
func (c *gateways) awaitServed(ctx context.Context, node Node, published publications, wanted route.Applied) error {
	client, err := c.connect(ctx, node)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return client.DialContext(ctx, "unix", route.StatusSocket)
	}}
	whose := map[string]string{}
	for _, one := range published {
		for _, port := range one.ports() {
			whose[strconv.Itoa(int(port))] = one.Name
		}
	}
	return wait.Every(pollEvery).For(servePatience).Until(ctx, func(ctx context.Context) error {
		var found struct {
			Trouble string        `json:"trouble"`
			Reached route.Applied `json:"reached"`
			Ports   []struct {
				Number  uint16 `json:"port"`
				Problem string `json:"problem"`
			} `json:"ports"`
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://gateway/status", nil)
		if err != nil {
			return err
		}
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			return wait.Again(fmt.Errorf("the daemon of gateway %s does not answer: %w", node.Name, err))
		}
		defer response.Body.Close()
		if err := door.DecodeJSON(response.Body, &found, mostStatus, mostStatusDecoded, "its answer"); err != nil {
			return wait.Again(fmt.Errorf("the daemon of gateway %s: %w", node.Name, err))
		}
		if found.Reached.Covers(wanted) {
			return nil
		}
		var problems []string
		if found.Trouble != "" {
			problems = append(problems, found.Trouble)
		}
		for _, port := range found.Ports {
			if port.Problem != "" {
				problems = append(problems, fmt.Sprintf("port %d of %s: %s", port.Number, whose[strconv.Itoa(int(port.Number))], port.Problem))
			}
		}
		return wait.Again(fmt.Errorf("gateway %s does not serve all that is published: %s", node.Name, cmp.Or(strings.Join(problems, "; "), "it has not read it yet")))
	})
}
