package publish

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/burano/burano/gateway/nginx"
	"github.com/burano/burano/gateway/route"
)

// Reasons of complaints about annotations of ingress-nginx.
const (
	ReasonRefused = "AnnotationRefused" // the requests of the Ingress are answered with 503
	ReasonIgnored = "AnnotationIgnored" // an annotation has no effect
)

// Limits of a namespace. Gateways look through all regular expressions, and through all conditions, for a request of any host.
const (
	maxRegexes    = 64
	maxConditions = 32 // different headers and cookies of canaries
	namespaces    = 4  // how many times the limit all namespaces have together
)

// budget counts parts of a gateway that namespaces share.
type budget struct {
	used       map[string]int // by namespace
	total, max int
}

func newBudget(max int) budget { return budget{used: make(map[string]int), max: max} }

// take takes n parts for a namespace, or reports that there are not as many.
func (b *budget) take(namespace string, n int) error {
	if b.used[namespace]+n > b.max {
		return fmt.Errorf("a namespace has at most %d", b.max)
	}
	if b.total+n > b.max*namespaces {
		return fmt.Errorf("all namespaces have at most %d together", b.max*namespaces)
	}
	b.used[namespace] += n
	b.total += n
	return nil
}

// regexFault is the reason for which gateways do not take a regular expression, or nil.
func (b *builder) regexFault(ingress *networking.Ingress, host, regex string) (reason string, err error) {
	if err := route.ValidRegex(regex); err != nil {
		return ReasonPath, err
	}
	if host == "" {
		return ReasonRefused, errors.New(nginx.AnyHostText)
	}
	if err := b.regexes.take(ingress.Namespace, 1); err != nil {
		return ReasonRefused, fmt.Errorf("gateways take no more regular expressions: %w", err)
	}
	return "", nil
}

// conditionFault is the reason for which gateways do not take the conditions of a canary, or nil. Without them its weight decides.
func (b *builder) conditionFault(ingress *networking.Ingress, c nginx.Canary, regex string, rules int) error {
	if rules <= 1 {
		return nil
	}
	if regex != "" {
		if err := b.regexes.take(ingress.Namespace, rules-1); err != nil {
			return fmt.Errorf("gateways take no more regular expressions with conditions: %w", err)
		}
	}
	key := fmt.Sprintf("%s %q %q %q", ingress.Namespace, c.Header, c.Value, c.Cookie)
	if b.conditional[key] {
		return nil
	}
	if err := b.conditions.take(ingress.Namespace, 1); err != nil {
		return fmt.Errorf("gateways take no more conditions of canaries: %w", err)
	}
	b.conditional[key] = true
	return nil
}

// wished is the wish of an Ingress for its requests, by its annotations.
type wished struct {
	nginx.Settings
	refused  bool
	redirect wish
}

// wishOf reads the annotations of an Ingress. One that restricts clients, or changes destinations, and cannot be served closes the Ingress.
func (b *builder) wishOf(ingress *networking.Ingress) (w wished) {
	var findings []nginx.Finding
	w.Settings, findings = nginx.Read(ingress.Annotations)
	for _, rule := range ingress.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for _, path := range rule.HTTP.Paths {
			if f := w.PathFault(path); f != nil {
				findings = append(findings, *f)
			}
		}
	}
	w.refused = nginx.AnyRefused(findings)
	if text := nginx.Event(findings, nginx.Refused); text != "" {
		b.complain(ingress, ReasonRefused, "%s", text)
	}
	if text := nginx.Event(findings, nginx.Ignored); text != "" {
		b.complain(ingress, ReasonIgnored, "%s", text)
	}
	if text, there := ingress.Annotations[nginx.AnnotationIgnore]; there && text != "ignore" {
		b.complain(ingress, ReasonAnnotation, "the annotation %s must be \"ignore\", not %q; it is not heeded", nginx.AnnotationIgnore, text)
	}
	var err error
	if w.redirect, err = redirectWish(ingress.Annotations); err != nil {
		b.complain(ingress, ReasonAnnotation, "%v", err)
	}
	if w.redirect == unsaid && w.NoRedirect {
		w.redirect = no
	}
	if w.Filters.TLS != nil {
		if err := b.backendTLS(ingress, &w); err != nil {
			w.refused = true
			b.complain(ingress, ReasonRefused, "requests are answered with 503, because the annotation %sproxy-ssl-secret is refused: %v.", nginx.Prefix, err)
		}
	}
	return w
}

