package haproxy

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/haproxytech/client-native/v6/models"

	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/gateway/traffic"
)

// The additions of Gateway API are paths of one port with conditions for requests (see set), backends with filters (see target), shares of requests by
// weight (see split), and TLS sessions that are passed through (see passing). Hosts, paths and weights are in maps and change at run time; another
// combination of conditions, or of filters, needs a reload. Users' texts for headers reach the configuration in hexadecimal or in base64 only.

// set is the paths of a port that have the same conditions. Requests that meet them are looked up among these paths, and go to the best entry of all sets:
// entries contain their rank (see score).
type set struct {
	match route.Match
	key   string // begins the keys of its entries
}

func matchKey(port uint16, m *route.Match) string {
	key := strconv.Itoa(int(port))
	if m != nil {
		said, _ := json.Marshal(m)
		key += fmt.Sprintf(".%.8x", sha256.Sum256(said))
	}
	return key + "|"
}

// setsOf returns the sets of a port with conditions, those with more of them first, as Gateway API ranks matches, and then the set without.
func setsOf(sites []route.Site, port uint16) []set {
	var sets []set
	seen := make(map[string]bool)
	for _, site := range byAge(sites) {
		for _, path := range site.Paths {
			key := matchKey(port, path.Match)
			if path.Port != port || seen[key] {
				continue
			}
			seen[key] = true
			one := set{key: key}
			if path.Match != nil {
				one.match = *path.Match
			}
			sets = append(sets, one)
		}
	}
	method := func(s set) int { return min(len(s.match.Method), 1) }
	slices.SortStableFunc(sets, func(a, b set) int {
		return cmp.Or(method(b)-method(a), len(b.match.Headers)-len(a.match.Headers), len(b.match.Queries)-len(a.match.Queries))
	})
	return sets
}

func byAge(sites []route.Site) []route.Site {
	return slices.SortedFunc(slices.Values(sites), func(a, b route.Site) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Ingress, b.Ingress))
	})
}

// score is the rank of an entry: an exact host name before a longer *.example.com and that before any, an exact path before a longer one, and for the same
// host and path one with conditions.
func score(p route.Path) int {
	const (
		named = 300 // more than any wildcard has bytes
		paths = 10_000
	)
	score := 0
	switch {
	case strings.HasPrefix(p.Host, "*"):
		score = len(p.Host)
	case p.Host != "":
		score = named
	}
	score *= paths
	if p.Exact {
		score += paths / 2
	} else {
		score += len(strings.TrimRight(p.Path, "/"))
	}
	score *= 2
	if p.Match != nil {
		score++
	}
	return score
}

// entry is the value of a path in a map: the section, the treatment of plain requests, its rank, and the number of shares of a split.
func entry(section string, p route.Path, shares int) string {
	plain := "-"
	if p.Redirect {
		plain = redirecting
	}
	value := fmt.Sprintf("%s:%s:%d", section, plain, score(p))
	if shares > 0 {
		value += ":" + strconv.Itoa(shares)
	}
	return value
}

// deepest is the maximum number of labels for the asterisk of a wildcard.
const deepest = 4

type ruleList struct{ rules models.HTTPRequestRules }

func (l *ruleList) set(name, expression string, condition ...string) {
	rule := &models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeSetDashVar, VarScope: "txn", VarName: name, VarExpr: expression}
	if len(condition) > 0 {
		rule.Cond, rule.CondTest = "if", strings.Join(condition, " ")
	}
	l.rules = append(l.rules, rule)
}

// tiers are the expressions of hosts in the order in which they are looked up.
func tiers(variable string) (names []string) {
	names = append(names, variable)
	for depth := range deepest {
		names = append(names, wild(depth+1))
	}
	return append(names, "any")
}

func wild(depth int) string { return "wild" + strconv.Itoa(depth) }

// wildcards is how *.example.com is made of a host, for one label and more.
func wildcards(depth int) string { return `regsub(^` + strings.Repeat(`[^.]+[.]`, depth) + `,*.)` }

