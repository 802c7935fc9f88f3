package simulated

import (
	"archive/tar"
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/crypto/ssh"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/network"
)

// The repository's folders of scripts that run on nodes.
var scriptFolders = []string{"nodes/scripts", "nodes/access/scripts"}

// World is the whole simulation: all nodes, the files of their image, and failures caused by gaps of the simulation.
type World struct {
	scripts    map[string]string // the text of a script → its file
	gatewayAPI []byte            // the file of the node image
	image      map[string]string // digests of files of the node image, by their paths
	snapshot   []byte            // of an etcd, with its digest

	etcd, api *feed // connections to all members and to all API servers
	kinds     map[string][]byte
	texts     sync.Map // content of API servers: an object that many clusters have is stored once
	Tally     *Tally   // of requests; nil for none

	// Endless makes all parts of the nodes answer without end.
	Endless atomic.Bool

	mutex    sync.Mutex
	floating map[netip.Addr]*node
	servers  map[string]*node // by Nova's id
	unknown  map[string]bool
}

func newWorld(root string) (*World, error) {
	w := &World{scripts: map[string]string{}, floating: map[netip.Addr]*node{}, servers: map[string]*node{}, unknown: map[string]bool{}, etcd: newFeed(), api: newFeed()}
	for _, folder := range scriptFolders {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.sh"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			w.scripts[string(text)] = filepath.Base(file)
		}
	}
	return w, nil
}

// scriptOf is the file of a script, which may be appended to a shared script; "" where it is none.
func (w *World) scriptOf(body string) string {
	if name, is := w.scripts[body]; is {
		return name
	}
	for text, name := range w.scripts {
		if strings.HasSuffix(body, text) {
			return name
		}
	}
	return ""
}

// beginsWith reports whether a text is this script with another script after it, and where the second one begins.
func (w *World) beginsWith(body, name string) (at int, is bool) {
	for text, one := range w.scripts {
		if one == name && len(body) > len(text) && strings.HasPrefix(body, text) {
			return len(text), true
		}
	}
	return 0, false
}

// note records a request that is not simulated: benchmarks fail with it.
func (w *World) note(format string, args ...any) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.unknown[fmt.Sprintf(format, args...)] = true
}

// Notes are the requests that are not simulated.
func (w *World) Notes() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return slices.Sorted(maps.Keys(w.unknown))
}

// node is a simulated server: the files that were put there, and the units that were started.
type node struct {
	world           *World
	cluster         *cluster
	id, name        string
	fixed, floating netip.Addr
	login           string // the key that may log in, as in authorized_keys

	mutex   sync.Mutex
	floods  int // commands with endless answers
	hostKey ssh.Signer
	next    ssh.Signer        // that it has made, and presents from the next restart of sshd
	files   map[string]string // path → digest
	links   map[string]string
	kept    map[string][]byte // the content of files that the simulation itself needs
	units   map[string]string // started units, with their arguments
	served  map[string]*tls.Config
}

// add takes a server of the simulated Nova into the world.
func (w *World) add(n *node) {
	n.world = w
	n.files = maps.Clone(w.image)
	n.links, n.kept, n.units, n.served = map[string]string{}, map[string][]byte{}, map[string]string{}, map[string]*tls.Config{}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.floating[n.floating], w.servers[n.id] = n, n
}

func (w *World) at(address netip.Addr) *node {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.floating[address]
}

func (w *World) server(id string) *node {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.servers[id]
}

const remoteProgram = "/opt/burano/bin/burano"

// Files whose content is stored.
var keptFiles = map[string]bool{etcd.JoinFile: true}

func init() {
	for _, name := range []string{memberPair, apiPair, metricsPair} {
		keptFiles["/etc/burano/pki/"+name+".crt"], keptFiles["/etc/burano/pki/"+name+".key"] = true, true
	}
}

// Certificates that programs of nodes present.
const memberPair, apiPair, metricsPair = "etcd-member", "apiserver", "metrics-server"

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// serveSSH answers as the sshd of every node, by the address that was dialled.
func (w *World) serveSSH(listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		address, _ := netip.AddrFromSlice(conn.LocalAddr().(*net.TCPAddr).IP)
		if n := w.at(address.Unmap()); n != nil {
			go n.serveSSH(conn)
			continue
		}
		conn.Close()
	}
}

