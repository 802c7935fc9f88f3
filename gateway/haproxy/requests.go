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

func matchKey(port uint16, m *route.Match) string { return markedKey(port, "", m) }

// markedKey begins the keys of the paths of a port with a mark.
func markedKey(port uint16, mark string, m *route.Match) string {
	key := strconv.Itoa(int(port)) + mark
	if m != nil {
		said, _ := json.Marshal(m)
		key += fmt.Sprintf(".%.8x", sha256.Sum256(said))
	}
	return key + "|"
}

// setsOf returns the sets of a port with conditions, those with more of them first, as Gateway API ranks matches, and then the set without.
func setsOf(sites []route.Site, port uint16, mark string) []set {
	var sets []set
	seen := make(map[string]bool)
	for _, site := range byAge(sites) {
		for _, path := range site.Paths {
			key := markedKey(port, mark, path.Match)
			if path.Port != port || seen[key] || regexOf(path.Match) != "" {
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
		return cmp.Or(method(b)-method(a), len(b.match.Headers)-len(a.match.Headers), len(b.match.Cookies)-len(a.match.Cookies), len(b.match.Queries)-len(a.match.Queries))
	})
	return sets
}

func byAge(sites []route.Site) []route.Site {
	return slices.SortedFunc(slices.Values(sites), func(a, b route.Site) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Ingress, b.Ingress))
	})
}

// score is the rank of an entry: an exact host name before a longer *.example.com and that before any, an exact path before a longer one, and for the same
// host and path one with conditions. A regular expression ranks by the literal part that begins it: its length is not a measure of the paths it matches.
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
	if regex := regexOf(p.Match); regex != "" {
		score += len(strings.TrimRight(route.LiteralPath(regex), "/"))
	} else if p.Exact {
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

// entry is the value of a path in a map: the section, the treatment of plain requests, its rank, the number of shares of a split, and marks.
func entry(section string, p route.Path, shares int, marks string) string {
	plain := "-"
	if p.Redirect {
		plain = redirecting
	}
	value := fmt.Sprintf("%s:%s:%d", section, plain, score(p))
	if shares > 0 || marks != "" {
		value += ":" + strconv.Itoa(shares)
	}
	if marks != "" {
		value += ":" + marks
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
func choose(sets []set, regexes []regexPath, files webFiles) models.HTTPRequestRules {
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
		for _, condition := range conditions(s.match) {
			unless(condition)
		}
		const meets, none = "{ var(txn.meets) -m int 1 }", "!{ var(txn.candidate) -m found }"
		l.rules = append(l.rules, &models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeUnsetDashVar, VarScope: "txn", VarName: "candidate"})
		for _, host := range tiers("host") {
			key := fmt.Sprintf("str(%s),concat(,txn.%s),concat(,txn.path", s.key, host)
			l.set("candidate", fmt.Sprintf("%s),map_str(%s)", key, files.ruleExact()), meets, none)
			l.set("candidate", fmt.Sprintf("%s,/),map_beg(%s)", key, files.ruleBelow()), meets, none)
		}
		l.better()
	}
	l.regexes(regexes, files)
	return l.rules
}

// better takes the candidate where its rank is the best until now.
func (l *ruleList) better() {
	const candidate, better = "{ var(txn.candidate) -m found }", "{ var(txn.ahead) -m int gt 0 }"
	l.set("rank", "var(txn.candidate),field(3,:),add(0)", candidate)
	l.set("ahead", "var(txn.rank),sub(txn.best)", candidate)
	l.set("best", "var(txn.rank)", candidate, better)
	l.set("found", "var(txn.candidate)", candidate, better)
}

// conditions are the conditions of a match, but for its path.
func conditions(m route.Match) (list []string) {
	if m.Method != "" {
		list = append(list, "method "+m.Method)
	}
	for _, header := range m.Headers {
		list = append(list, fmt.Sprintf("req.fhdr(%s),hex -m str %s", header.Name, hexadecimal(header.Value)))
	}
	for _, query := range m.Queries {
		list = append(list, fmt.Sprintf("url_param(%s),url_dec(1),hex -m str %s", query.Name, hexadecimal(query.Value)))
	}
	for _, cookie := range m.Cookies {
		list = append(list, fmt.Sprintf("req.cook(%s),hex -m str %s", cookie.Name, hexadecimal(cookie.Value)))
	}
	return list
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
	pool     string
	filters  *route.Filters
	raw      bool // not HTTP
	mirrored bool // for copies of requests
}

func (t target) section() string {
	if t.filters == nil && !t.raw && !t.mirrored {
		return poolSection(t.pool)
	}
	said, _ := json.Marshal(t.filters)
	if t.mirrored { // others stay unchanged
		said = append(said, mirrorPrefix...)
	}
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
			if one.Filters == nil || one.Filters.Mirrors == nil || one.Weight == 0 {
				continue
			}
			for _, m := range one.Filters.Mirrors.To {
				targets[mirrorTarget(m).section()] = mirrorTarget(m)
			}
		}
	}
	for _, site := range sites {
		for _, path := range site.Paths {
			add(path.Targets, false)
		}
		for _, session := range site.AllSessions() {
			add(session.Targets, true)
		}
	}
	return targets
}

