package route

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// HTTPPrefix has everything that gateways serve by host name and path: one key for each port of theirs, for each Ingress, Gateway and route of Gateway
// API, and for each port of a Service that these name.
const HTTPPrefix = Prefix + "routes/http/"

// ListenersPrefix is where the ports are.
const ListenersPrefix = HTTPPrefix + "listeners/"

// KindsPrefix is where sites of other kinds than Ingress are, which gateways of releases without them pass over.
const KindsPrefix = HTTPPrefix + "kinds/"

// PoolsPrefix is where pools are.
const PoolsPrefix = HTTPPrefix + "pools/"

const sitesPrefix = HTTPPrefix + "sites/"

// Ports of HTTP and of HTTP over TLS.
const (
	HTTPPort  = 80
	HTTPSPort = 443
)

// Limits of hosts and paths: an entry of a map in HAProxy has room for both.
const (
	MaxHost = 253
	MaxPath = 1024
)

// HTTP is all that gateways serve by host name and path.
type HTTP struct {
	Listeners   []Listener
	Sites       []Site
	Pools       []Pool
	Authorities []Authorities
}

// Listener is a port on which gateways distinguish requests by host name and path.
type Listener struct {
	Port  uint16    `json:"port"`
	TLS   bool      `json:"tls,omitempty"`
	TCP   bool      `json:"tcp,omitempty"` // connections are passed on as they are; a gateway of an earlier release answers them as HTTP, with 404
	Since time.Time `json:"since"`         // the port was given to it; a younger Service does not get it
	// Passes means that TLS sessions of some server names are passed through, and the others opened.
	Passes bool `json:"passes,omitempty"`
	// Names means that sites list the names that are opened there, and that sessions of all others are refused. Publishers of former releases have no such
	// list.
	Names bool `json:"names,omitempty"`
	// NoIngress means that paths without a port are not served here.
	NoIngress bool `json:"noIngress,omitempty"`
	// Gateways are the only ones that listen; none: all.
	Gateways []string `json:"gateways,omitempty"`
	// Checks apply to clients' certificates of requests, and not of sessions for backends that do not speak HTTP.
	Checks []Check `json:"checks,omitempty"`
	HTTPOptions
}

// HTTPOptions are further options of ports for HTTP. A gateway of an earlier release ignores them.
type HTTPOptions struct {
	AcceptProxy bool `json:"acceptProxy,omitempty"` // as that of a [Route]
	AccessLog   bool `json:"accessLog,omitempty"`   // each request is written to the log, in JSON
	Compress    bool `json:"compress,omitempty"`    // texts are compressed for clients that accept it
}

// Site is the gateways' configuration for an Ingress, a Gateway or a route. No other one has the same path of the same host with the same match.
type Site struct {
	Namespace string    `json:"namespace"`
	Ingress   string    `json:"ingress,omitempty"` // its name, or
	Kind      string    `json:"kind,omitempty"`    // of Gateway API, and
	Name      string    `json:"name,omitempty"`
	Since     time.Time `json:"since,omitzero"` // the older of two routes comes first
	Paths     []Path    `json:"paths"`
	Sessions  []Session `json:"sessions,omitempty"`
	// Terminated are sessions that a gateway opens for TLSRoutes: backends get the content. A gateway of an earlier release refuses them.
	Terminated []Session `json:"terminated,omitempty"`
	// Connections are the destinations of whole ports, of TCPRoutes; their sessions have no host.
	Connections  []Session     `json:"connections,omitempty"`
	Opened       []Opened      `json:"opened,omitempty"`
	Certificates []Certificate `json:"certificates,omitempty"`
	// Default is the Secret, in the site's namespace, whose certificate is shown for hosts that have none; "": none. Gateways of an earlier release show one
	// of their own.
	Default string `json:"defaultCertificate,omitempty"`
}

// Path is where requests go that ask a host for a path.
type Path struct {
	Host     string `json:"host,omitempty"` // www.example.com, *.example.com (one label more), or empty: any
	Path     string `json:"path"`
	Exact    bool   `json:"exact,omitempty"`    // else also the paths below it
	Pool     string `json:"pool,omitempty"`     // see Pool.Name
	Redirect bool   `json:"redirect,omitempty"` // requests without TLS are sent to HTTPS

	// Port is the only one where the path is served, by Gateway API: then *.example.com covers any number of labels. Without it, those of Ingresses.
	Port    uint16   `json:"port,omitempty"`
	Match   *Match   `json:"match,omitempty"`
	Targets []Target `json:"targets,omitempty"` // instead of Pool
	// Gateways are the only ones that serve it; none: all.
	Gateways []string `json:"gateways,omitempty"`
	// Rules treat the requests of a path without a port, instead of Pool; the first whose match is met counts. A gateway of an earlier release uses Pool.
	Rules []Rule `json:"rules,omitempty"`
}

// Key is the host, * for any, with the path; a path with its subpaths ends with one slash. Equivalent paths of one kind have the same key.
func (p Path) Key() string {
	host := cmp.Or(p.Host, "*")
	if p.Exact {
		return host + p.Path
	}
	return host + strings.TrimRight(p.Path, "/") + "/"
}