// choose finds the best entry of all sets, where requestRules found one of Ingresses, or none.
func choose(sets []set, files webFiles) models.HTTPRequestRules {
	var l ruleList
	for depth := range deepest {
		l.set(wild(depth+1), "var(txn.host),"+wildcards(depth+1))
	}
	l.set("any", "str(*)")
	l.set("best", "int(-1)")
	l.set("best", "var(txn.found),field(3,:),add(0)", found)
	for _, s := range sets {
		l.set("meets", "int(1)")
		unless := func(condition string) { l.set("meets", "int(0)", "!{ "+condition+" }") }
		if s.match.Method != "" {
			unless("method " + s.match.Method)
		}
		for _, header := range s.match.Headers {
			unless(fmt.Sprintf("req.fhdr(%s),hex -m str %s", header.Name, hexadecimal(header.Value)))
		}
		for _, query := range s.match.Queries {
			unless(fmt.Sprintf("url_param(%s),url_dec(1),hex -m str %s", query.Name, hexadecimal(query.Value)))
		}
		const meets, none = "{ var(txn.meets) -m int 1 }", "!{ var(txn.candidate) -m found }"
		l.rules = append(l.rules, &models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeUnsetDashVar, VarScope: "txn", VarName: "candidate"})
		for _, host := range tiers("host") {
			key := fmt.Sprintf("str(%s),concat(,txn.%s),concat(,txn.path", s.key, host)
			l.set("candidate", fmt.Sprintf("%s),map_str(%s)", key, files.ruleExact()), meets, none)
			l.set("candidate", fmt.Sprintf("%s,/),map_beg(%s)", key, files.ruleBelow()), meets, none)
		}
		const candidate = "{ var(txn.candidate) -m found }"
		l.set("rank", "var(txn.candidate),field(3,:),add(0)", candidate)
		l.set("ahead", "var(txn.rank),sub(txn.best)", candidate)
		const better = "{ var(txn.ahead) -m int gt 0 }"
		l.set("best", "var(txn.rank)", candidate, better)
		l.set("found", "var(txn.candidate)", candidate, better)
	}
	return l.rules
}

// chooseShare chooses the section that a request goes to.
func chooseShare(files webFiles) models.HTTPRequestRules {
	var l ruleList
	l.set("target", "var(txn.found),field(1,:)", found)
	const split = "{ var(txn.target) -m beg " + splitPrefix + " }"
	l.set("shares", "var(txn.found),field(4,:),add(0)", split)
	l.set("share", "rand(100000000),mod(txn.shares)", split)
	l.set("target", "var(txn.target),concat(/,txn.share),map_str("+files.splits()+")", split)
	return l.rules
}

func hexadecimal(text string) string { return strings.ToUpper(hex.EncodeToString([]byte(text))) }

// literal is a text in a format of HAProxy.
func literal(text string) string {
	if text == "" {
		return ""
	}
	return "%[str(" + base64.StdEncoding.EncodeToString([]byte(text)) + "),b64dec]"
}

// target is a backend of HAProxy: a pool, with the changes to requests for it. Without changes it is the pool as Ingresses use it.
type target struct {
	pool    string
	filters *route.Filters
	raw     bool // not HTTP
}