// backendTLS reads the Secret by which backends are asked over TLS.
func (b *builder) backendTLS(ingress *networking.Ingress, w *wished) error {
	tls := *w.Filters.TLS
	w.Filters.TLS = &tls
	if w.Secret == "" {
		return nil
	}
	name := types.NamespacedName{Namespace: ingress.Namespace, Name: w.Secret}
	if namespace, inner, both := strings.Cut(w.Secret, "/"); both {
		name = types.NamespacedName{Namespace: namespace, Name: inner}
	}
	if name.Namespace != ingress.Namespace {
		return fmt.Errorf("the Secret %s is in another namespace", name)
	}
	secret, there := b.secrets[name]
	if !there {
		return fmt.Errorf("there is no Secret %s of type %s", name.Name, core.SecretTypeTLS)
	}
	content, err := b.certificate(name)
	if err != nil {
		return fmt.Errorf("the Secret %s: %w", name.Name, err)
	}
	tls.Certificate, b.Certificates[name] = name.String(), content
	if !w.Verify {
		return nil
	}
	bundle, err := route.ReadAuthorities(string(secret.Data["ca.crt"]))
	if err != nil {
		return fmt.Errorf("ca.crt of the Secret %s: %w", name.Name, err)
	}
	tls.Authorities, err = b.bundle([]route.Authorities{bundle})
	return err
}

// rules gives a path the rules for its requests. The path leads to a pool already, or is refused.
func (b *builder) rules(ingress *networking.Ingress, w wished, p route.Path, regex string) route.Path {
	if w.Plain() && !w.refused && regex == "" {
		return p
	}
	filters := w.Filters
	switch {
	case w.refused:
		filters, p.Pool = route.Filters{Status: http.StatusServiceUnavailable}, ""
	case w.Away != nil:
		filters = route.Filters{Access: filters.Access, Limits: filters.Limits, OnlyTLS: filters.OnlyTLS, Redirect: w.Away}
		p.Pool = ""
	case w.Rewrite != "" && regex != "":
		filters.Rewrite = &route.Rewrite{Path: w.Rewrite, Regex: regex}
	case w.Rewrite != "":
		path := w.Rewrite
		for group := range 10 {
			path = strings.ReplaceAll(path, fmt.Sprintf("$%d", group), "")
		}
		filters.Rewrite = &route.Rewrite{Path: cmp.Or(path, "/")}
	}
	target := route.Target{Pool: p.Pool, Weight: 1}
	if filters != (route.Filters{}) {
		target.Filters = &filters
	}
	rule := route.Rule{Targets: []route.Target{target}}
	if regex != "" {
		rule.Match = &route.Match{Regex: regex}
	}
	closed := route.ClosedPool(ingress.Namespace)
	b.pools[closed.Name()] = closed
	p.Pool, p.Rules = closed.Name(), []route.Rule{rule}
	return p
}

// answer is a path whose requests gateways answer by themselves with a redirect.
func (b *builder) answer(ingress *networking.Ingress, w wished, p route.Path, to route.Redirect) route.Path {
	w.Settings = nginx.Settings{Away: &to, Filters: w.Filters}
	return b.rules(ingress, w, p, "")
}

// canaries give paths of other Ingresses of the namespace their second backends.
func (b *builder) canaries() {
	places, taken := make(map[*networking.Ingress]int, len(b.ours)), make(map[string]bool)
	for i, ingress := range b.ours {
		places[ingress] = i
	}
	for i, ingress := range b.ours {
		if b.wishes[i].Canary == nil {
			continue
		}
		for _, rule := range ingress.Spec.Rules {
			if rule.HTTP == nil {
				continue
			}
			for _, path := range rule.HTTP.Paths {
				// The main Ingress may have regular expressions, and its canary no annotation about them.
				wanted, regex := pathOf(rule.Host, path), ""
				key := claimKey(wanted, "")
				holder, there := b.paths[key]
				if !there {
					regex = path.Path
					key = claimKey(wanted, regex)
					holder, there = b.paths[key]
				}
				switch {
				case !there || holder.Namespace != ingress.Namespace:
					b.complain(ingress, ReasonPath, "the path %s of the host %q has no canary: no other Ingress of the namespace has it.", path.Path, rule.Host)
				case taken[key]:
					b.complain(ingress, ReasonPathConflict, "the path %s of the host %q has another canary, which is older.", path.Path, rule.Host)
				case !b.wishes[i].refused:
					taken[key] = true
					b.addCanary(ingress, *b.wishes[i].Canary, &b.HTTP.Sites[places[holder]], wanted, regex, path.Backend)
				}
			}
		}
	}
}