// AllSessions are the sessions of the site, however they are passed on.
func (s Site) AllSessions() []Session {
	return slices.Concat(s.Sessions, s.Terminated, s.Connections)
}

// Certificate names the Secret (of type kubernetes.io/tls) of a host's certificate.
type Certificate struct {
	Host      string `json:"host"`
	Secret    string `json:"secret"`
	Namespace string `json:"namespace,omitempty"` // "": that of the site
	// Gateways are the only ones that show it; none: all.
	Gateways []string `json:"gateways,omitempty"`
}

// Pool is the backends of a port of a Service.
type Pool struct {
	Namespace string    `json:"namespace"`
	Service   string    `json:"service"`
	Port      string    `json:"port"` // its name, or its number when it has none
	Backends  []Backend `json:"backends"`
	// Affinity is that of a [Route], in seconds.
	Affinity int64 `json:"affinitySeconds,omitempty"`
}

// Name is the pool's name, by which paths refer to it.
func (p Pool) Name() string { return p.Namespace + "/" + p.Service + "/" + p.Port }

// Part is one key of HTTP: one of its fields is set.
type Part struct {
	Version  int       `json:"version"`
	Listener *Listener `json:"listener,omitempty"`
	Site     *Site     `json:"site,omitempty"`
	Pool     *Pool     `json:"pool,omitempty"`
	// Authorities is unknown to gateways of earlier releases.
	Authorities *Authorities `json:"authorities,omitempty"`
}

// For is the part of it for one gateway.
func (h HTTP) For(gateway string) HTTP {
	own := HTTP{Listeners: servedBy(gateway, h.Listeners, func(l Listener) []string { return l.Gateways }), Pools: h.Pools, Authorities: h.Authorities}
	for i := range own.Listeners {
		own.Listeners[i].Checks = servedBy(gateway, own.Listeners[i].Checks, func(c Check) []string { return c.Gateways })
	}
	sessions := func(list []Session) []Session {
		return servedBy(gateway, list, func(s Session) []string { return s.Gateways })
	}
	for _, site := range h.Sites {
		site.Paths = servedBy(gateway, site.Paths, func(p Path) []string { return p.Gateways })
		site.Sessions, site.Terminated, site.Connections = sessions(site.Sessions), sessions(site.Terminated), sessions(site.Connections)
		site.Opened = servedBy(gateway, site.Opened, func(o Opened) []string { return o.Gateways })
		site.Certificates = servedBy(gateway, site.Certificates, func(c Certificate) []string { return c.Gateways })
		own.Sites = append(own.Sites, site)
	}
	return own
}

// servedBy are the elements of a list that a gateway serves: the ones that name it, and the ones that name none.
func servedBy[T any](gateway string, list []T, gateways func(T) []string) []T {
	return slices.DeleteFunc(slices.Clone(list), func(one T) bool { return len(gateways(one)) > 0 && !slices.Contains(gateways(one), gateway) })
}

// Parts takes it apart.
func (h HTTP) Parts() []Part {
	var parts []Part
	for _, one := range h.Listeners {
		parts = append(parts, Part{Listener: &one})
	}
	for _, one := range h.Sites {
		parts = append(parts, Part{Site: &one})
	}
	for _, one := range h.Pools {
		parts = append(parts, Part{Pool: &one})
	}
	for _, one := range h.Authorities {
		parts = append(parts, Part{Authorities: &one})
	}
	return parts
}

// Assemble puts parts together.
func Assemble(parts []Part) (h HTTP) {
	for _, part := range parts {
		switch {
		case part.Listener != nil:
			h.Listeners = append(h.Listeners, *part.Listener)
		case part.Site != nil:
			h.Sites = append(h.Sites, *part.Site)
		case part.Pool != nil:
			h.Pools = append(h.Pools, *part.Pool)
		case part.Authorities != nil:
			h.Authorities = append(h.Authorities, *part.Authorities)
		}
	}
	return h
}

// PartKey is the key of a part in etcd.
func PartKey(p Part) string {
	switch {
	case p.Listener != nil && len(p.Listener.Checks) > 0:
		return CheckedPrefix + strconv.Itoa(int(p.Listener.Port))
	case p.Listener != nil:
		return ListenersPrefix + strconv.Itoa(int(p.Listener.Port))
	case p.Site != nil && p.Site.Kind != "":
		return KindsPrefix + p.Site.Kind + "/" + p.Site.Namespace + "/" + p.Site.Name
	case p.Site != nil:
		return sitesPrefix + p.Site.Namespace + "/" + p.Site.Ingress
	case p.Pool != nil:
		return PoolsPrefix + p.Pool.Name()
	case p.Authorities != nil:
		return AuthoritiesPrefix + p.Authorities.Name()
	}
	return ""
}

