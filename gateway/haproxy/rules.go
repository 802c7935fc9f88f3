package haproxy

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/haproxytech/client-native/v6/models"

	"github.com/burano/burano/gateway/route"
)

// rules are a listener's requirements of clients, and its information about them. They change with a reload.
type rules struct {
	Sources           []netip.Prefix // from where they may come; empty: from anywhere
	Idle              time.Duration  // how long connections may be silent; 0: the default
	Connections       int            // open at a time; 0: the default
	ClientConnections int            // of them of one client; 0: any
	AcceptProxy       bool           // clients name the connection's origin by the PROXY protocol; sources and limits apply to the direct client nevertheless
	SendProxy         bool           // servers get the origin
	Affinity          time.Duration  // how long a client keeps its server; 0: connections are spread
}

func rulesOf(r route.Route) rules {
	return rules{Sources: r.Sources, Idle: r.Idle, Connections: r.Connections, ClientConnections: r.ClientConnections, AcceptProxy: r.AcceptProxy, SendProxy: r.SendProxy, Affinity: r.Affinity}
}

// share is the maximum number of a gateway's connections for one listener, or one client, so that there is room for others.
func share(all int) int { return all - all/8 }

// about describes a listener for readers of the configuration. It distinguishes rules by their sum, as the rules themselves would not always fit into a
// line.
func about(r route.Route, sum string) string { return r.String() + " rules:" + sum }

// sum identifies the rules.
func (r rules) sum() string {
	text := fmt.Sprint(r.Sources, r.Idle, r.Connections, r.ClientConnections, portsName)
	if r.AcceptProxy || r.SendProxy { // others are unchanged, so that an upgrade reloads nothing
		text += fmt.Sprint(r.AcceptProxy, r.SendProxy)
	}
	if r.Affinity > 0 {
		text += fmt.Sprint("affinity", r.Affinity)
	}
	return fmt.Sprintf("%.6x", sha256.Sum256([]byte(text)))
}

// none reports that a route has no rules, as most.
func (r rules) none() bool {
	return len(r.Sources) == 0 && r.Idle == 0 && r.Connections == 0 && r.ClientConnections == 0 && !r.AcceptProxy && !r.SendProxy && r.Affinity == 0
}

const (
	aclSources     = "sources" // clients that may come
	sectionClients = "clients" // the section with the table of all clients
	// perLine is the number of networks in one line: HAProxy takes 64 words, and 2,048 bytes.
	perLine = 32
	// Clients that have connections are remembered anyway, others until the room is needed.
	clientsKept  = 100_000
	clientExpiry = time.Minute
)

func clientTable() *models.ConfigStickTable {
	size, expire := int64(clientsKept), clientExpiry.Milliseconds()
	return &models.ConfigStickTable{Type: models.ConfigStickTableTypeIP, Size: &size, Expire: &expire, Store: "conn_cur"}
}

const clientsKey = "backend " + sectionClients

// shared makes the section that counts the connections of clients over all listeners.
func (f *file) shared(id string) error {
	return f.client.CreateBackend(&models.Backend{BackendBase: models.BackendBase{Name: sectionClients, From: defaultsName, StickTable: clientTable()}}, id, 0)
}

// frontend is the part of a listener that clients see.
func (l listener) frontend(backend string) *models.Frontend {
	f := &models.Frontend{FrontendBase: models.FrontendBase{Name: l.Section, From: portsName, Description: l.About, DefaultBackend: backend}}
	if l.HTTP && !l.Passes {
		f.Mode = models.FrontendBaseModeHTTP
		headers, silent := requestPatience.Milliseconds(), keptAlive.Milliseconds()
		f.HTTPRequestTimeout, f.HTTPKeepAliveTimeout = &headers, &silent
		f.IdleCloseOnResponse = models.FrontendBaseIdleCloseOnResponseEnabled // see base
		if l.Log {
			f.LogFormat = requestFormat()
		}
		if l.Compress {
			f.Compression = &models.Compression{Algorithms: []string{"gzip"}, Types: compressed}
		}
	}
	if l.Rules.Idle > 0 {
		idle := l.Rules.Idle.Milliseconds()
		f.ClientTimeout = &idle
	}
	if l.Rules.Connections > 0 {
		connections := int64(l.Rules.Connections)
		f.Maxconn = &connections
	}
	if l.Rules.ClientConnections > 0 {
		f.StickTable = clientTable()
	}
	return f
}

// rules puts rules into a frontend that has none.
func (f *file) rules(frontend string, r rules, id string) error {
	var acls models.Acls
	for some := range slices.Chunk(r.Sources, perLine) {
		texts := make([]string, len(some))
		for i, source := range some {
			texts[i] = source.String()
		}
		acls = append(acls, &models.ACL{ACLName: aclSources, Criterion: "src", Value: strings.Join(texts, " ")})
	}
	var list models.TCPRequestRules
	reject := func(condition, test string) {
		list = append(list, &models.TCPRequestRule{Type: models.TCPRequestRuleTypeConnection, Action: models.TCPRequestRuleActionReject, Cond: condition, CondTest: test})
	}
	if len(acls) > 0 {
		if err := f.client.ReplaceAcls("frontend", frontend, acls, id, 0); err != nil {
			return err
		}
		reject(models.TCPRequestRuleCondUnless, aclSources)
	}
	if r.ClientConnections > 0 {
		counter := int64(1) // another than that of all ports has (see base)
		list = append(list, &models.TCPRequestRule{
			Type: models.TCPRequestRuleTypeConnection, Action: models.TCPRequestRuleActionTrackDashSc, TrackStickCounter: &counter, TrackKey: "src", TrackTable: frontend,
		})
		reject(models.TCPRequestRuleCondIf, fmt.Sprintf("{ sc1_conn_cur gt %d }", r.ClientConnections))
	}
	// HAProxy 2.6 looks at the rules of defaults only where a frontend has one of its own.
	list = append(list, &models.TCPRequestRule{Type: models.TCPRequestRuleTypeConnection, Action: models.TCPRequestRuleActionAccept})
	return f.client.ReplaceTCPRequestRules("frontend", frontend, list, id, 0)
}
