package publish

import (
	"cmp"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/burano/burano/gateway/nginx"
	"github.com/burano/burano/gateway/route"
)

// Controller is the controller of IngressClasses for the gateways.
const Controller = "burano.io/gateway"

// AnnotationRedirect is "false" to answer plain requests for hosts with a certificate, which are redirected to HTTPS by default, or "true" to redirect
// requests for all hosts of the Ingress.
const AnnotationRedirect = "burano.io/ssl-redirect"

// Reasons of complaints about an Ingress.
const (
	ReasonPathConflict = "HostPathConflict"   // another Ingress has the host and path, or a certificate for the host
	ReasonPath         = "HostOrPathInvalid"  // gateways cannot match requests by it
	ReasonBackend      = "BackendNotFound"    // the Service, or its port, is not there or cannot be a backend
	ReasonCertificate  = "InvalidCertificate" // a Secret holds no certificate that gateways can show
	kindIngress        = "Ingress"            // of a complaint
	kindClass          = "IngressClass"
	annotationClass    = "kubernetes.io/ingress.class"
	annotationDefault  = "ingressclass.kubernetes.io/is-default-class"
)

// World is the state of Kubernetes on which sites depend.
type World struct {
	Ingresses      []*networking.Ingress
	Classes        []*networking.IngressClass
	Services       []*core.Service
	EndpointSlices []*discovery.EndpointSlice
	Secrets        []*core.Secret    // of type kubernetes.io/tls
	GatewayAPI     *GatewayAPI       // nil: not known
	ConfigMaps     []*core.ConfigMap // of authorities, to which Gateway API's objects refer
	Gateways       []route.Gateway
}

// Sites is the desired state of the gateways by host name and path.
type Sites struct {
	route.HTTP
	Certificates map[types.NamespacedName][]byte // PEM: the certificate, its chain, its key
	Complaints   []Complaint
	wanted       []route.Listener // ports that Ingresses and Gateways want, and since when
	ours         []*networking.Ingress
	gateways     []*gatewayState
	sets         []*listenerGroup
	policies     []*policyState
	routes       []*routeState
	partial      bool                   // the state of Gateway API is unknown
	conflicts    map[uint16]route.Route // the owner of a contested port
	udp          map[uint16]route.UDP   // ports that Gateways want
	udpConflicts map[uint16]route.Route // the owner of a contested one
}