func (t target) section() string {
	if t.filters == nil && !t.raw {
		return poolSection(t.pool)
	}
	said, _ := json.Marshal(t.filters)
	return fmt.Sprintf("%s%.12x", poolPrefix, sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%t", t.pool, said, t.raw)))
}

// targetsOf returns the targets of paths and sessions, other than plain pools.
func targetsOf(sites []route.Site) map[string]target {
	targets := make(map[string]target)
	add := func(list []route.Target, raw bool) {
		for _, one := range list {
			if t := (target{pool: one.Pool, filters: one.Filters, raw: raw}); one.Weight > 0 && (one.Filters != nil || raw) {
				targets[t.section()] = t
			}
		}
	}
	for _, site := range sites {
		for _, path := range site.Paths {
			add(path.Targets, false)
		}
		for _, session := range slices.Concat(site.Sessions, site.Terminated, site.Connections) {
			add(session.Targets, true)
		}
	}
	return targets
}

func (t target) listener() listener {
	about := cmp.Or(t.pool, "answers")
	if t.raw {
		about += " TLS"
	}
	return listener{Section: t.section(), About: about, HTTP: !t.raw, Filters: t.filters}
}

// splitPrefix begins the map values of several targets. It is no section.
const (
	splitPrefix = "split-"
	maxShares   = 1000
)

// shares deals numbers out to targets by their weights: exactly where the weights allow it with few numbers, else as near as possible.
func shares(targets []route.Target, section func(route.Target) string) []string {
	divisor, sum := 0, 0
	for _, one := range targets {
		for a, b := one.Weight, divisor; ; a, b = b, a%b {
			if b == 0 {
				divisor = a
				break
			}
		}
		sum += one.Weight
	}
	if sum == 0 {
		return nil
	}
	count := min(sum/divisor, maxShares)
	var dealt []string
	passed := 0
	for _, one := range targets {
		passed += one.Weight
		upTo := (passed*count + sum/2) / sum
		if one.Weight > 0 && len(dealt) == upTo && upTo < count {
			upTo++ // no request is without a target
		}
		for len(dealt) < upTo {
			dealt = append(dealt, section(one))
		}
	}
	return dealt
}

// lead returns the value that leads to targets, with the entries of a split for several. It is empty without targets.
func (p *pages) lead(targets []route.Target, raw bool, wanted map[string]listener) (section string, count int) {
	dealt := shares(targets, func(one route.Target) string { return target{pool: one.Pool, filters: one.Filters, raw: raw}.section() })
	for _, one := range dealt {
		if _, there := wanted[one]; !there {
			return "", 0
		}
	}
	switch {
	case len(dealt) == 0:
		return "", 0
	case !slices.ContainsFunc(dealt, func(one string) bool { return one != dealt[0] }):
		return dealt[0], 0
	}
	name := fmt.Sprintf("%s%.12x", splitPrefix, sha256.Sum256([]byte(strings.Join(dealt, " "))))
	for i, one := range dealt {
		p.splits[name+"/"+strconv.Itoa(i)] = one
	}
	p.dealt[name] = dealt
	return name, len(dealt)
}

// rules enters the parts of Gateway API in sites.
func (p *pages) rules(h route.HTTP, wanted map[string]listener) {
	enter := func(entries map[string]string, key, value string) {
		if _, taken := entries[key]; !taken && !strings.HasPrefix(value, ":") {
			entries[key] = value
		}
	}
	for _, site := range byAge(h.Sites) {
		for _, path := range site.Paths {
			if path.Port == 0 {
				continue
			}
			section, count := p.lead(path.Targets, false, wanted)
			entries := p.ruleBelow
			if path.Exact {
				entries = p.ruleExact
			}
			enter(entries, matchKey(path.Port, path.Match)+path.Key(), entry(section, path, count))
		}
		for _, session := range slices.Concat(site.Sessions, site.Connections) {
			section, count := p.lead(session.Targets, true, wanted)
			enter(p.names, matchKey(session.Port, nil)+cmp.Or(session.Host, "*"), entry(section, route.Path{Host: session.Host}, count))
		}
	}
	for _, site := range byAge(h.Sites) {
		for _, session := range site.Terminated {
			if wanted[traffic.Section(session.Port)].Opens {
				section, count := p.lead(session.Targets, true, wanted)
				enter(p.names, openedKey(session.Port)+cmp.Or(session.Host, "*"), entry(section, route.Path{Host: session.Host}, count))
				enter(p.names, matchKey(session.Port, nil)+cmp.Or(session.Host, "*"), entry(opening(session.Port), route.Path{Host: session.Host}, 0))
			}
		}
	}
	open := func(port uint16, host string) {
		if wanted[traffic.Section(port)].Names {
			enter(p.names, matchKey(port, nil)+cmp.Or(host, "*"), entry(inside(port), route.Path{Host: host}, 0))
		}
	}
	for _, site := range h.Sites {
		for _, opened := range site.Opened {
			open(opened.Port, opened.Host)
		}
	}
	for _, l := range h.Listeners {
		if !l.NoIngress {
			open(l.Port, "") // Ingresses answer for any host
		}
	}
}

// filterRules are the changes to requests in the backend of a target, and to answers.
func filterRules(f *route.Filters) (requests models.HTTPRequestRules, responses models.HTTPResponseRules) {
	var l ruleList
	add := func(rule models.HTTPRequestRule) { l.rules = append(l.rules, &rule) }
	if f.Status != 0 {
		status := int64(f.Status)
		add(models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeReturn, ReturnStatusCode: &status})
		return l.rules, nil
	}
	if f.CORS != nil {
		preflight, answers := corsRules(f.CORS)
		l.rules, responses = append(l.rules, preflight...), answers
	}
	if h := f.Request; h != nil {
		for _, name := range h.Remove {
			add(models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeDelDashHeader, HdrName: name})
		}
		for _, pair := range h.Set {
			add(models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeSetDashHeader, HdrName: pair.Name, HdrFormat: literal(pair.Value)})
		}
		for _, pair := range h.Add {
			add(models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeAddDashHeader, HdrName: pair.Name, HdrFormat: literal(pair.Value)})
		}
	}
	if r := f.Rewrite; r != nil {
		format := literal(r.Path)
		if r.Prefix != nil {
			l.set("rest", fmt.Sprintf("path,bytes(%d)", *r.Prefix))
			format = literal(strings.TrimRight(r.Path, "/")) + "%[var(txn.rest)]"
		}
		if r.Prefix != nil && strings.TrimRight(r.Path, "/") == "" {
			l.set("rest", "str(/)", "!{ var(txn.rest) -m len gt 0 }")
		}
		add(models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeSetDashPath, PathFmt: format})
	}
	if f.Host != "" {
		add(models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeSetDashHeader, HdrName: "Host", HdrFormat: f.Host})
	}
	if r := f.Redirect; r != nil {
		to := r.Scheme + "://" + cmp.Or(r.Host, "%[var(txn.host)]")
		if r.Scheme == "http" && r.Port != route.HTTPPort || r.Scheme == "https" && r.Port != route.HTTPSPort {
			to += ":" + strconv.Itoa(int(r.Port))
		}
		code := int64(r.Code)
		add(models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeRedirect, RedirType: models.HTTPRequestRuleRedirTypePrefix, RedirValue: to, RedirCode: &code})
	}
	if h := f.Response; h != nil {
		for _, name := range h.Remove {
			responses = append(responses, &models.HTTPResponseRule{Type: models.HTTPResponseRuleTypeDelDashHeader, HdrName: name})
		}
		for _, pair := range h.Set {
			responses = append(responses, &models.HTTPResponseRule{Type: models.HTTPResponseRuleTypeSetDashHeader, HdrName: pair.Name, HdrFormat: literal(pair.Value)})
		}
		for _, pair := range h.Add {
			responses = append(responses, &models.HTTPResponseRule{Type: models.HTTPResponseRuleTypeAddDashHeader, HdrName: pair.Name, HdrFormat: literal(pair.Value)})
		}
	}
	return l.rules, responses
}

