package haproxy

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/haproxytech/client-native/v6/models"

	"github.com/burano/burano/gateway/route"
)

// Ingresses may have rules with regular expressions, and filters that Gateway API lacks: who may come, how often, and how a backend is chosen. Expressions
// are parts of the configuration in strong quotation marks. Their form has none, and no spaces.

// regexPath is a path of a port that is given by a regular expression.
type regexPath struct {
	path route.Path
	key  string // begins the keys of its port
}

func regexOf(m *route.Match) string {
	if m == nil {
		return ""
	}
	return m.Regex
}

// regexSet is in the keys of paths with regular expressions, in place of a set.
const regexSet = "regex"

func regexKey(port uint16, mark string) string { return markedKey(port, mark+"."+regexSet, nil) }

// regexName identifies a path with a regular expression, with its host and further conditions.
func regexName(p route.Path) string {
	said, _ := json.Marshal([]any{p.Host, p.Match})
	return fmt.Sprintf("%.12x", sha256.Sum256(said))
}

// regexesOf returns the paths of a port with regular expressions, the best ones first: with a longer literal begin, which ranks them among other paths, then
// longer ones as ingress-nginx has it, and with more conditions.
func regexesOf(sites []route.Site, port uint16, mark string) (list []regexPath) {
	seen := make(map[string]bool)
	for _, site := range byAge(sites) {
		for _, path := range site.Paths {
			if name := regexName(path); path.Port == port && regexOf(path.Match) != "" && !seen[name] {
				seen[name] = true
				list = append(list, regexPath{path, regexKey(port, mark)})
			}
		}
	}
	more := func(p regexPath) int { return 2*len(p.path.Match.Headers) + len(p.path.Match.Cookies) }
	slices.SortStableFunc(list, func(a, b regexPath) int {
		return cmp.Or(score(b.path)-score(a.path), len(b.path.Match.Regex)-len(a.path.Match.Regex), more(b)-more(a), strings.Compare(regexName(a.path), regexName(b.path)))
	})
	return list
}

// longestForRegex bounds the work of a regular expression. It is more than paths of Ingresses have.
const longestForRegex = route.MaxPath

// pattern is a regular expression in the configuration.
func pattern(regex string) string { return "'(?i)^(?:" + regex + ")'" }