// keyExchanges are the algorithms that the OpenSSH of the node image (9.2, of Debian 12) and package ssh both know, in OpenSSH's
// order.
var keyExchanges = []string{ssh.KeyExchangeCurve25519, "curve25519-sha256@libssh.org", ssh.KeyExchangeECDHP256, ssh.KeyExchangeECDHP384, ssh.KeyExchangeECDHP521,
	ssh.KeyExchangeDHGEXSHA256, ssh.KeyExchangeDH16SHA512, ssh.KeyExchangeDH14SHA256}

func (n *node) serveSSH(conn net.Conn) {
	defer conn.Close()
	config := &ssh.ServerConfig{Config: ssh.Config{KeyExchanges: keyExchanges}, PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) != n.login {
			return nil, errors.New("no such key")
		}
		return &ssh.Permissions{}, nil
	}}
	n.mutex.Lock()
	config.AddHostKey(n.hostKey)
	n.mutex.Unlock()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return // the other end sees it
	}
	n.world.Tally.add(0, "SSH connection")
	go ssh.DiscardRequests(requests)
	for asked := range channels {
		switch asked.ChannelType() {
		case "session":
			go n.session(asked)
		case "direct-tcpip":
			n.forward(asked)
		default:
			_ = asked.Reject(ssh.UnknownChannelType, "not simulated")
			n.world.note("channel %s", asked.ChannelType())
		}
	}
}

// forward connects to another node of the cluster, as this one would.
func (n *node) forward(asked ssh.NewChannel) {
	var to struct {
		Host     string
		Port     uint32
		From     string
		FromPort uint32
	}
	if err := ssh.Unmarshal(asked.ExtraData(), &to); err != nil {
		_ = asked.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	if to.Host == network.DefaultAddressing().API().String() || to.Host == network.DefaultAddressing().DNS().String() {
		n.answerInside(asked, to.Port)
		return
	}
	target, unit, pair, into := n.cluster.at(to.Host), "", "", n.world.api
	switch to.Port {
	case etcd.ClientPort:
		unit, pair, into = "etcd", memberPair, n.world.etcd
	case kube.APIServerPort:
		unit, pair = "kube-apiserver", apiPair
	case kube.MetricsPort:
		unit, pair = kube.MetricsUnit, metricsPair
	}
	if target == nil || unit == "" || !target.runs(unit) {
		_ = asked.Reject(ssh.ConnectionFailed, "Connection refused")
		return
	}
	n.world.Tally.add(0, "SSH forwards to %s", unit)
	channel, requests, err := asked.Accept()
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	into.put(&channelConn{Channel: channel, node: target, pair: pair})
}

// answerInside is the address of a Service: the API server's, to which clients only connect, or the DNS server's, which knows one address.
func (n *node) answerInside(asked ssh.NewChannel, port uint32) {
	n.world.Tally.add(0, "SSH forwards to a Service")
	channel, requests, err := asked.Accept()
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	go func() {
		defer channel.Close()
		var length uint16
		if port != 53 || binary.Read(channel, binary.BigEndian, &length) != nil {
			return
		}
		text := make([]byte, length)
		var message dnsmessage.Message
		if _, err := io.ReadFull(channel, text); err != nil || message.Unpack(text) != nil || len(message.Questions) != 1 {
			return
		}
		message.Response, message.Additionals = true, nil
		message.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: message.Questions[0].Name, Class: dnsmessage.ClassINET},
			Body: &dnsmessage.AResource{A: network.DefaultAddressing().API().As4()}}}
		if text, err = message.Pack(); err == nil {
			_ = binary.Write(channel, binary.BigEndian, uint16(len(text)))
			_, _ = channel.Write(text)
		}
	}()
}

func (n *node) runs(unit string) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.units[unit] != ""
}