func (t target) listener(files webFiles) listener {
	about := cmp.Or(t.pool, "answers")
	if t.raw {
		about += " TLS"
	}
	if t.mirrored {
		about += " copies"
	}
	return listener{Section: t.section(), About: about, HTTP: !t.raw, Filters: t.filters, Secure: t.words(files), Mirrored: t.mirrored}
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
func (p *pages) rules(h route.HTTP, wanted map[string]listener, guards guards) {
	enter := func(entries map[string]string, key, value string) {
		if _, taken := entries[key]; !taken && !strings.HasPrefix(value, ":") {
			entries[key] = value
		}
	}
	marks := make(map[uint16]string)
	for _, l := range h.Listeners {
		marks[l.Port] = mark(l)
		if _, served := wanted[traffic.Section(l.Port)]; served {
			p.ports[strconv.Itoa(int(l.Port))+mark(l)] = true
		}
	}
	sites := byAge(h.Sites)
	for _, site := range sites {
		for _, path := range site.Paths {
			if path.Port == 0 {
				continue
			}
			section, count := p.lead(path.Targets, false, wanted)
			if section == "" && site.Kind == "" { // no shorter path gets its requests around its rules: they are answered with 404
				section = traffic.Section(path.Port)
			}
			value := entry(section, path, count, guards.marks(site, path))
			entries := p.ruleBelow
			if path.Exact {
				entries = p.ruleExact
			}
			if regex := regexOf(path.Match); regex != "" {
				p.wants[anyForm(route.Path{Host: path.Host, Path: route.LiteralPath(regex)}.Key())] = true
				enter(p.ruleExact, regexKey(path.Port, marks[path.Port])+regexName(path), value)
				continue
			}
			p.wants[anyForm(path.Key())] = true
			enter(entries, markedKey(path.Port, marks[path.Port], path.Match)+path.Key(), value)
		}
		for _, session := range slices.Concat(site.Sessions, site.Connections) {
			section, count := p.lead(session.Targets, true, wanted)
			enter(p.names, matchKey(session.Port, nil)+cmp.Or(session.Host, "*"), entry(section, route.Path{Host: session.Host}, count, ""))
		}
	}
	p.sessions(sites, wanted, enter)
	for _, site := range sites {
		for _, session := range site.Terminated {
			if wanted[traffic.Section(session.Port)].Opens {
				section, count := p.lead(session.Targets, true, wanted)
				enter(p.names, openedKey(session.Port)+cmp.Or(session.Host, "*"), entry(section, route.Path{Host: session.Host}, count, ""))
				enter(p.names, matchKey(session.Port, nil)+cmp.Or(session.Host, "*"), entry(opening(session.Port), route.Path{Host: session.Host}, 0, ""))
			}
		}
	}
	open := func(port uint16, host string) {
		if wanted[traffic.Section(port)].Names {
			enter(p.names, matchKey(port, nil)+cmp.Or(host, "*"), entry(inside(port), route.Path{Host: host}, 0, ""))
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
func filterRules(f *route.Filters, section string) (requests models.HTTPRequestRules, responses models.HTTPResponseRules) {
	var l ruleList
	add := func(rule models.HTTPRequestRule) { l.rules = append(l.rules, &rule) }
	if f.Status != 0 {
		status := int64(f.Status)
		add(models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeReturn, ReturnStatusCode: &status})
		return l.rules, nil
	}
	admit(&l, f, section)
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
	if r := f.Rewrite; r != nil && r.Regex != "" {
		add(models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeReplaceDashPath, PathMatch: pattern(r.Regex), PathFmt: template(r.Path)})
	} else if r != nil {
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
	if r := f.Redirect; r != nil && (r.Location != "" || r.Scheme == "") {
		l.rules = append(l.rules, away(r)...)
	} else if r != nil {
		to := r.Scheme + "://" + cmp.Or(r.Host, "%[var(txn.host)]")
		if r.Scheme == "http" && r.Port != route.HTTPPort || r.Scheme == "https" && r.Port != route.HTTPSPort {
			to += ":" + strconv.Itoa(int(r.Port))
		}
		code := int64(r.Code)
		add(models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeRedirect, RedirType: models.HTTPRequestRuleRedirTypePrefix, RedirValue: to, RedirCode: &code})
	}
	l.rules = append(l.rules, mirrorRules(f.Mirrors)...)
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

// retried has a backend try requests again, at once and with another server, if there is one. HAProxy does so with requests that fit into a buffer.
func retried(backend *models.Backend, r *route.Retry) {
	times, on := int64(r.Attempts), []string{"conn-failure", "empty-response", "response-timeout"}
	for _, code := range r.Codes {
		on = append(on, strconv.Itoa(code))
	}
	backend.Retries, backend.RetryOn = &times, strings.Join(on, " ")
	backend.ServerFinTimeout = backend.ServerTimeout // HAProxy 2.6 waits so long for a further try
}

// filters puts filters into a backend that has none.
func (f *file) filters(section string, filters *route.Filters, id string) error {
	if err := f.client.ReplaceAcls("backend", section, networks(filters), id, 0); err != nil {
		return err
	}
	requests, responses := filterRules(filters, section)
	if err := f.client.ReplaceHTTPRequestRules("backend", section, requests, id, 0); err != nil {
		return err
	}
	return f.client.ReplaceHTTPResponseRules("backend", section, responses, id, 0)
}
