package etcd

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/systemd"
)

// Ports and places of a member.
const (
	ClientPort = 2379
	PeerPort   = 2380
	DataDir    = "/var/lib/etcd/data"
	// JoinFile holds the settings that a member needs at its first start only; it is written when it joins.
	JoinFile = "/etc/etcd/join.env"
	// MaxLearners is at least as many as can be added before the first promotion, and the same on every member.
	MaxLearners = 5
	// LocalEndpoint is the node's forwarder: every client on a node, except the API server, dials it.
	LocalEndpoint = "https://127.0.0.1:2379"

	program   = "/opt/burano/bin/etcd"
	folder    = "/etc/burano/pki"
	memberEnv = "/etc/etcd/member.env"
)

// Files of the etcd authority and the member's own certificate on a node.
const (
	AuthorityFile   = folder + "/etcd-ca.crt"
	memberCert      = folder + "/etcd-member.crt"
	memberKey       = folder + "/etcd-member.key"
	quotaBytes      = 2 << 30
	snapshotEntries = 10000
)

// Node is a node as far as etcd is concerned.
type Node struct {
	Name    string
	Address netip.Addr
}

// ClientURL is where the node's member serves clients.
func (n Node) ClientURL() string { return "https://" + n.hostPort(ClientPort) }

// PeerURL is where the node's member talks to the others.
func (n Node) PeerURL() string { return "https://" + n.hostPort(PeerPort) }

func (n Node) hostPort(port int) string {
	return net.JoinHostPort(n.Address.String(), fmt.Sprint(port))
}

// CertificateRequest is the certificate of the node's member. It names 127.0.0.1 too, because clients dial the forwarder.
// Its common name is no user of etcd, so that it opens nothing as a client.
func (n Node) CertificateRequest() pki.Request {
	return pki.Request{
		CommonName: "etcd-member-" + n.Name,
		DNS:        []string{n.Name, "localhost"},
		IP:         []netip.Addr{n.Address, netip.MustParseAddr("127.0.0.1")},
		Usage:      pki.Server | pki.Client,
	}
}

// Authority is the file of the etcd authority's certificate, which every node has.
func Authority(certificate []byte) ssh.File {
	return ssh.File{Path: AuthorityFile, Content: certificate}
}

// Member is the unit of a node's member. It listens on the node's address only; 127.0.0.1 is the forwarder's.
func Member(node Node, authority []byte, pair pki.Pair, peers Peers) systemd.Unit {
	peerEnv, peerFiles := peers.install(authority)
	env := slices.Concat([]string{
		"ETCD_NAME=" + node.Name,
		"ETCD_DATA_DIR=" + DataDir,
		"ETCD_LISTEN_PEER_URLS=" + node.PeerURL(),
		"ETCD_INITIAL_ADVERTISE_PEER_URLS=" + node.PeerURL(),
		"ETCD_LISTEN_CLIENT_URLS=" + node.ClientURL(),
		"ETCD_ADVERTISE_CLIENT_URLS=" + node.ClientURL(),
		"ETCD_INITIAL_CLUSTER_TOKEN=burano",
		"ETCD_TRUSTED_CA_FILE=" + AuthorityFile,
		"ETCD_CERT_FILE=" + memberCert,
		"ETCD_KEY_FILE=" + memberKey,
		"ETCD_CLIENT_CERT_AUTH=true",
	}, peerEnv, []string{
		fmt.Sprintf("ETCD_MAX_LEARNERS=%d", MaxLearners),
		fmt.Sprintf("ETCD_QUOTA_BACKEND_BYTES=%d", quotaBytes),
		fmt.Sprintf("ETCD_SNAPSHOT_COUNT=%d", snapshotEntries),
		// Only root may compact, which the API server is not: without this the history of all changes would grow until the quota is used up. The time is
		// that after which the API server would compact.
		"ETCD_AUTO_COMPACTION_MODE=periodic",
		"ETCD_AUTO_COMPACTION_RETENTION=5m",
		// The JSON gateway would dial the member with its own certificate, which is no user.
		"ETCD_ENABLE_GRPC_GATEWAY=false",
		"ETCD_LOG_LEVEL=warn",
	})
	return systemd.Unit{
		Name:        "etcd",
		Description: "etcd member",
		Command:     []string{program},
		Service:     []string{"Type=notify", "TimeoutStartSec=120", "EnvironmentFile=" + memberEnv, "EnvironmentFile=" + JoinFile},
		Needs:       JoinFile, // without it a node that is rebooted before it joins would begin a cluster of its own
		Files: append([]ssh.File{
			Authority(authority),
			{Path: memberCert, Content: pair.Certificate},
			{Path: memberKey, Content: pair.Key, Mode: 0o600},
			{Path: memberEnv, Content: lines(env)},
		}, peerFiles...),
	}
}

// Join is the file that a member needs at its first start: the members of the cluster, itself included. It also keeps the id under which the member was
// added, if there is one: the data that the member begins belong to that id and are useless to another member.
func Join(members map[string]string, state string, id uint64) ssh.File {
	var cluster []string
	for name, url := range members {
		cluster = append(cluster, name+"="+url)
	}
	slices.Sort(cluster)
	content := []string{"ETCD_INITIAL_CLUSTER=" + strings.Join(cluster, ","), "ETCD_INITIAL_CLUSTER_STATE=" + state}
	if id != 0 {
		content = append(content, fmt.Sprintf("# member %x", id))
	}
	return ssh.File{Path: JoinFile, Content: lines(content)}
}

// Restored is the Join file of a member whose data were begun with a snapshot, alone. run names the restore.
func Restored(node Node, run string) ssh.File {
	file := Join(map[string]string{node.Name: node.PeerURL()}, "new", 0)
	file.Content = append(file.Content, lines([]string{restoredMark + run})...)
	return file
}

// restoredMark begins the line of a Join file that names the restore.
const restoredMark = "# restored "

// RestoredBy is true if a Join file is of that restore.
func RestoredBy(content, run string) bool {
	return slices.Contains(strings.Split(content, "\n"), restoredMark+run)
}

// ForwarderUnit is the forwarder of a node to the members.
const ForwarderUnit = "etcd-forwarder"

// Forwarder is the unit of a node's TCP forwarder on 127.0.0.1:2379. TLS passes through it, so certificates and
// permissions are the client's own. It has no reload: another list of voters is a restart.
func Forwarder(voters []Node) systemd.Unit {
	endpoints := make([]string, 0, len(voters))
	for _, voter := range voters {
		endpoints = append(endpoints, voter.hostPort(ClientPort))
	}
	slices.Sort(endpoints)
	return systemd.Unit{
		Name:        ForwarderUnit,
		Description: "forwarder to the etcd members",
		Command:     []string{program, "gateway", "start", "--listen-addr=127.0.0.1:2379", "--retry-delay=2s", "--endpoints=" + strings.Join(endpoints, ",")},
	}
}

func lines(text []string) []byte { return []byte(strings.Join(text, "\n") + "\n") }