// session runs the one command of a session.
func (n *node) session(asked ssh.NewChannel) {
	channel, requests, err := asked.Accept()
	if err != nil {
		return
	}
	defer channel.Close()
	for request := range requests {
		if request.Type != "exec" {
			_ = request.Reply(false, nil)
			continue
		}
		var command struct{ Line string }
		if err := ssh.Unmarshal(request.Payload, &command); err != nil {
			return
		}
		_ = request.Reply(true, nil)
		go ssh.DiscardRequests(requests)
		if n.world.Endless.Load() {
			n.flood(channel)
			return
		}
		var status struct{ Code uint32 }
		if err := n.run(channel, command.Line); err != nil {
			fmt.Fprintln(channel.Stderr(), err)
			status.Code = 1
		}
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
		return
	}
}

// Commands that are no scripts of nodes.
var (
	receiving = regexp.MustCompile(`^echo \$\$; exec cat '([^']+)'$`)
	sending   = regexp.MustCompile(`mv -fT '([^']+)'\.new '([^']+)'$`)
	looking   = regexp.MustCompile(`^if \[ -e (\S+) \]; then sha256sum (\S+); fi$`)
)

// run performs a command of package nodes/ssh.
func (n *node) run(channel ssh.Channel, line string) error {
	if strings.HasPrefix(line, "kill -KILL ") { // of a script whose caller has stopped waiting
		n.world.Tally.add(len(line), "SSH runs kill")
		return nil
	}
	words := split(strings.TrimPrefix(line, "exec "))
	if len(words) > 6 && words[3] == "fence" {
		words = words[6:]
	}
	if len(words) == 2 && words[1] == "-s" {
		text, err := io.ReadAll(channel)
		if err != nil {
			return err
		}
		env, body := unwrap(string(text))
		out, err := n.script(env, body)
		_, failed := io.WriteString(channel, "4711\n"+out)
		return errors.Join(err, failed)
	}
	if len(words) != 3 || words[1] != "-c" {
		n.world.note("command %.200s", line)
		return errors.New("not simulated")
	}
	if _, err := io.WriteString(channel, "4711\n"); err != nil {
		return err
	}
	if strings.HasPrefix(words[2], "#!/bin/bash\n# Unpacks a tar stream") {
		return n.unpack(channel)
	}
	if found := receiving.FindStringSubmatch(words[2]); found != nil && found[1] == kube.GatewayAPIFile {
		n.world.Tally.add(0, "SSH reads %s", found[1])
		_, err := channel.Write(n.world.gatewayAPI)
		return err
	}
	if found := sending.FindStringSubmatch(words[2]); found != nil {
		hash := sha256.New()
		length, err := io.Copy(hash, channel)
		if err != nil {
			return err
		}
		n.world.Tally.add(int(length), "SSH sends %s", found[2])
		n.mutex.Lock()
		defer n.mutex.Unlock()
		n.files[found[2]] = hex.EncodeToString(hash.Sum(nil))
		return nil
	}
	n.world.note("command %.300s", words[2])
	return errors.New("not simulated")
}

// unpack stores the digests of files.
func (n *node) unpack(from io.Reader) error {
	files := tar.NewReader(from)
	n.world.Tally.add(0, "SSH unpacks")
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		content, err := io.ReadAll(files)
		if err != nil {
			return err
		}
		n.world.Tally.add(len(content), "a file that was unpacked")
		path := "/" + header.Name
		n.mutex.Lock()
		if header.Typeflag == tar.TypeSymlink {
			n.links[path] = header.Linkname
		} else {
			n.files[path] = digest(content)
		}
		if keptFiles[path] {
			n.kept[path] = content
		}
		n.mutex.Unlock()
	}
}

