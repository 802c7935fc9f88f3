package haproxy

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/burano/burano/gateway/traffic"
)

// text is a configuration as it is written: it is changed without parsing its thousands of listeners anew.
type text struct {
	head     string            // global and defaults, with comments
	sections map[string]string // by their first two words, such as "frontend port-80"
}

const (
	versionLine  = "# _version=1\n" // client-native wants one
	serverIndent = "  server "
)

// sectionKinds are the words that begin a section behind the head; people may have written sections that Burano does not write.
var sectionKinds = []string{
	"frontend", "backend", "listen", "cache", "fcgi-app", "http-errors", "log-forward", "mailers", "peers", "program", "resolvers", "ring", "userlist",
}

func frontendKey(section string) string { return "frontend " + section }
func backendKey(section string) string  { return "backend " + section }

// readText takes a configuration apart.
func readText(content string) text {
	t := text{sections: make(map[string]string)}
	start, key := 0, ""
	end := func(at int) {
		if part := strings.TrimSpace(content[start:at]); key == "" {
			t.head = part + "\n"
		} else {
			t.sections[key] = part + "\n"
		}
		start = at
	}
	at := 0
	for line := range strings.Lines(content) {
		if words := strings.Fields(line); len(words) > 1 && slices.Contains(sectionKinds, words[0]) {
			end(at)
			key = words[0] + " " + words[1]
		}
		at += len(line)
	}
	end(at)
	if first, rest, _ := strings.Cut(t.head, "\n"); strings.HasPrefix(first, "# _version") {
		t.head = rest
	}
	return t
}

func (t text) clone() text { return text{head: t.head, sections: maps.Clone(t.sections)} }

func (t text) String() string {
	keys := slices.Sorted(maps.Keys(t.sections))
	size := len(versionLine) + len(t.head)
	for _, section := range t.sections {
		size += 1 + len(section)
	}
	var b strings.Builder
	b.Grow(size)
	b.WriteString(versionLine + t.head)
	for _, kind := range sectionKinds {
		for _, key := range keys {
			if after, is := strings.CutPrefix(key, kind); is && after[0] == ' ' {
				b.WriteString("\n")
				b.WriteString(t.sections[key])
			}
		}
	}
	return b.String()
}

// skeleton identifies configurations by the parts that need a reload: all but servers, the interval of their checks, and descriptions. Whether the servers
// of a section get the origin of connections belongs to it: running ones do not change this.
func (t text) skeleton() [sha256.Size]byte {
	sum := sha256.New()
	told := false
	for line := range strings.Lines(t.String()) {
		switch word, _, _ := strings.Cut(strings.TrimLeft(line, " "), " "); word {
		case "default-server", "description":
		case "server":
			if !told && strings.Contains(line, sendProxy) {
				sum.Write([]byte(sendProxy))
				told = true
			}
		default:
			sum.Write([]byte(line))
			told = told && strings.HasPrefix(line, " ") // another section begins
		}
	}
	return [sha256.Size]byte(sum.Sum(nil))
}

// listeners are the published ports and the pools. Sections that are not ours, or were spoilt, are not among them.
func (t text) listeners() map[string]listener {
	found := make(map[string]listener)
	for key := range t.sections {
		kind, section, _ := strings.Cut(key, " ")
		port, published := traffic.Port(section)
		if kind == "frontend" && published || kind == "backend" && strings.HasPrefix(section, poolPrefix) {
			l := listener{Section: section, Port: port}
			for line := range strings.Lines(t.sections[key]) {
				if about, is := strings.CutPrefix(line, "  description "); is {
					l.About = strings.TrimSpace(about)
				}
			}
			for line := range strings.Lines(t.sections[backendKey(section)]) {
				if s, is := readServer(line); is {
					l.Servers = append(l.Servers, s)
				}
			}
			slices.SortFunc(l.Servers, compareServers)
			found[section] = l
		}
	}
	return found
}

// readServer reads a server from the configuration. Former releases had disabled ones, free places, which are no servers.
func readServer(line string) (s server, is bool) {
	words := strings.Fields(line)
	if len(words) < 3 || words[0] != "server" || slices.Contains(words[3:], "disabled") {
		return server{}, false
	}
	address, err := readAddress(words[2])
	if err != nil {
		return server{}, false
	}
	s = server{Name: serverName(address), Address: address, State: ready}
	if i := slices.Index(words, "weight"); i > 0 && i+1 < len(words) && words[i+1] == "0" {
		s.State = draining
	}
	return s, true
}

// readAddress reads an address with its port. Former releases wrote IPv6 addresses without brackets.
func readAddress(word string) (netip.AddrPort, error) {
	if address, err := netip.ParseAddrPort(word); err == nil {
		return address, nil
	}
	colon := strings.LastIndexByte(word, ':')
	if colon < 0 {
		return netip.AddrPort{}, fmt.Errorf("%q has no port", word)
	}
	address, err := netip.ParseAddr(word[:colon])
	if err != nil {
		return netip.AddrPort{}, err
	}
	port, err := strconv.ParseUint(word[colon+1:], 10, 16)
	return netip.AddrPortFrom(address, uint16(port)), err
}

// serverLine is the form of a server in the configuration.
func serverLine(s server, checks checks, id, protocol string) string {
	line := serverIndent + s.Name + " " + s.Address.String() + id + checks.word()
	if s.State == draining {
		line += " weight 0"
	}
	return line + protocol + "\n"
}

// Words of a server that select its protocol.
const (
	http2     = " proto h2"
	sendProxy = " send-proxy-v2"
)

// place puts the servers of a listener into its section, in the place of others.
func (t text) place(l listener, checks checks) {
	var section strings.Builder
	protocol, affinity := l.protocol(), l.hashed()
	for line := range strings.Lines(t.sections[backendKey(l.Section)]) {
		if !strings.HasPrefix(line, serverIndent) {
			section.WriteString(line)
			continue
		}
		affinity = affinity || isIdentified(line)
		for _, one := range []string{http2, sendProxy} { // which is unknown for a read server
			if strings.Contains(line, one) {
				protocol = one
			}
		}
		if at := strings.Index(line, secured); at >= 0 {
			protocol = strings.TrimSuffix(line[at:], "\n")
		}
	}
	var ids map[netip.AddrPort]string
	if affinity {
		ids = identified(l.Servers)
	}
	for _, s := range l.Servers {
		section.WriteString(serverLine(s, checks, ids[s.Address], protocol))
	}
	t.sections[backendKey(l.Section)] = section.String()
}