// filters puts filters into a backend that has none.
func (f *file) filters(section string, filters *route.Filters, id string) error {
	requests, responses := filterRules(filters)
	if err := f.client.ReplaceHTTPRequestRules("backend", section, requests, id, 0); err != nil {
		return err
	}
	return f.client.ReplaceHTTPResponseRules("backend", section, responses, id, 0)
}

// A port that passes TLS sessions through looks at the name of the server that a client asks for, which is not sealed. Names that are opened go on
// to a frontend of the same HAProxy that does it, with the client's address in front (PROXY protocol). Sessions of others are refused.

// helloPatience is the time limit for a client to send the name of the server.
const helloPatience = 5 * time.Second

const (
	insidePrefix  = "inside-"
	openingPrefix = "opening-"
)

// inside is the frontend that opens the sessions of HTTPS on a port; opening is the one that opens others.
func inside(port uint16) string  { return insidePrefix + strconv.Itoa(int(port)) }
func opening(port uint16) string { return openingPrefix + strconv.Itoa(int(port)) }

// openedKey begins the keys of names whose sessions are opened for backends that do not speak HTTP.
func openedKey(port uint16) string { return strconv.Itoa(int(port)) + ".opened|" }

// opens reports whether sites have sessions on a port that are opened for backends that do not speak HTTP.
func opens(sites []route.Site, port uint16) bool {
	return slices.ContainsFunc(sites, func(site route.Site) bool {
		return slices.ContainsFunc(site.Terminated, func(s route.Session) bool { return s.Port == port })
	})
}

// socketOf is a socket without a file: workers have no right to make files.
func socketOf(section string) string { return "abns@burano-" + section }

// contentRules are the rules of a frontend for connections.
type contentRules struct{ rules models.TCPRequestRules }

func (r *contentRules) set(name, expression string, condition ...string) {
	rule := &models.TCPRequestRule{Type: models.TCPRequestRuleTypeContent, Action: models.TCPRequestRuleActionSetDashVar, VarScope: "txn", VarName: name, Expr: expression}
	if len(condition) > 0 {
		rule.Cond, rule.CondTest = "if", strings.Join(condition, " ")
	}
	r.rules = append(r.rules, rule)
}

func (r *contentRules) reject(condition, test string) {
	r.rules = append(r.rules, &models.TCPRequestRule{Type: models.TCPRequestRuleTypeContent, Action: models.TCPRequestRuleActionReject, Cond: condition, CondTest: test})
}

// choose finds the target of a session by the client's name of the server.
func (r *contentRules) choose(name, key string, files webFiles) {
	r.set("host", name+",lower,rtrim(.)")
	r.set("host", "str(-)", "{ var(txn.host) -m reg [^a-z0-9._-] }")
	r.set("any", "str(*)")
	for depth := range deepest {
		r.set(wild(depth+1), "var(txn.host),"+wildcards(depth+1))
	}
	for _, host := range tiers("host") {
		r.set("found", fmt.Sprintf("str(%s),concat(,txn.%s),map_str(%s)", key, host, files.names()), "!"+found)
	}
	r.share(files)
}