// addCanary adds the backend of a canary to the path of a site.
func (b *builder) addCanary(ingress *networking.Ingress, c nginx.Canary, site *route.Site, wanted route.Path, regex string, backend networking.IngressBackend) {
	at := slices.IndexFunc(site.Paths, func(p route.Path) bool {
		has := ""
		if len(p.Rules) > 0 && p.Rules[0].Match != nil {
			has = p.Rules[0].Match.Regex
		}
		return p.Host == wanted.Host && has == regex && (regex != "" || p.Key() == wanted.Key() && p.Exact == wanted.Exact)
	})
	if at < 0 {
		return // the path of the main Ingress is invalid
	}
	main := &site.Paths[at]
	last := route.Rule{Targets: []route.Target{{Pool: main.Pool, Weight: 1}}}
	if len(main.Rules) > 0 {
		last = main.Rules[0]
	}
	first := last.Targets[0]
	if first.Pool == "" {
		return // it answers by itself
	}
	second := first
	if second.Pool = b.pool(ingress, backend); second.Pool == "" {
		return
	}
	second.Weight = 1
	var rules []route.Rule
	add := func(to route.Target, change func(m *route.Match)) {
		m := route.Match{}
		if last.Match != nil {
			m = *last.Match
		}
		change(&m)
		rules = append(rules, route.Rule{Match: &m, Targets: []route.Target{to}})
	}
	header := func(value string) func(m *route.Match) {
		return func(m *route.Match) { m.Headers = []route.Pair{{Name: c.Header, Value: value}} }
	}
	if c.Header != "" {
		add(second, header(cmp.Or(c.Value, "always")))
		if c.Value == "" {
			add(first, header("never"))
		}
	}
	if c.Cookie != "" {
		add(second, func(m *route.Match) { m.Cookies = []route.Pair{{Name: c.Cookie, Value: "always"}} })
		add(first, func(m *route.Match) { m.Cookies = []route.Pair{{Name: c.Cookie, Value: "never"}} })
	}
	if err := b.conditionFault(ingress, c, regex, len(rules)+1); err != nil {
		b.complain(ingress, ReasonRefused, "the path %s of the host %q has no canary: %v", cmp.Or(regex, wanted.Path), wanted.Host, err)
		return
	}
	if c.Weight > 0 {
		first.Weight, second.Weight = c.Total-c.Weight, c.Weight
		last.Targets = []route.Target{first, second}
	}
	main.Rules = append(rules, last)
}

// others redirect the hosts with, or without, www to the hosts of Ingresses that want that, where nothing else has them.
func (b *builder) others() {
	for i, ingress := range b.ours {
		if !b.wishes[i].WWW || b.wishes[i].refused {
			continue
		}
		site := &b.HTTP.Sites[i]
		hosts := make(map[string]bool)
		for _, rule := range ingress.Spec.Rules {
			hosts[rule.Host] = route.ValidHost(rule.Host) == nil && rule.Host != "" && !strings.HasPrefix(rule.Host, "*")
		}
		for _, host := range slices.Sorted(maps.Keys(hosts)) {
			other, with := strings.CutPrefix(host, "www.")
			if !with {
				other = "www." + host
			}
			wanted := route.Path{Host: other, Path: "/"}
			if !hosts[host] || hosts[other] || route.ValidHost(other) != nil || b.claim(ingress, wanted, "") != nil {
				continue
			}
			site.Paths = append(site.Paths, b.answer(ingress, b.wishes[i], wanted, route.Redirect{Host: host, Code: http.StatusPermanentRedirect}))
		}
	}
}
