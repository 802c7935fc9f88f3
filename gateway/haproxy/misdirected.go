package haproxy

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/haproxytech/client-native/v6/models"

	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/gateway/traffic"
)

// A client with HTTP/2 may send requests for several hosts in one TLS session. Where a Gateway has listeners of their own for the name by which the session was
// opened and for the host of a request, the request belongs to a session of the other listener: it is answered with 421 (RFC 9110, 15.5.20), by which
// clients open one. A session without a name is for any host.

// sessionsKey begins the keys of the listeners of a port by their hosts.
func sessionsKey(port uint16) string { return strconv.Itoa(int(port)) + ".sessions|" }

// separates reports whether a Gateway has several listeners for TLS sessions on a port.
func separates(sites []route.Site, port uint16) bool {
	hosts := make(map[string]string)
	return slices.ContainsFunc(sites, func(site route.Site) bool {
		return slices.ContainsFunc(site.Opened, func(o route.Opened) bool {
			if o.Port != port || o.Owner == "" {
				return false
			}
			host, some := hosts[o.Owner]
			hosts[o.Owner] = o.Host
			return some && host != o.Host
		})
	})
}

// sessionsEntry is the value of a listener: whose it is, and which.
func sessionsEntry(o route.Opened) string {
	sum := func(text string) string { return fmt.Sprintf("%.8x", sha256.Sum256([]byte(text))) }
	return entry(traffic.Section(o.Port), route.Path{Host: o.Host}, 0, "") + ":" + sum(o.Owner) + ":" + sum(o.Host)
}

// misdirected refuses requests for another listener of the Gateway than that of the session. The variables of choose are set.
func misdirected(port uint16, files webFiles) models.HTTPRequestRules {
	var l ruleList
	const named, opened, asked = "{ var(txn.name) -m found }", "{ var(txn.opened) -m found }", "{ var(txn.asked) -m found }"
	l.set("name", "ssl_fc_sni,lower,rtrim(.)", "{ ssl_fc_has_sni }")
	l.set("name", "str(-)", named, "{ var(txn.name) -m reg [^a-z0-9._-] }")
	names := []string{"name"}
	for depth := range deepest {
		of := "of" + strconv.Itoa(depth+1)
		l.set(of, "var(txn.name),"+wildcards(depth+1), named)
		names = append(names, of)
	}
	look := func(result string, hosts []string) {
		for _, host := range hosts {
			l.set(result, fmt.Sprintf("str(%s),concat(,txn.%s),map_str(%s)", sessionsKey(port), host, files.names()), named, "!{ var(txn."+result+") -m found }")
		}
	}
	look("opened", append(names, "any"))
	look("asked", tiers("host"))
	for i, part := range []string{"owner", "listener"} {
		l.set(part, fmt.Sprintf("var(txn.asked),field(%d,:)", 4+i), opened, asked)
	}
	status := int64(http.StatusMisdirectedRequest)
	same := func(part string, at int) string {
		return fmt.Sprintf("{ var(txn.opened),field(%d,:),strcmp(txn.%s) -m int 0 }", at, part)
	}
	return append(l.rules, &models.HTTPRequestRule{
		Type: models.HTTPRequestRuleTypeReturn, ReturnStatusCode: &status, Cond: "if",
		CondTest: "!" + marked(markIngress) + " " + opened + " " + asked + " " + same("owner", 4) + " !" + same("listener", 5),
	})
}

// sessions enters the listeners of Gateways by their hosts.
func (p *pages) sessions(sites []route.Site, wanted map[string]listener, enter func(entries map[string]string, key, value string)) {
	for _, site := range sites {
		for _, one := range site.Opened {
			if _, served := wanted[traffic.Section(one.Port)]; served && one.Owner != "" && separates(sites, one.Port) {
				enter(p.names, sessionsKey(one.Port)+cmp.Or(one.Host, "*"), sessionsEntry(one))
			}
		}
	}
}
