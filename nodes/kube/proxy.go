package kube

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/nodes/ssh"
)

const (
	proxyFile = "/etc/burano/proxy.env"
	// ProxyOfContainerd adds the file to containerd's unit, which is Debian's.
	ProxyOfContainerd = "/etc/systemd/system/containerd.service.d/burano-proxy.conf"
)

// Proxy is how minions reach the outside of a closed network, above all for container images. The zero value means that they need no proxy.
type Proxy struct {
	http, https string   // URLs
	except      []string // hosts, domains and ranges that are reached without the proxy, beside the cluster's own
	masters     []string // hosts and domains that are reached through masters, which are the proxy then; empty where they are not
}

// ProxySettings are a cluster's properties of proxies, each empty for none.
type ProxySettings struct {
	HTTP, HTTPS string // URLs of proxies for requests by HTTP, and by HTTPS
	No          string // hosts, domains, addresses and ranges, between commas or spaces
	Masters     string // hosts and domains, between commas or spaces, that are reached through the masters
}

var (
	// proxyURL has nothing that would have to be quoted in an environment file.
	proxyURL = regexp.MustCompile(`^[a-zA-Z0-9:/?#\[\]@!$&()*+,;=._~%-]+$`)
	// exempt is a host, a domain with or without a dot in front, an address or a range.
	exempt = regexp.MustCompile(`^\.?[a-zA-Z0-9_*:.-]+(/[0-9]{1,3})?(:[0-9]{1,5})?$`)
	// reached is a host, or a domain with a dot in front, with a port or without.
	reached = regexp.MustCompile(`^\.?[a-zA-Z0-9_]([a-zA-Z0-9_.-]*[a-zA-Z0-9_])?(:[0-9]{1,5})?$`)
)

// ParseProxy checks the settings.
func ParseProxy(s ProxySettings) (Proxy, error) {
	var problems []error
	parse := func(property, text string) string {
		u, err := url.Parse(text)
		if text != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || !proxyURL.MatchString(text)) {
			shown := text
			if at := strings.LastIndex(text, "@"); at >= 0 {
				shown = "…" + text[at:]
			}
			problems = append(problems, fmt.Errorf("%s is %q: give the URL of a proxy, such as http://proxy.example.org:3128, special characters of a user and password as %%XX", property, shown))
		}
		return text
	}
	p := Proxy{http: parse("httpProxy", s.HTTP), https: parse("httpsProxy", s.HTTPS)}
	for _, one := range listed(s.Masters) {
		if !reached.MatchString(one) {
			problems = append(problems, fmt.Errorf("registriesThroughMasters has %q: give hosts and domains, such as registry.example.org, registry.example.org:5000 and .example.org, with commas between them", one))
		}
		p.masters = append(p.masters, one)
	}
	if len(p.masters) > 0 {
		if s.HTTP != "" || s.HTTPS != "" {
			problems = append(problems, errors.New("minions reach registries through masters (registriesThroughMasters) or through a proxy (httpProxy, httpsProxy): leave one of them out"))
		}
		p.http, p.https = wayURL, wayURL
	}
	for _, one := range listed(s.No) {
		if !exempt.MatchString(one) {
			problems = append(problems, fmt.Errorf("noProxy has %q: give hosts, domains, addresses and ranges, such as registry.example.org, .example.org and 192.0.2.0/24, with commas between them", one))
		}
		p.except = append(p.except, one)
	}
	if !p.exists() && len(p.except) > 0 {
		problems = append(problems, errors.New("noProxy says what is reached without a proxy, and there is none: name one in httpProxy or httpsProxy, or leave noProxy out"))
	}
	return p, errors.Join(problems...)
}

func listed(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ' ' || c == '\n' || c == '\t' })
}

func (p Proxy) exists() bool { return p.http != "" || p.https != "" }

// ThroughMasters is true if the masters are the proxy.
func (p Proxy) ThroughMasters() bool { return len(p.masters) > 0 }

// OfMaster is the proxy of a master, which is no proxy for itself.
func (p Proxy) OfMaster() Proxy {
	if p.ThroughMasters() {
		return Proxy{}
	}
	return p
}

// files are the proxy's settings that a runtime reads when it starts: an addition to its unit, and the files that it names. They also record that there is
// no proxy any more.
func (p Proxy) files(addition string, environment []byte) []ssh.File {
	unit := "# There is no proxy.\n"
	if p.exists() {
		unit = "[Service]\nEnvironmentFile=" + proxyFile + "\n"
	}
	return []ssh.File{{Path: addition, Content: []byte(unit)}, {Path: proxyFile, Content: environment, Mode: 0o600}}
}

// proxyEnvironment is the proxy's settings for programs in Go. The cluster's own addresses are never asked for through the proxy.
func (c Cluster) proxyEnvironment() []byte {
	if !c.Proxy.exists() {
		return nil
	}
	var text strings.Builder
	for _, one := range [][2]string{{"HTTP_PROXY", c.Proxy.http}, {"HTTPS_PROXY", c.Proxy.https}} {
		if one[1] != "" {
			fmt.Fprintf(&text, "%s=%s\n", one[0], one[1])
		}
	}
	except := append([]string{"localhost", "127.0.0.0/8", "169.254.169.254"}, ranges(c.NodeNetwork, c.NodeNetwork6, c.Addressing)...)
	except = append(except, APIServerName(c.Name), ".svc", "."+c.Addressing.Domain)
	if c.RegistryHost() != "" {
		except = append(except, c.Registries.own)
	}
	fmt.Fprintf(&text, "NO_PROXY=%s\n", strings.Join(append(except, c.Proxy.except...), ","))
	return []byte(text.String())
}

func ranges(nodes, nodes6 netip.Prefix, addressing network.Addressing) (list []string) {
	for _, one := range slices.Concat([]netip.Prefix{nodes, nodes6}, addressing.PodRanges(), addressing.ServiceRanges()) {
		if one.IsValid() {
			list = append(list, one.String())
		}
	}
	return list
}
