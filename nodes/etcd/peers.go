package etcd

import (
	"bytes"
	"net/netip"
	"slices"

	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/ssh"
)

// Members talk to each other with certificates of a separate authority, and only with certificates of the name peerName. If a client's certificate opened
// the raft port, its holder could propose changes in the name of any user. Clusters of former versions trust the authority of clients there, and go from
// stage to stage.

// Stage is the pair of a member's own certificate for peers and the authorities that it trusts. Members of a stage and of the next one understand each
// other. So a cluster moves all members, one after another, to the next stage before it goes on.
type Stage string

// The stages.
const (
	TrustClients Stage = ""            // members use the clients' authority, as clusters of former versions do
	TrustBoth    Stage = "trust both"  // and still show the former certificate
	ShowOwn      Stage = "show own"    // and still trust both
	TrustPeers   Stage = "trust peers" // and no other authority: new clusters begin with it
)

// Next is the stage after this one, the last one after itself.
func (s Stage) Next() Stage {
	stages := []Stage{TrustClients, TrustBoth, ShowOwn, TrustPeers}
	return stages[min(slices.Index(stages, s)+1, len(stages)-1)]
}

// Files of the peers' authority and of a member's certificate for its peers.
const (
	peerAuthorityFile = folder + "/etcd-peer-ca.crt"
	peerCert          = folder + "/etcd-peer.crt"
	peerKey           = folder + "/etcd-peer.key"
	peerName          = "etcd-peer"
)

// Peers is the certificate that a member shows its peers, and the authorities that it trusts.
type Peers struct {
	Stage     Stage
	Authority []byte // certificate of the peers' own authority
	Pair      pki.Pair
}

// PeerRequest is the certificate that the node's member shows its peers. They also look whether it comes from an address that it names:
// that of the node, or one that is the peer's own machine.
func (n Node) PeerRequest() pki.Request {
	return pki.Request{CommonName: peerName, DNS: []string{n.Name}, IP: []netip.Addr{n.Address, netip.MustParseAddr("127.0.0.1")}, Usage: pki.Server | pki.Client}
}

// install are the settings and files by which a member trusts its peers. clients is the certificate of the authority of clients.
func (p Peers) install(clients []byte) (env []string, files []ssh.File) {
	trusted, cert, key := peerAuthorityFile, peerCert, peerKey
	switch p.Stage {
	case TrustClients:
		trusted = AuthorityFile
	case TrustPeers:
		files = append(files, ssh.File{Path: peerAuthorityFile, Content: p.Authority})
	default:
		files = append(files, ssh.File{Path: peerAuthorityFile, Content: slices.Concat(bytes.TrimRight(clients, "\n"), []byte("\n"), p.Authority)})
	}
	if p.Stage == TrustClients || p.Stage == TrustBoth {
		cert, key = memberCert, memberKey
	} else {
		files = append(files, ssh.File{Path: peerCert, Content: p.Pair.Certificate}, ssh.File{Path: peerKey, Content: p.Pair.Key, Mode: 0o600})
	}
	env = []string{"ETCD_PEER_TRUSTED_CA_FILE=" + trusted, "ETCD_PEER_CERT_FILE=" + cert, "ETCD_PEER_KEY_FILE=" + key, "ETCD_PEER_CLIENT_CERT_AUTH=true"}
	if p.Stage == TrustPeers {
		env = append(env, "ETCD_PEER_CERT_ALLOWED_CN="+peerName)
	}
	return env, files
}