// template is a path with groups of a regular expression in the configuration.
func template(path string) string {
	return "'" + strings.NewReplacer("%", "%%", "$", `\`).Replace(path) + "'"
}

// regexes finds the best path with a regular expression, and takes it where it is better than the others.
func (l *ruleList) regexes(list []regexPath, files webFiles) {
	if len(list) == 0 {
		return
	}
	for _, one := range list {
		met := append(hostIs(one.path.Host), "!{ var(txn.regex) -m found }", fmt.Sprintf("{ path,length -m int le %d }", longestForRegex))
		for _, further := range conditions(*one.path.Match) {
			met = append(met, "{ "+further+" }")
		}
		l.set("regex", "str("+regexName(one.path)+")", append(met, "{ path -m reg "+pattern(one.path.Match.Regex)+" }")...)
	}
	l.rules = append(l.rules, &models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeUnsetDashVar, VarScope: "txn", VarName: "candidate"})
	l.set("candidate", fmt.Sprintf("str(%s),concat(,txn.regex),map_str(%s)", list[0].key, files.ruleExact()), "{ var(txn.regex) -m found }")
	l.better()
}

// hostIs are the conditions of a request for a host.
func hostIs(host string) []string {
	switch {
	case host == "":
		return nil
	case strings.HasPrefix(host, "*"):
		return []string{"{ var(txn.host) -m end " + host[1:] + " }"}
	}
	return []string{"{ var(txn.host) -m str " + host + " }"}
}

// ambiguous are paths that an application may read otherwise than HAProxy: with two slashes, with dots as a part, and with encoded letters, digits, slashes,
// hyphens, dots, underscores and tildes (RFC 3986, 6.2.2.2). NGINX resolves them before it looks for rules.
const ambiguous = `'//|/[.][.]?(/|$)|%(2[d-f]|3[0-9]|[46][1-9a-f]|[57][0-9a]|5f|7e|00)'`

// Marks of an entry, which are its last part.
const (
	markIngress = "i" // it is of an Ingress
	markBeside  = "g" // it is beside a guarded path: ambiguous requests are refused
	markStrict  = "s" // and beside a guarded path with characters that have two forms: requests with such ones are refused
	markLong    = "l" // and beside a guarded regular expression, which does not match very long paths
)

// guards are the rules of access of paths, by the namespace of their Ingress, their host and the rule. Ingresses lead to Services of their namespace alone, so
// no path of another namespace leads to an application around a rule.
type guards map[string]map[string]map[string]guard

// guard is the paths of a host that have the same rule of access.
type guard struct {
	regex  bool // a regular expression is among them
	strict bool // one has characters that have two forms: as they are, and in percent-encoding
}

// forms are the parts of a regular expression that are no characters of a path.
var forms = regexp.MustCompile(`\(\?:|\{[0-9,]*\}|[()|*+?^$\[\]{}\\]`)

// twofold reports whether a path has characters, slashes apart, that are not unreserved ones (RFC 3986, 2.3).
func twofold(p route.Path) bool {
	text := p.Path
	if regex := regexOf(p.Match); regex != "" {
		text = forms.ReplaceAllString(regex, "")
	}
	return reserved.MatchString(text)
}

var reserved = regexp.MustCompile(otherThanUnreserved)

const otherThanUnreserved = "[^A-Za-z0-9._~/-]"

// ruleOf is the rule of access of a path. It is empty without one.
func ruleOf(p route.Path) string {
	for _, target := range p.Targets {
		if f := target.Filters; f != nil && (f.Access != nil || f.Limits != nil || f.Status != 0) {
			said, _ := json.Marshal([]any{f.Access, f.Limits, f.Status})
			return string(said)
		}
	}
	return ""
}

func guardsOf(sites []route.Site) guards {
	g := make(guards)
	for _, site := range sites {
		if site.Kind != "" {
			continue
		}
		for _, path := range site.Paths {
			rule := ruleOf(path)
			if rule == "" {
				continue
			}
			if g[site.Namespace] == nil {
				g[site.Namespace] = make(map[string]map[string]guard)
			}
			host := g[site.Namespace][path.Host]
			if host == nil {
				host = make(map[string]guard)
				g[site.Namespace][path.Host] = host
			}
			one := host[rule]
			one.regex = one.regex || regexOf(path.Match) != ""
			one.strict = one.strict || twofold(path)
			host[rule] = one
		}
	}
	return g
}

// marks are the marks of a path's entry. A path is beside another one that has its host, or a host among its hosts, and another rule of access.
func (g guards) marks(site route.Site, p route.Path) string {
	marks := ""
	if site.Kind == "" {
		marks = markIngress
	}
	guarded := g[site.Namespace]
	if len(guarded) == 0 {
		return marks
	}
	rule, beside, strict, long := ruleOf(p), false, false, false
	look := func(host string) {
		for other, one := range guarded[host] {
			if other != rule {
				beside, strict, long = true, strict || one.strict, long || one.regex
			}
		}
	}
	look(p.Host)
	if p.Host == "" || strings.HasPrefix(p.Host, "*") {
		for host := range guarded {
			if host != p.Host && (p.Host == "" || strings.HasSuffix(host, p.Host[1:])) {
				look(host)
			}
		}
	}
	if beside {
		marks += markBeside
	}
	if strict {
		marks += markStrict
	}
	if long {
		marks += markLong
	}
	return marks
}

// marked is the condition that the found entry has a mark.
func marked(mark string) string { return "{ var(txn.found),field(5,:) -m sub " + mark + " }" }

// refuseAmbiguous refuses requests for entries beside a guarded path that may be meant for that one.
func refuseAmbiguous() (rules models.HTTPRequestRules) {
	answer := func(status int64, mark, test string) {
		rules = append(rules, &models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeReturn, ReturnStatusCode: &status, Cond: "if", CondTest: marked(mark) + " { path" + test + " }"})
	}
	answer(http.StatusBadRequest, markBeside, " -m reg -i "+ambiguous)
	answer(http.StatusBadRequest, markStrict, " -m reg '"+otherThanUnreserved+"'")
	answer(http.StatusRequestURITooLong, markLong, fmt.Sprintf(",length -m int gt %d", longestForRegex))
	return rules
}

// Names of the networks of a backend.
const (
	aclAllowed   = "allowed"
	aclDenied    = "denied"
	aclUnlimited = "unlimited"
)

// networks are the networks that filters name.
func networks(f *route.Filters) (acls models.Acls) {
	add := func(name string, list []netip.Prefix) {
		for some := range slices.Chunk(list, perLine) {
			texts := make([]string, len(some))
			for i, one := range some {
				texts[i] = one.String()
			}
			acls = append(acls, &models.ACL{ACLName: name, Criterion: "src", Value: strings.Join(texts, " ")})
		}
	}
	if f.Access != nil {
		add(aclAllowed, f.Access.Allow)
		add(aclDenied, f.Access.Deny)
	}
	if f.Limits != nil {
		add(aclUnlimited, f.Limits.Except)
	}
	return acls
}

// admit puts the rules in front by which requests are refused: plain ones, ones of other clients, too many, and too large ones.
func admit(l *ruleList, f *route.Filters, section string) {
	deny := func(status int, kind, test string) {
		code := int64(status)
		l.rules = append(l.rules, &models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeDeny, DenyStatus: &code, Cond: kind, CondTest: test})
	}
	if f.OnlyTLS {
		code := int64(http.StatusPermanentRedirect)
		l.rules = append(l.rules, &models.HTTPRequestRule{
			Type: models.HTTPRequestRuleTypeRedirect, RedirType: models.HTTPRequestRuleRedirTypePrefix, RedirValue: "https://%[var(txn.host)]", RedirCode: &code,
			Cond: "unless", CondTest: "{ ssl_fc }",
		})
	}
	if a := f.Access; a != nil {
		if len(a.Deny) > 0 {
			deny(http.StatusForbidden, "if", aclDenied)
		}
		if len(a.Allow) > 0 {
			deny(http.StatusForbidden, "unless", aclAllowed)
		}
	}
	if limits := f.Limits; limits != nil {
		limited := ""
		if len(limits.Except) > 0 {
			limited = " !" + aclUnlimited
		}
		over := func(count string, most int) {
			if most > 0 {
				deny(http.StatusServiceUnavailable, "if", fmt.Sprintf("{ src,table_%s(%s) ge %d }%s", count, section, most, limited))
			}
		}
		// A client that is refused is not counted.
		over("http_req_rate", limits.PerSecond*limits.Burst)
		over("gpc0_rate", limits.PerMinute*limits.Burst)
		over("conn_cur", limits.Connections)
		counter := int64(1) // another than that of all ports has (see base)
		track := &models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeTrackDashSc, TrackScStickCounter: &counter, TrackScKey: "src"}
		count := &models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeScDashIncDashGpc0, ScID: counter}
		rules := models.HTTPRequestRules{track}
		if limits.PerMinute > 0 {
			rules = append(rules, count)
		}
		for _, rule := range rules {
			if limited != "" {
				rule.Cond, rule.CondTest = "unless", aclUnlimited
			}
		}
		l.rules = append(l.rules, rules...)
	}
	if f.Body > 0 {
		deny(http.StatusRequestEntityTooLarge, "if", fmt.Sprintf("{ req.body_size gt %d }", f.Body))
	}
}

// away is a redirect to a whole location, or to another host in the request's scheme.
func away(r *route.Redirect) (rules models.HTTPRequestRules) {
	code := int64(r.Code)
	add := func(kind, to, condition string) {
		rule := &models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeRedirect, RedirType: kind, RedirValue: to, RedirCode: &code}
		if condition != "" {
			rule.Cond, rule.CondTest = condition, "{ ssl_fc }"
		}
		rules = append(rules, rule)
	}
	switch {
	case r.Location != "" && r.Rest:
		add(models.HTTPRequestRuleRedirTypeLocation, literal(r.Location)+"%[pathq]", "")
	case r.Location != "":
		add(models.HTTPRequestRuleRedirTypeLocation, literal(r.Location), "")
	default:
		add(models.HTTPRequestRuleRedirTypePrefix, "https://"+r.Host, "if")
		add(models.HTTPRequestRuleRedirTypePrefix, "http://"+r.Host, "unless")
	}
	return rules
}

// keepsClients reports whether clients keep their servers.
func (l listener) keepsClients() bool {
	return l.Rules.Affinity > 0 || l.Filters != nil && l.Filters.Cookie != nil
}

// hashed reports whether the places of servers among the others decide which requests they get.
func (l listener) hashed() bool {
	return l.Rules.Affinity > 0 || l.Filters != nil && l.Filters.Hash != nil
}

// shape gives a backend the form that filters demand, beside their rules.
func shape(backend *models.Backend, l listener) {
	f := l.Filters
	if f.Timeout > 0 {
		patience := f.Timeout.Milliseconds()
		backend.ServerTimeout = &patience
	}
	if f.Connect > 0 {
		patience := f.Connect.Milliseconds()
		backend.ConnectTimeout = &patience
	}
	if f.Hash != nil {
		balance(backend, *f.Hash)
	}
	if c := f.Cookie; c != nil {
		backend.Cookie = cookie(*c)
		// All gateways give a server the same value.
		backend.DynamicCookieKey = l.Section
	}
	if limits := f.Limits; limits != nil {
		size, store := int64(clientsKept), "conn_cur"
		burst := time.Duration(limits.Burst)
		expire := max(burst*time.Second, 10*time.Second)
		if limits.PerSecond > 0 {
			store += fmt.Sprintf(",http_req_rate(%d)", (burst * time.Second).Milliseconds())
		}
		if limits.PerMinute > 0 {
			store += fmt.Sprintf(",gpc0_rate(%d)", (burst * time.Minute).Milliseconds())
			expire = burst * time.Minute
		}
		milliseconds := max(expire, l.Rules.Affinity).Milliseconds()
		backend.StickTable = &models.ConfigStickTable{Type: models.ConfigStickTableTypeIPV6, Size: &size, Expire: &milliseconds, Store: store}
	}
}

func cookie(c route.Cookie) *models.Cookie {
	out := &models.Cookie{Name: &c.Name, Type: models.CookieTypeInsert, Indirect: true, Nocache: true, Httponly: true, Dynamic: true, Secure: c.Secure}
	if c.MaxAge > 0 {
		out.Attrs = append(out.Attrs, &models.Attr{Value: fmt.Sprintf("Max-Age=%d", int64(c.MaxAge.Seconds()))})
	}
	if c.SameSite != "" {
		out.Attrs = append(out.Attrs, &models.Attr{Value: "SameSite=" + c.SameSite})
	}
	return out
}

// balance has a backend choose servers by a value of requests, on a consistent hash: when a server goes, others keep their requests.
func balance(backend *models.Backend, h route.Hash) {
	algorithm := models.BalanceAlgorithmSource
	out := &models.Balance{Algorithm: &algorithm}
	switch h.Kind {
	case route.HashURI:
		algorithm, out.URIWhole = models.BalanceAlgorithmURI, true
	case route.HashHeader:
		algorithm, out.HdrName = models.BalanceAlgorithmHdr, h.Name
	case route.HashQuery:
		algorithm, out.URLParam = models.BalanceAlgorithmURLParam, h.Name
	}
	backend.Balance = out
	backend.HashType = &models.HashType{Method: models.HashTypeMethodConsistent, Function: models.HashTypeFunctionSdbm, Modifier: models.HashTypeModifierAvalanche}
}
