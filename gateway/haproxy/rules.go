package haproxy

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/haproxytech/client-native/v6/models"

	"github.com/burano/burano/gateway/route"
)

// rules are what a listener demands of clients. They change with a reload.
type rules struct {
	Sources []netip.Prefix // from where they may come; empty: from anywhere
}

func rulesOf(r route.Route) rules {
	return rules{Sources: r.Sources}
}

// about describes a listener for people who read the configuration. It tells different rules apart; the name of a rule's value would not
// always fit into a line.
func about(r route.Route) string {
	text := rulesOf(r).text()
	if text == "" {
		return r.String()
	}
	return fmt.Sprintf("%s rules:%.6x", r, sha256.Sum256([]byte(text)))
}

// text is "" without any rule.
func (r rules) text() string {
	var b strings.Builder
	for _, source := range r.Sources {
		fmt.Fprintf(&b, "from %s\n", source)
	}
	return b.String()
}

// acl of clients that may come.
const aclSources = "sources"

// perLine is how many networks stand in one line: HAProxy takes 64 words, and 2,048 bytes.
const perLine = 32

// rules puts rules into a frontend that has none.
func (f *file) rules(frontend string, r rules, id string) error {
	if len(r.Sources) == 0 {
		return nil
	}
	var acls models.Acls
	for some := range slices.Chunk(r.Sources, perLine) {
		texts := make([]string, len(some))
		for i, source := range some {
			texts[i] = source.String()
		}
		acls = append(acls, &models.ACL{ACLName: aclSources, Criterion: "src", Value: strings.Join(texts, " ")})
	}
	if err := f.client.ReplaceAcls("frontend", frontend, acls, id, 0); err != nil {
		return err
	}
	return f.client.CreateTCPRequestRule(0, "frontend", frontend, &models.TCPRequestRule{
		Type: models.TCPRequestRuleTypeConnection, Action: models.TCPRequestRuleActionReject, Cond: models.TCPRequestRuleCondUnless, CondTest: aclSources,
	}, id, 0)
}
