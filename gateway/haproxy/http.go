package haproxy

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/haproxytech/client-native/v6/models"

	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/gateway/traffic"
)

// Web is the state that is served by host name and path.
type Web struct {
	route.HTTP
	Certificates []Certificate
	Shown        []Certificate // to backends, by Secret
	Default      *Certificate  // for hosts that have none; nil: one that is made here
}

// Certificate is the certificate of some hosts.
type Certificate struct {
	Name  string   // for people: whose it is
	Hosts []string // names, or *.example.com
	PEM   []byte   // the certificate, the chain up to its authority, and the private key
}

// A pool is a backend of its own: paths of several hosts lead to it, which change at run time.
const poolPrefix = "http-"

// poolSection is the name of a pool's backend. Names of Kubernetes together may be too long for HAProxy's lines.
func poolSection(name string) string {
	return fmt.Sprintf("%s%.8x", poolPrefix, sha256.Sum256([]byte(name)))
}

func poolListener(p route.Pool) listener {
	l := listener{Section: poolSection(p.Name()), About: p.Name(), HTTP: true}
	l.keepClients(p)
	return l
}

// keepClients has the listener of a pool keep clients on their servers, where the pool has that.
func (l *listener) keepClients(p route.Pool) {
	if l.Rules.Affinity = affinityOf(p); l.Rules.Affinity > 0 {
		l.About += " affinity:" + strconv.FormatInt(p.Affinity, 10)
	}
}

func affinityOf(p route.Pool) time.Duration { return time.Duration(p.Affinity) * time.Second }

const (
	requestPatience = 10 * time.Second // for the headers of a request
	keptAlive       = time.Minute      // a connection without a request
)

// portListener is the form of a port for HTTP in HAProxy. Its requests to pods differ from the clients': they name their origin.
func portListener(l route.Listener, sites []route.Site, files webFiles) listener {
	if l.TCP {
		wanted := listener{Section: traffic.Section(l.Port), Port: l.Port, Streams: true, Rules: rules{AcceptProxy: l.AcceptProxy}}
		wanted.About = "Gateway API TCP rules:" + wanted.Rules.sum()
		return wanted
	}
	wanted := listener{Section: traffic.Section(l.Port), Port: l.Port, HTTP: true, TLS: l.TLS, Passes: l.Passes, Names: l.Passes && l.Names}
	wanted.Requests = requestRules(files, requestSearch{
		ingresses: !l.NoIngress, sets: setsOf(sites, l.Port, mark(l)), regexes: regexesOf(sites, l.Port, mark(l)),
		separate: l.TLS && separates(sites, l.Port), port: l.Port,
	})
	wanted.Rules.AcceptProxy, wanted.Log, wanted.Compress = l.AcceptProxy, l.AccessLog, l.Compress
	if wanted.Log {
		wanted.Requests = append(captures(), wanted.Requests...)
	}
	said, _ := json.Marshal([]any{wanted.Requests, l.TLS, requestPatience, keptAlive, portsName, "idle-close-on-response"})
	about := "Ingresses"
	if l.NoIngress || l.Passes {
		about = "Gateway API"
	}
	if l.Passes {
		said = append(said, "passes"...)
	}
	if wanted.Names {
		said = append(said, "names"...)
	}
	if wanted.Opens = l.Passes && opens(sites, l.Port); wanted.Opens {
		said = append(said, "opens"...)
	}
	if wanted.Log {
		said = append(said, requestFormat()...)
	}
	if l.AcceptProxy || l.Compress { // others stay unchanged
		said = fmt.Append(said, l.AcceptProxy, l.Compress)
	}
	if wanted.Check = files.checkOf(l); wanted.Check != nil {
		said = fmt.Append(said, "check", wanted.Check.authorities, wanted.Check.optional)
	}
	wanted.About = fmt.Sprintf("%s rules:%.6x", about, sha256.Sum256(said))
	return wanted
}

// Variables of a request. Destinations are in maps, which change at run time: an entry is the host and the path, and its value the section of the pool,
// followed by a mark when plain requests are redirected.
const (
	found       = "{ var(txn.found) -m found }"
	redirecting = "redirect"
)

// requestSearch is the content of a port in which requests are looked up.
type requestSearch struct {
	port      uint16
	ingresses bool // the paths of Ingresses are served
	sets      []set
	regexes   []regexPath
	separate  bool // requests for another listener of a Gateway than that of their session are refused
}