// script has the effects of a script of package nodes.
func (n *node) script(env map[string]string, body string) (string, error) {
	if start, both := n.world.beginsWith(body, "start.sh"); both {
		first, err := n.script(env, body[:start])
		if err != nil {
			return first, err
		}
		second, err := n.script(env, body[start:])
		return first + second, err
	}
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	n.mutex.Lock()
	defer n.mutex.Unlock()
	name := n.world.scriptOf(body)
	n.world.Tally.add(len(body), "SSH runs %s %s", cmp.Or(name, body), env["ACTION"])
	switch name {
	case "host-key.sh":
		return n.hostKeyScript(env["ACTION"])
	case "facts.sh":
		say("mtu 1450\ndevice eth0\nmachine %s\nmemory 8000000\nresolver 10.20.0.1\nmetrics\nstorage\ncinder\nzoned\nmanila\nkeepalived", strings.ReplaceAll(n.id, "-", ""))
		for path := range strings.Lines(env["PATHS"]) {
			path = strings.TrimSpace(path)
			if target, there := n.links[path]; there {
				say("link %s %s", path, target)
			} else if sum, there := n.files[path]; there {
				say("file %s %s", sum, path)
			}
		}
	case "place-files.sh", "services.sh", "journal.sh", "stopped-units.sh":
	case "start.sh":
		for line := range strings.Lines(env["UNITS"]) {
			unit, fingerprint, _ := strings.Cut(strings.TrimSpace(line), " ")
			if n.units[unit] == fingerprint {
				say("kept %s", unit)
				continue
			}
			n.units[unit] = fingerprint
			say("started %s", unit)
			if unit == "etcd" {
				n.cluster.started(n)
			}
		}
	case "images.sh":
		say("imported coredns\nimported pause")
	case "health.sh":
		for unit := range strings.Lines(env["UNITS"]) {
			say("%s 0", strings.TrimSpace(unit))
		}
	case "etcd-data.sh":
		if n.units["etcd"] == "" {
			say("no")
			break
		}
		_, id, _ := strings.Cut(string(n.kept[env["JOIN"]]), "# member ")
		say("yes %s", strings.TrimSpace(id))
	case "disk.sh":
		say("4000000 5000000 4096")
	default:
		if body == "systemctl daemon-reload" {
			break
		}
		if found := looking.FindStringSubmatch(body); found != nil && n.files[found[1]] != "" {
			say("%s  %s", n.files[found[1]], found[1])
			break
		}
		n.world.note("script %q: %.300s", name, body)
		return "", fmt.Errorf("script %q is not simulated", name)
	}
	return out.String(), nil
}

func (n *node) hostKeyScript(action string) (string, error) {
	if action == "present" {
		n.hostKey = n.next
		return "", nil
	}
	if n.next == nil {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return "", err
		}
		if n.next, err = ssh.NewSignerFromKey(private); err != nil {
			return "", err
		}
	}
	return string(ssh.MarshalAuthorizedKey(n.next.PublicKey())), nil
}

// tls is the TLS configuration of one of the node's programs, with its certificate files.
func (n *node) tls(pair string) (*tls.Config, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.served[pair] == nil {
		certificate, err := tls.X509KeyPair(n.kept["/etc/burano/pki/"+pair+".crt"], n.kept["/etc/burano/pki/"+pair+".key"])
		if err != nil {
			return nil, fmt.Errorf("certificate %s of %s: %w", pair, n.name, err)
		}
		n.served[pair] = &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2"}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	}
	return n.served[pair], nil
}

// split takes apart words in single quotes.
func split(line string) (words []string) {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		word, rest := unquote(line)
		words, line = append(words, word), rest
	}
	return words
}

// unquote reads one word in single quotes, in which a quote is '\”.
func unquote(text string) (word, rest string) {
	text = strings.TrimPrefix(text, "'")
	for {
		part, after, _ := strings.Cut(text, "'")
		word += part
		if !strings.HasPrefix(after, `\''`) {
			return word, after
		}
		word, text = word+"'", after[len(`\''`):]
	}
}

// unwrap takes a script, with its variables, out of the input of bash.
func unwrap(text string) (env map[string]string, body string) {
	env = map[string]string{}
	text = strings.TrimPrefix(text, "echo $$\n")
	for strings.HasPrefix(text, "export ") {
		name, rest, _ := strings.Cut(strings.TrimPrefix(text, "export "), "=")
		env[name], text = unquote(rest)
		text = strings.TrimPrefix(text, "\n")
	}
	return env, strings.TrimSuffix(strings.TrimPrefix(text, "{\n"), "\n} </dev/null\n")
}