var (
	// nameForm is how Kubernetes calls objects and ports (RFC 1123).
	nameForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
	hostForm = regexp.MustCompile(`^(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
	// pathForm are the characters of a path in a URL (RFC 3986, 3.3).
	pathForm = regexp.MustCompile(`^/([A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*$`)
	poolForm = regexp.MustCompile(`^[a-z0-9.-]+/[a-z0-9.-]+/[a-z0-9.-]+$`)
)

// ValidHost returns the fault of a host, or nil. Empty is any host.
func ValidHost(host string) error {
	if host != "" && (len(host) > MaxHost || !hostForm.MatchString(host)) {
		return fmt.Errorf("%q is not a host name like www.example.com or *.example.com", host)
	}
	return nil
}

// ValidPath returns the fault of a path, or nil.
func ValidPath(path string) error {
	if len(path) > MaxPath || !pathForm.MatchString(path) {
		return fmt.Errorf("%.100q is not the path of a URL: it begins with /, has the characters of RFC 3986 and at most %d of them", path, MaxPath)
	}
	return nil
}

// Validate returns the fault of a part, or nil.
func (p Part) Validate() error {
	var problems []error
	check := func(ok bool, format string, arguments ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, arguments...))
		}
	}
	named := func(what, name string) { check(nameForm.MatchString(name), "%s %q is not a name", what, name) }
	gateways := func(names []string) {
		for _, name := range names {
			named("gateway", name)
		}
	}
	switch {
	case p.Listener != nil:
		purpose, reserved := Reserved(p.Listener.Port)
		check(p.Listener.Port != 0 && !reserved, "port %d is not for gateways %s", p.Listener.Port, purpose)
		gateways(p.Listener.Gateways)
		problems = append(problems, p.Listener.validChecks())
		for _, one := range p.Listener.Checks {
			gateways(one.Gateways)
		}
	case p.Site != nil:
		named("namespace", p.Site.Namespace)
		if p.Site.Kind == "" {
			named("ingress", p.Site.Ingress)
		} else {
			named(strings.ToLower(p.Site.Kind), p.Site.Name)
			check(slices.Contains(siteKinds, p.Site.Kind), "%q is not a kind of Gateway API", p.Site.Kind)
		}
		for _, path := range p.Site.Paths {
			problems = append(problems, ValidHost(path.Host), ValidPath(path.Path), path.validate())
			gateways(path.Gateways)
		}
		for i, session := range p.Site.AllSessions() {
			kind := untouched
			if i >= len(p.Site.Sessions) && i < len(p.Site.Sessions)+len(p.Site.Terminated) {
				kind = opened
			}
			problems = append(problems, session.validate(kind))
			gateways(session.Gateways)
		}
		for _, opened := range p.Site.Opened {
			check(opened.Port != 0, "what is opened needs a port")
			problems = append(problems, ValidHost(opened.Host))
			check(opened.Owner == "" || secretForm.MatchString(opened.Owner), "%.100q is not a Gateway", opened.Owner)
			gateways(opened.Gateways)
		}
		if p.Site.Default != "" {
			named("secret", p.Site.Default)
		}
		for _, certificate := range p.Site.Certificates {
			check(certificate.Host != "", "a certificate is for a host")
			problems = append(problems, ValidHost(certificate.Host))
			named("secret", certificate.Secret)
			gateways(certificate.Gateways)
			check(certificate.Namespace == "" || nameForm.MatchString(certificate.Namespace), "namespace %q is not a name", certificate.Namespace)
		}
	case p.Pool != nil:
		named("namespace", p.Pool.Namespace)
		named("service", p.Pool.Service)
		named("port", p.Pool.Port)
		problems = append(append(problems, validBackends(p.Pool.Backends)...), validAffinity(time.Duration(p.Pool.Affinity)*time.Second))
	case p.Authorities != nil:
		problems = append(problems, p.Authorities.validate())
	default:
		check(false, "it is none of listener, site, pool and authorities")
	}
	return errors.Join(problems...)
}

// EncodePart gives a part's value in etcd.
func EncodePart(p Part) ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("encode %s: %w", PartKey(p), err)
	}
	p.Version = Version
	if p.Pool != nil {
		pool := *p.Pool
		pool.Backends = sorted(pool.Backends)
		p.Pool = &pool
	}
	return json.Marshal(p)
}

// DecodePart reads a key and its value back. An invalid one, or one that contradicts its key, is an error that names the key.
func DecodePart(key string, value []byte) (Part, error) {
	var p Part
	if err := decodeVersion(key, value); err != nil {
		return Part{}, err
	}
	if err := json.Unmarshal(value, &p); err != nil {
		return Part{}, fmt.Errorf("decode %q: %w", key, err)
	}
	if err := p.Validate(); err != nil {
		return Part{}, fmt.Errorf("decode %q: %w", key, err)
	}
	if is := PartKey(p); is != key {
		return Part{}, fmt.Errorf("decode %q: the value is about %s", key, is)
	}
	return p, nil
}

func decodeVersion(key string, value []byte) error {
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(value, &version); err != nil {
		return fmt.Errorf("decode %q: %w", key, err)
	}
	if version.Version != Version {
		return fmt.Errorf("decode %q: version %d is not understood, only %d is; is this gateway older than the publisher?", key, version.Version, Version)
	}
	return nil
}