// requestRules find the pool of a request. An exact host name comes before *.example.com, and that before any. When a host has no match, the next one is
// looked up. Within one host an exact path comes first, and then the longest one above the requested path: entries of these end with a slash, and so does
// the looked-up path, so that /shop is not found in /shopping.
//
// This is the meaning of Ingresses; sets are the additions of Gateway API.
func requestRules(files webFiles, on requestSearch) models.HTTPRequestRules {
	var rules models.HTTPRequestRules
	set := func(name, expression, condition, test string) {
		rules = append(rules, &models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeSetDashVar, VarScope: "txn", VarName: name, VarExpr: expression, Cond: condition, CondTest: test})
	}
	set("host", "req.hdr(host),host_only,rtrim(.),lower", "", "")
	set("host", "str(-)", "if", "{ var(txn.host) -m reg [^a-z0-9._-] }")
	set("wild", "var(txn.host),regsub(^[^.]+,*)", "", "")
	set("path", "path", "", "")
	hosts := []string{"var(txn.host)", "var(txn.wild)", "str(*)"}
	if !on.ingresses {
		hosts = nil
	}
	for _, host := range hosts {
		set("found", fmt.Sprintf("%s,concat(,txn.path),map_str(%s)", host, files.exact()), "unless", found)
		set("found", fmt.Sprintf("%s,concat(,txn.path,/),map_beg(%s)", host, files.below()), "unless", found)
	}
	if len(on.sets)+len(on.regexes) > 0 {
		rules = append(rules, choose(on.sets, on.regexes, files)...)
	}
	if on.ingresses {
		rules = append(rules, refuseAmbiguous()...)
	}
	if len(on.sets) > 0 && on.separate {
		rules = append(rules, misdirected(on.port, files)...)
	}
	rules = append(rules, chooseShare(files)...)
	permanent := int64(308) // keeps the method
	rules = append(rules, &models.HTTPRequestRule{
		Type: models.HTTPRequestRuleTypeRedirect, RedirType: models.HTTPRequestRuleRedirTypePrefix, RedirValue: "https://%[var(txn.host)]", RedirCode: &permanent,
		Cond: "if", CondTest: "!{ ssl_fc } { var(txn.found),field(2,:) -m str " + redirecting + " }",
	})
	// The same headers from clients are not trusted.
	rules = append(rules, &models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeDelDashHeader, HdrName: "Forwarded"})
	for _, header := range [][2]string{
		{"X-Forwarded-For", "%[src]"}, {"X-Real-IP", "%[src]"}, {"X-Forwarded-Host", "%[req.hdr(host)]"}, {"X-Forwarded-Port", "%[dst_port]"},
	} {
		rules = append(rules, &models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeSetDashHeader, HdrName: header[0], HdrFormat: header[1]})
	}
	for _, proto := range [][2]string{{"https", "if"}, {"http", "unless"}} {
		for _, name := range []string{"X-Forwarded-Proto", "X-Forwarded-Scheme", "X-Scheme"} {
			rules = append(rules, &models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeSetDashHeader, HdrName: name, HdrFormat: proto[0], Cond: proto[1], CondTest: "{ ssl_fc }"})
		}
	}
	return rules
}

// requests puts the rules into a frontend that has none, and an answer into the backend of the same name, for requests that lead nowhere.
func (f *file) requests(l listener, id string) error {
	if err := f.client.ReplaceHTTPRequestRules("frontend", l.Section, l.Requests, id, 0); err != nil {
		return err
	}
	nothing, plain := int64(404), "text/plain"
	answer := models.HTTPRequestRules{{
		Type: models.HTTPRequestRuleTypeReturn, ReturnStatusCode: &nothing, ReturnContentType: &plain, ReturnContentFormat: models.HTTPRequestRuleReturnContentFormatString,
		ReturnContent: `"Nothing has this host and path.\n"`,
	}}
	if err := f.client.ReplaceHTTPRequestRules("backend", traffic.Section(l.Port), answer, id, 0); err != nil {
		return err
	}
	return f.client.ReplaceBackendSwitchingRules(l.Section, models.BackendSwitchingRules{
		{Name: "%[var(txn.target)]", Cond: "if", CondTest: found},
	}, id, 0)
}