// SitesOf returns the sites for Ingresses and Gateways of a class with our [Controller]. Of two with the same path of a host the older one gets it. It is
// a function of its arguments alone, independent of their order.
func SitesOf(w World) Sites {
	s := Sites{Certificates: make(map[types.NamespacedName][]byte), partial: w.GatewayAPI == nil}
	s.ours = oursOf(w.Ingresses, w.Classes)
	if len(s.ours) == 0 && (s.partial || w.GatewayAPI.empty()) {
		return s
	}
	b := builder{
		Sites: &s, services: make(map[types.NamespacedName]*core.Service), slices: bySlices(w.EndpointSlices), secrets: make(map[types.NamespacedName]*core.Secret),
		pools: make(map[string]route.Pool), paths: make(map[string]*networking.Ingress), certified: make(map[string]*networking.Ingress),
		configMaps: configMapsByName(w.ConfigMaps), bundles: make(map[string]route.Authorities), complained: make(map[Complaint]bool), held: make(map[string][]held),
		regexes: newBudget(maxRegexes), conditions: newBudget(maxConditions), conditional: make(map[string]bool),
	}
	for _, service := range w.Services {
		b.services[types.NamespacedName{Namespace: service.Namespace, Name: service.Name}] = service
	}
	for _, secret := range w.Secrets {
		b.secrets[types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}] = secret
	}
	for _, ingress := range s.ours {
		b.add(ingress)
	}
	for i, ingress := range s.ours {
		b.fallbacks(ingress, i, &s.HTTP.Sites[i])
	}
	b.canaries()
	b.others()
	b.uncertified()
	if len(s.ours) > 0 {
		s.wanted = []route.Listener{{Port: route.HTTPPort, Since: s.ours[0].CreationTimestamp.UTC()}}
	}
	https := route.Listener{Port: route.HTTPSPort, TLS: true}
	if first := slices.IndexFunc(s.ours, func(i *networking.Ingress) bool { return uses(i, https) }); first >= 0 {
		https.Since = s.ours[first].CreationTimestamp.UTC()
		s.wanted = append(s.wanted, https)
	}
	s.Authorities = b.authorities()
	if w.GatewayAPI != nil {
		g := gatewayBuilder{builder: &b, api: *w.GatewayAPI, nodes: w.Gateways, parents: make(map[parentKey]*listenerGroup), namespaces: make(map[string]labels.Set), ports: make(map[uint16]*route.Listener), uses: make(map[uint16][]use), udp: make(map[uint16]route.UDP)}
		for _, l := range s.wanted {
			g.ports[l.Port] = &l
			if l.TLS {
				g.uses[l.Port] = []use{{}}
			}
		}
		g.build()
		s.Authorities = b.authorities()
		s.wanted, s.gateways, s.sets, s.routes, s.policies, s.udp = nil, g.gateways, g.sets, g.routes, g.policies, g.udp
		for _, port := range slices.Sorted(maps.Keys(g.ports)) {
			s.wanted = append(s.wanted, *g.ports[port])
		}
	}
	options, wrong := optionsOf(w.Classes)
	for i := range s.wanted {
		s.wanted[i].HTTPOptions = options
	}
	s.Complaints = append(s.Complaints, wrong...)
	used := poolsOf(s.HTTP.Sites) // routes without a Gateway have pools, too
	for _, name := range slices.Sorted(maps.Keys(b.pools)) {
		if used[name] {
			s.Pools = append(s.Pools, b.pools[name])
		}
	}
	return s
}

// poolsOf are the names of the pools that sites lead to.
func poolsOf(sites []route.Site) map[string]bool {
	used := make(map[string]bool)
	for _, site := range sites {
		for _, path := range site.Paths {
			used[path.Pool] = true
		}
		for target := range site.Targets() {
			used[target.Pool] = true
		}
	}
	return used
}

