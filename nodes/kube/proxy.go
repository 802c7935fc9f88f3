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

// Proxy says how minions reach what is outside of a closed network: container images above all. The zero value is that they do by themselves.
type Proxy struct {
	http, https string   // URLs
	except      []string // hosts, domains and ranges that are reached without, beside those of the cluster
}

// ProxySettings are a cluster's properties of proxies, each empty for none.
type ProxySettings struct {
	HTTP, HTTPS string // URLs of proxies for requests by HTTP, and by HTTPS
	No          string // hosts, domains, addresses and ranges, between commas or spaces
}

var (
	// proxyURL has nothing that would have to be quoted in an environment file.
	proxyURL = regexp.MustCompile(`^[a-zA-Z0-9:/?#\[\]@!$&()*+,;=._~%-]+$`)
	// exempt is a host, a domain with or without a dot in front, an address or a range.
	exempt = regexp.MustCompile(`^\.?[a-zA-Z0-9_*:.-]+(/[0-9]{1,3})?(:[0-9]{1,5})?$`)
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
	for _, one := range strings.FieldsFunc(s.No, func(c rune) bool { return c == ',' || c == ' ' || c == '\n' || c == '\t' }) {
		if !exempt.MatchString(one) {
			problems = append(problems, fmt.Errorf("noProxy has %q: give hosts, domains, addresses and ranges, such as registry.example.org, .example.org and 192.0.2.0/24, with commas between them", one))
		}
		p.except = append(p.except, one)
	}
	if s.HTTP == "" && s.HTTPS == "" && len(p.except) > 0 {
		problems = append(problems, errors.New("noProxy says what is reached without a proxy, and there is none: name one in httpProxy or httpsProxy, or leave noProxy out"))
	}
	return p, errors.Join(problems...)
}

func (p Proxy) exists() bool { return p.http != "" || p.https != "" }

// files are what containerd reads of the proxy when it starts. Where there is none any more, they say so.
func (p Proxy) files(environment []byte) []ssh.File {
	unit := "# There is no proxy.\n"
	if p.exists() {
		unit = "[Service]\nEnvironmentFile=" + proxyFile + "\n"
	}
	return []ssh.File{{Path: ProxyOfContainerd, Content: []byte(unit)}, {Path: proxyFile, Content: environment, Mode: 0o600}}
}

// proxyEnvironment is what programs written in Go read of the proxy. What is of the cluster is never asked for through it.
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