func (r *contentRules) share(files webFiles) {
	for _, rule := range chooseShare(files) {
		r.set(rule.VarName, rule.VarExpr, strings.Fields(rule.CondTest)...)
	}
}

// passing puts the rules of a port that passes sessions through into its frontend, and makes the frontends that open others.
func (f *file) passing(l listener, id string) error {
	_, before, err := f.client.GetTCPRequestRules("frontend", l.Section, id)
	if err != nil {
		return err
	}
	patience := helloPatience.Milliseconds()
	r := contentRules{append(before, &models.TCPRequestRule{Type: models.TCPRequestRuleTypeInspectDashDelay, Timeout: &patience})}
	// Each of the following rules waits for the whole of the client's first message.
	r.reject("unless", "{ req.ssl_hello_type 1 }")
	r.choose("req.ssl_sni", matchKey(l.Port, nil), f.web)
	if l.Names {
		r.reject("unless", found)
	}
	r.rules = append(r.rules, &models.TCPRequestRule{Type: models.TCPRequestRuleTypeContent, Action: models.TCPRequestRuleActionAccept})
	if err := f.client.ReplaceTCPRequestRules("frontend", l.Section, r.rules, id, 0); err != nil {
		return err
	}
	if err := f.client.ReplaceBackendSwitchingRules(l.Section, models.BackendSwitchingRules{
		{Name: "%[var(txn.target)]", Cond: "if", CondTest: found},
		{Name: inside(l.Port)},
	}, id, 0); err != nil {
		return err
	}
	if err := f.within(inside(l.Port), id); err != nil {
		return err
	}
	frontend := l
	frontend.Section, frontend.Passes = inside(l.Port), false
	web := frontend.frontend(l.Section)
	web.From = defaultsName // clients were counted outside
	if err := f.frontend(web, id); err != nil {
		return err
	}
	if err := f.requests(frontend, id); err != nil {
		return err
	}
	if err := f.client.CreateBind("frontend", frontend.Section, f.bindWithin(frontend), id, 0); err != nil || !l.Opens {
		return err
	}
	return f.opening(l, id)
}

// opening makes the frontend that opens sessions for backends that do not speak HTTP.
func (f *file) opening(l listener, id string) error {
	section := opening(l.Port)
	if err := f.within(section, id); err != nil {
		return err
	}
	if err := f.frontend(&models.Frontend{FrontendBase: models.FrontendBase{Name: section, From: defaultsName}}, id); err != nil {
		return err
	}
	var r contentRules
	r.choose("ssl_fc_sni", openedKey(l.Port), f.web)
	r.reject("unless", found)
	if err := f.client.ReplaceTCPRequestRules("frontend", section, r.rules, id, 0); err != nil {
		return err
	}
	if err := f.client.ReplaceBackendSwitchingRules(section, models.BackendSwitchingRules{{Name: "%[var(txn.target)]", Cond: "if", CondTest: found}}, id, 0); err != nil {
		return err
	}
	l.Section, l.Passes = section, false
	bind := f.bindWithin(l)
	bind.Alpn = ""
	return f.client.CreateBind("frontend", section, bind, id, 0)
}

// streams puts the rules of a port of TCPRoutes into its frontend: all connections have one destination, which changes at run time.
func (f *file) streams(l listener, id string) error {
	_, before, err := f.client.GetTCPRequestRules("frontend", l.Section, id)
	if err != nil {
		return err
	}
	r := contentRules{before}
	r.set("found", fmt.Sprintf("str(%s*),map_str(%s)", matchKey(l.Port, nil), f.web.names()))
	r.share(f.web)
	r.reject("unless", found)
	if err := f.client.ReplaceTCPRequestRules("frontend", l.Section, r.rules, id, 0); err != nil {
		return err
	}
	return f.client.ReplaceBackendSwitchingRules(l.Section, models.BackendSwitchingRules{{Name: "%[var(txn.target)]", Cond: "if", CondTest: found}}, id, 0)
}

// within makes the backend that leads to a frontend of the same HAProxy and name.
func (f *file) within(section, id string) error {
	if err := f.client.CreateBackend(&models.Backend{BackendBase: models.BackendBase{Name: section, From: defaultsName}}, id, 0); err != nil {
		return err
	}
	server := &models.Server{Name: "inside", Address: socketOf(section), ServerParams: models.ServerParams{SendProxyV2: models.ServerParamsSendProxyV2Enabled}}
	return f.client.CreateServer("backend", section, server, id, 0)
}

// bindWithin is how such a frontend listens.
func (f *file) bindWithin(l listener) *models.Bind {
	bind := f.bind(l)
	bind.Address, bind.Port, bind.AcceptProxy = socketOf(l.Section), nil, true
	return bind
}