// oursOf gives the Ingresses for the gateways, the oldest first. One without a class is of the default class.
func oursOf(ingresses []*networking.Ingress, classes []*networking.IngressClass) (ours []*networking.Ingress) {
	names := make(map[string]bool)
	byDefault := false
	for _, class := range classes {
		if class.Spec.Controller == Controller {
			names[class.Name] = true
			byDefault = byDefault || class.Annotations[annotationDefault] == "true"
		}
	}
	for _, ingress := range ingresses {
		former, said := ingress.Annotations[annotationClass]
		switch {
		case ingress.Spec.IngressClassName != nil && names[*ingress.Spec.IngressClassName],
			ingress.Spec.IngressClassName == nil && said && names[former],
			ingress.Spec.IngressClassName == nil && !said && byDefault:
			ours = append(ours, ingress)
		}
	}
	slices.SortFunc(ours, func(a, b *networking.Ingress) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return ours
}

// uses reports whether gateways serve an Ingress on a listener.
func uses(ingress *networking.Ingress, l route.Listener) bool {
	return !l.NoIngress && (!l.TLS || len(ingress.Spec.TLS) > 0)
}

// assignPorts records the ports that the Ingresses got, and the owners of the others.
func (s *Sites) assignPorts(won []route.Listener, conflicts map[uint16]route.Route) {
	s.Listeners, s.conflicts = won, conflicts
	s.HTTP.Sites = slices.DeleteFunc(s.HTTP.Sites, func(site route.Site) bool {
		return len(site.Paths)+len(site.Certificates)+len(site.AllSessions()) == 0 && site.Default == ""
	})
	safe := slices.ContainsFunc(won, func(l route.Listener) bool { return l.TLS && !l.NoIngress })
	for i := range s.HTTP.Sites {
		site := &s.HTTP.Sites[i]
		for j := range site.Paths {
			site.Paths[j].Redirect = site.Paths[j].Redirect && safe
		}
	}
	for _, ingress := range s.ours {
		for _, l := range s.wanted {
			holder, taken := conflicts[l.Port]
			if !taken || !uses(ingress, l) {
				continue
			}
			s.Complaints = append(s.Complaints, ingressComplaint(ingress, ReasonConflict,
				"port %d of the gateways does not serve the Ingress: it belongs to the Service %s, which is older. Move it with the Service's annotation %s, or do not publish it (%s: \"false\").",
				l.Port, holder, AnnotationPort, AnnotationPublish))
		}
	}
}

func ingressComplaint(ingress *networking.Ingress, reason, format string, arguments ...any) Complaint {
	return Complaint{Kind: kindIngress, Namespace: ingress.Namespace, Name: ingress.Name, UID: ingress.UID, Reason: reason, Message: fmt.Sprintf(format, arguments...)}
}

// builder collects the rules of Ingresses, the oldest first.
type builder struct {
	*Sites
	services    map[types.NamespacedName]*core.Service
	slices      map[types.NamespacedName][]*discovery.EndpointSlice
	secrets     map[types.NamespacedName]*core.Secret
	pools       map[string]route.Pool
	paths       map[string]*networking.Ingress // the owner of a path of a host
	certified   map[string]*networking.Ingress // the owner of the certificate of a host
	configMaps  map[types.NamespacedName]*core.ConfigMap
	bundles     map[string]route.Authorities // by their names
	wishes      []wished                     // of ours
	complained  map[Complaint]bool
	held        map[string][]held // by host
	regexes     budget
	conditions  budget          // of canaries
	conditional map[string]bool // conditions that are counted
}

func (b *builder) complain(ingress *networking.Ingress, reason, format string, arguments ...any) {
	c := ingressComplaint(ingress, reason, format, arguments...)
	if !b.complained[c] {
		b.complained[c] = true
		b.Complaints = append(b.Complaints, c)
	}
}

func (b *builder) add(ingress *networking.Ingress) {
	site := route.Site{Namespace: ingress.Namespace, Ingress: ingress.Name}
	safe := b.certificates(ingress, &site)
	w := b.wishOf(ingress)
	b.wishes = append(b.wishes, w)
	redirects := func(host string) bool { return w.redirect == yes || w.redirect == unsaid && safe(host) }
	if w.Canary == nil {
		b.serve(ingress, &site, w, redirects)
	}
	b.HTTP.Sites = append(b.HTTP.Sites, site)
}

// rulesOf are the rules of an Ingress by host, with those of further hosts.
func rulesOf(ingress *networking.Ingress, w wished) []networking.IngressRule {
	rules := slices.Clone(ingress.Spec.Rules)
	for _, alias := range w.Aliases {
		if len(ingress.Spec.Rules) > 0 {
			rule := ingress.Spec.Rules[0]
			rule.Host = alias
			rules = append(rules, rule)
		}
	}
	return rules
}

// serve adds the paths of an Ingress to its site.
func (b *builder) serve(ingress *networking.Ingress, site *route.Site, w wished, redirects func(host string) bool) {
	for _, rule := range rulesOf(ingress, w) {
		if w.AppRoot != "" && route.ValidHost(rule.Host) == nil {
			root := route.Path{Host: rule.Host, Path: "/", Exact: true, Redirect: redirects(rule.Host)}
			if b.claim(ingress, root, "") == nil {
				site.Paths = append(site.Paths, b.answer(ingress, w, root, route.Redirect{Location: w.AppRoot, Code: http.StatusFound}))
			}
		}
		if rule.HTTP == nil { // everything of the host goes to the default backend: see fallbacks
			if ingress.Spec.DefaultBackend == nil {
				b.complain(ingress, ReasonPath, "requests for the host %q are answered with 404: its rule has no paths, and the Ingress no default backend.", rule.Host)
			}
			continue
		}
		for _, path := range rule.HTTP.Paths {
			wanted, regex, w := pathOf(rule.Host, path), "", w
			wanted.Redirect = redirects(rule.Host)
			if w.PathIsRegex(wanted.Path, wanted.Exact) {
				regex = wanted.Path
				wanted.Path = route.LiteralPath(regex)
				if reason, err := b.regexFault(ingress, wanted.Host, regex); err != nil { // a path of another Ingress above it must not get its requests
					b.complain(ingress, reason, "requests for paths below %s are answered with 503: %v", wanted.Path, err)
					w.refused, regex = true, ""
				}
			}
			if err := errors.Join(route.ValidHost(wanted.Host), route.ValidPath(wanted.Path)); err != nil {
				b.complain(ingress, ReasonPath, "a path is not served: %v", err)
				continue
			}
			if holder := b.claim(ingress, wanted, regex); holder != nil {
				if holder == ingress && (w.refused || w.AppRoot != "" && wanted.Exact && wanted.Path == "/") {
					continue // it is closed already, or app-root answers
				}
				b.complain(ingress, ReasonPathConflict, "the path %s of the host %q is not served by this Ingress: it belongs to the Ingress %s/%s, which is older.",
					cmp.Or(regex, wanted.Path), wanted.Host, holder.Namespace, holder.Name)
				continue
			}
			if w.Away == nil && !w.refused {
				if wanted.Pool = b.pool(ingress, path.Backend); wanted.Pool == "" {
					if !w.Guarded() {
						continue
					}
					w.refused = true // other paths do not get its requests
				}
			}
			site.Paths = append(site.Paths, b.rules(ingress, w, wanted, regex))
		}
	}
}

// pathOf is a path of a rule as gateways match it.
func pathOf(host string, path networking.HTTPIngressPath) route.Path {
	return route.Path{Host: host, Path: cmp.Or(path.Path, "/"), Exact: path.PathType != nil && *path.PathType == networking.PathTypeExact}
}

// fallbacks give the default backend of an Ingress the requests for unmatched paths of its hosts; without rules it gets requests that no host matches.
func (b *builder) fallbacks(ingress *networking.Ingress, i int, site *route.Site) {
	w := b.wishes[i]
	if ingress.Spec.DefaultBackend == nil || w.Canary != nil {
		return
	}
	pool := ""
	if w.Away == nil && !w.refused {
		if pool = b.pool(ingress, *ingress.Spec.DefaultBackend); pool == "" {
			if !w.Guarded() {
				return
			}
			w.refused = true
		}
	}
	w.Regex = false // a default backend has no path
	hosts := []string{""}
	for _, rule := range rulesOf(ingress, w) {
		if route.ValidHost(rule.Host) == nil && !slices.Contains(hosts, rule.Host) {
			hosts = append(hosts, rule.Host)
		}
	}
	for _, host := range hosts {
		wanted := route.Path{Host: host, Path: "/", Pool: pool, Redirect: w.redirect == yes || w.redirect == unsaid && b.certified[host] == ingress}
		holder := b.claim(ingress, wanted, "")
		switch {
		case holder == nil:
			site.Paths = append(site.Paths, b.rules(ingress, w, wanted, ""))
		case host == "" && holder != ingress && len(ingress.Spec.Rules) == 0:
			b.complain(ingress, ReasonPathConflict, "the default backend is not served: that of the Ingress %s/%s is older.", holder.Namespace, holder.Name)
		}
	}
}

// claim gives a path to an Ingress, or returns its holder.
func (b *builder) claim(ingress *networking.Ingress, p route.Path, regex string) (holder *networking.Ingress) {
	key := claimKey(p, regex)
	if holder, taken := b.paths[key]; taken {
		return holder
	}
	at := route.Path{Host: p.Host, Path: p.Path}.Key() // of a regular expression, the path above all that it matches
	if regex != "" {
		for _, h := range b.held[p.Host] {
			if h.by.Namespace != ingress.Namespace && strings.HasPrefix(h.at, at) {
				return h.by
			}
		}
	}
	b.paths[key] = ingress
	if !p.Exact { // gateways prefer an exact path to each regular expression
		b.held[p.Host] = append(b.held[p.Host], held{at: at, by: ingress})
	}
	return nil
}

// held is a path of a host, and its Ingress. A regular expression of another namespace gets no requests for it, nor for paths below.
type held struct {
	at string
	by *networking.Ingress
}

// claimKey identifies a path of a host, or a regular expression of paths.
func claimKey(p route.Path, regex string) string {
	switch {
	case regex != "":
		return cmp.Or(p.Host, "*") + " regex " + regex
	case p.Exact:
		return p.Key() + " exact"
	}
	return p.Key()
}

// certificates determines the hosts with a valid one.
func (b *builder) certificates(ingress *networking.Ingress, site *route.Site) (safe func(host string) bool) {
	valid := map[string]bool{}
	for _, section := range ingress.Spec.TLS {
		if section.SecretName == "" {
			continue // the hosts show the certificate of hosts that have none
		}
		hosts := slices.Clone(section.Hosts)
		if len(hosts) == 0 {
			for _, rule := range ingress.Spec.Rules {
				hosts = append(hosts, rule.Host)
			}
			if len(hosts) == 0 {
				hosts = []string{""}
			}
		}
		name := types.NamespacedName{Namespace: ingress.Namespace, Name: section.SecretName}
		content, err := b.certificate(name)
		if err != nil {
			named := slices.DeleteFunc(slices.Clone(hosts), func(host string) bool { return host == "" })
			b.complain(ingress, ReasonCertificate, "the hosts %s are served with a certificate that the gateway signed itself: the Secret %s: %v",
				cmp.Or(strings.Join(named, ", "), "without a certificate"), section.SecretName, err)
			continue
		}
		for _, host := range hosts {
			if err := route.ValidHost(host); err != nil {
				b.complain(ingress, ReasonPath, "a host of tls: %v", err)
				continue
			}
			if host == "" {
				b.byDefault(ingress, site, section.SecretName, content)
				continue
			}
			if holder, taken := b.certified[host]; taken {
				valid[host] = true
				if holder != ingress {
					other := slices.IndexFunc(b.HTTP.Sites, func(s route.Site) bool { return s.Namespace == holder.Namespace && s.Ingress == holder.Name })
					same := func(c route.Certificate) bool { return c.Host == host && c.Secret == section.SecretName }
					if holder.Namespace != ingress.Namespace || !slices.ContainsFunc(b.HTTP.Sites[other].Certificates, same) {
						b.complain(ingress, ReasonPathConflict, "the host %s has the certificate of the Ingress %s/%s, which is older.", host, holder.Namespace, holder.Name)
					}
				}
				continue
			}
			b.certified[host], valid[host] = ingress, true
			b.Certificates[name] = content
			site.Certificates = append(site.Certificates, route.Certificate{Host: host, Secret: section.SecretName})
		}
	}
	return func(host string) bool {
		_, above, _ := strings.Cut(host, ".")
		return valid[host] || above != "" && valid["*."+above]
	}
}

// byDefault has hosts without a certificate of their own show that of an Ingress, of the oldest that wants it.
func (b *builder) byDefault(ingress *networking.Ingress, site *route.Site, secret string, content []byte) {
	first := slices.IndexFunc(b.HTTP.Sites, func(s route.Site) bool { return s.Default != "" })
	switch {
	case site.Default == secret || first >= 0 && b.HTTP.Sites[first].Namespace == ingress.Namespace && b.HTTP.Sites[first].Default == secret:
	case site.Default != "":
		b.complain(ingress, ReasonPathConflict, "hosts without a certificate are not shown that of the Secret %s: the Ingress has them show that of %s, which it names first.", secret, site.Default)
	case first >= 0:
		b.complain(ingress, ReasonPathConflict, "hosts without a certificate are not shown that of the Secret %s: they have that of the Ingress %s/%s, which is older.",
			secret, b.HTTP.Sites[first].Namespace, b.HTTP.Sites[first].Ingress)
	default:
		site.Default = secret
		b.Certificates[types.NamespacedName{Namespace: ingress.Namespace, Name: secret}] = content
	}
}

// uncertified complains of hosts for which Ingresses request TLS without a certificate, where none is shown for hosts without one.
func (b *builder) uncertified() {
	if slices.ContainsFunc(b.HTTP.Sites, func(s route.Site) bool { return s.Default != "" }) {
		return
	}
	for _, ingress := range b.ours {
		for _, section := range ingress.Spec.TLS {
			if section.SecretName == "" {
				b.complain(ingress, ReasonCertificate, "the hosts %s of tls are served with a certificate that the gateway signed itself: it names no Secret, and no Ingress has a tls without hosts, whose certificate all others show.",
					cmp.Or(strings.Join(section.Hosts, ", "), "without a certificate"))
			}
		}
	}
}

// certificate reads a Secret, and writes it anew: nothing but certificates and a key reaches the gateways.
func (b *builder) certificate(name types.NamespacedName) ([]byte, error) {
	secret, there := b.secrets[name]
	if !there {
		return nil, fmt.Errorf("there is none of type %s", core.SecretTypeTLS)
	}
	pair, err := tls.X509KeyPair(secret.Data[core.TLSCertKey], secret.Data[core.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("%s and %s are no certificate and its key: %w", core.TLSCertKey, core.TLSPrivateKeyKey, err)
	}
	if key, ok := pair.Leaf.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() < 2048 {
		return nil, fmt.Errorf("its RSA key has %d bits, and needs 2048", key.N.BitLen())
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

// unspoken are the protocols of ports that gateways do not use with pods of Ingresses. Other names than these do not name a protocol.
var unspoken = map[string]bool{"kubernetes.io/h2c": true, "kubernetes.io/wss": true, "https": true, "grpc": true, "grpcs": true}

// pool returns the name of a backend's pool; one of a missing Service is empty. "" is an invalid backend.
func (b *builder) pool(ingress *networking.Ingress, backend networking.IngressBackend) string {
	if backend.Service == nil {
		b.complain(ingress, ReasonBackend, "a path is not served: gateways send requests to Services, and not to other resources.")
		return ""
	}
	wanted := backend.Service.Port
	pool := route.Pool{Namespace: ingress.Namespace, Service: backend.Service.Name, Port: cmp.Or(wanted.Name, strconv.Itoa(int(wanted.Number)))}
	name := types.NamespacedName{Namespace: ingress.Namespace, Name: backend.Service.Name}
	service, there := b.services[name]
	number := -1
	if there {
		number = slices.IndexFunc(service.Spec.Ports, func(p core.ServicePort) bool {
			return (wanted.Name != "" && p.Name == wanted.Name || wanted.Name == "" && p.Port == wanted.Number) && (p.Protocol == core.ProtocolTCP || p.Protocol == "")
		})
	}
	switch {
	case !there:
		b.complain(ingress, ReasonBackend, "requests are answered with 503: there is no Service %s.", backend.Service.Name)
	case service.Spec.Type == core.ServiceTypeExternalName:
		b.complain(ingress, ReasonBackend, "requests are answered with 503: the Service %s is of type ExternalName, which has no endpoints.", backend.Service.Name)
	case number < 0:
		b.complain(ingress, ReasonBackend, "requests are answered with 503: the Service %s has no TCP port %s.", backend.Service.Name, pool.Port)
	default:
		port := service.Spec.Ports[number]
		if protocol := port.AppProtocol; protocol != nil && unspoken[*protocol] && ingress.Annotations[nginx.Prefix+"backend-protocol"] == "" {
			b.complain(ingress, ReasonUnheeded, "appProtocol %s of the port %s of the Service %s is not heeded behind an Ingress: gateways ask it by HTTP/1.1 without TLS.", *protocol, portName(port), service.Name)
		}
		pool.Port, pool.Backends, pool.Affinity = portName(port), backends(service, port, b.slices[name]), int64(affinityOf(service)/time.Second)
	}
	if err := (route.Part{Pool: &pool}).Validate(); err != nil {
		b.complain(ingress, ReasonBackend, "a path is not served: %v", err)
		return ""
	}
	b.pools[pool.Name()] = pool
	return pool.Name()
}

func redirectWish(annotations map[string]string) (wish, error) {
	return truth(annotations, AnnotationRedirect)
}
