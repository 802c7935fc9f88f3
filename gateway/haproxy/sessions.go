package haproxy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/haproxytech/client-native/v6/models"

	"github.com/burano/burano/gateway/route"
)

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
	l.Section, l.Passes, l.Check = section, false, nil // which is about requests
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
