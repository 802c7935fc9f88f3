package haproxy_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/haproxy"
	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
)

// written are users' texts about requests: they reach HAProxy's configuration and its maps.
type written struct{ host, path, name, value, method, parameter, query string }

// web serves the texts in every place where they may occur.
func (w written) web(port uint16) haproxy.Web {
	pool := route.Pool{Namespace: "default", Service: "a", Port: "http", Backends: []route.Backend{{Address: "127.0.0.1", Port: 1, Ready: true}}}
	headers := &route.Headers{Set: []route.Pair{{Name: w.name, Value: w.value}}, Add: []route.Pair{{Name: w.name, Value: w.value}}, Remove: []string{w.name}}
	name := strings.TrimPrefix(w.host, "*.")
	path := func(f *route.Filters) route.Path {
		return route.Path{Port: port, Host: w.host, Path: w.path, Targets: []route.Target{{Weight: 1, Filters: f, Pool: pool.Name()}}, Match: &route.Match{
			Method: w.method, Headers: []route.Pair{{Name: w.name, Value: w.value}}, Queries: []route.Pair{{Name: w.parameter, Value: w.query}},
		}}
	}
	filtered := path(&route.Filters{Request: headers, Response: headers, Host: name, Rewrite: &route.Rewrite{Path: w.path}})
	if name != "" {
		filtered.Targets[0].Filters.TLS = &route.BackendTLS{Host: name}
	}
	away := path(&route.Filters{Redirect: &route.Redirect{Scheme: "https", Host: name, Port: 8443, Code: 302}, Rewrite: &route.Rewrite{Path: w.path}})
	away.Exact = true
	return haproxy.Web{HTTP: route.HTTP{
		Listeners: []route.Listener{{Port: port}},
		Pools:     []route.Pool{pool},
		Sites: []route.Site{
			{Namespace: "default", Kind: route.KindHTTPRoute, Name: "a", Paths: []route.Path{filtered, away}},
			{Namespace: "default", Ingress: "a", Paths: []route.Path{{Host: w.host, Path: w.path, Pool: pool.Name()}}},
		},
	}}
}

// FuzzWhatUsersWriteStaysWhereItIs checks that no text of a user begins another line, word or quotation in the configuration or in a map: the output for
// every accepted text has the form of the output for a harmless one.
func FuzzWhatUsersWriteStaysWhereItIs(f *testing.F) {
	harmless := written{host: "a.org", path: "/a", name: "a", value: "a", method: "GET", parameter: "a", query: "a"}
	for _, evil := range []string{"\n", " ", `"`, `'`, `\`, "#", "%[src]", "%{+Q}o", "${HOME}", "}", "a b", "a\nbind :1", "a\x00", "*", "é"} {
		for _, w := range []written{
			{host: evil}, {path: "/" + evil}, {name: evil}, {value: evil}, {method: evil}, {parameter: evil}, {query: evil},
		} {
			f.Add(w.host, w.path, w.name, w.value, w.method, w.parameter, w.query)
		}
	}
	f.Add("*.a.org", "/%20$&'()*+,;=:@~", "A_b-c.d", `%[src] "a" 'b' \ # ${HOME}`, "PATCH", "a~b", strings.Repeat("é", 256))
	port := haproxytest.FreePort(f)
	forms := make(map[written][]string)
	for _, host := range []string{"", harmless.host} {
		for _, path := range []string{"/", harmless.path} {
			like := harmless
			like.host, like.path = host, path
			forms[like] = form(f, like.web(port))
		}
	}
	f.Fuzz(func(t *testing.T, host, path, name, value, method, parameter, query string) {
		w, like := written{host, path, name, value, method, parameter, query}, harmless
		for text, instead := range map[*string]string{&w.path: "/a", &w.name: "a", &w.value: "a", &w.method: "GET", &w.parameter: "a", &w.query: "a"} {
			if *text == "" {
				*text = instead
			}
		}
		if host == "" {
			like.host = ""
		}
		if strings.Trim(w.path, "/") == "" {
			like.path = "/"
		}
		web := w.web(port)
		for _, site := range web.Sites {
			if (route.Part{Site: &site}).Validate() != nil {
				return // it reaches no gateway
			}
		}
		require.Equal(t, forms[like], form(t, web))
	})
}

// ruled are users' texts in rules of Ingresses.
type ruled struct{ regex, template, location, cookie, hash, value string }

func (w ruled) web(port uint16) haproxy.Web {
	pool := route.Pool{Namespace: "default", Service: "a", Port: "http", Backends: []route.Backend{{Address: "127.0.0.1", Port: 1, Ready: true}}}
	rule := func(f route.Filters) route.Rule {
		return route.Rule{Match: &route.Match{Regex: w.regex, Cookies: []route.Pair{{Name: w.cookie, Value: w.value}}}, Targets: []route.Target{{Pool: pool.Name(), Weight: 1, Filters: &f}}}
	}
	network := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	path := route.Path{Host: "a.org", Path: "/", Pool: route.ClosedPool("default").Name(), Rules: []route.Rule{
		rule(route.Filters{
			Rewrite: &route.Rewrite{Path: w.template, Regex: w.regex}, Cookie: &route.Cookie{Name: w.cookie, SameSite: "Lax"}, Hash: &route.Hash{Kind: route.HashHeader, Name: w.hash},
			Access: &route.Access{Allow: network, Deny: network}, Limits: &route.Limits{PerSecond: 1, PerMinute: 1, Burst: 1, Connections: 1, Except: network}, Body: 1, OnlyTLS: true,
		}),
		rule(route.Filters{Redirect: &route.Redirect{Location: w.location, Rest: true, Code: 301}}),
	}}
	path.Rules[1].Match = nil
	return haproxy.Web{HTTP: route.HTTP{Listeners: []route.Listener{{Port: port}}, Pools: []route.Pool{pool}, Sites: []route.Site{{Namespace: "default", Ingress: "a", Paths: []route.Path{path}}}}}
}

// FuzzRulesOfIngressesStayWhereTheyAre checks that no text of a rule begins another line, word or quotation. Characters of regular expressions have no meaning in strong quotation marks.
func FuzzRulesOfIngressesStayWhereTheyAre(f *testing.F) {
	harmless := ruled{"/a", "/a", "/a", "a", "a", "a"}
	for _, evil := range []string{"\n", " ", `"`, `'`, `\`, "#", "%[src]", "%", "${HOME}", "$1", "}", "a b", "a\nbind :1", "(.*)", "é"} {
		for _, w := range []ruled{{regex: "/" + evil}, {template: "/" + evil}, {location: "/" + evil}, {cookie: evil}, {hash: evil}, {value: evil}} {
			f.Add(w.regex, w.template, w.location, w.cookie, w.hash, w.value)
		}
	}
	f.Add(`/x(/|$)(.*)[a-z]{2}\.`, "/$1/%25/$2", "https://a.org/?x=%41&y=z#f", "A_b-c", "X-Y", `%[src] "a" 'b' \ # ${HOME}`)
	port := haproxytest.FreePort(f)
	quoted := func(lines []string) (marks []string) {
		for _, line := range lines {
			words := strings.Fields(line) // the file, the number of words, and, of the configuration, counts of characters
			for i, word := range words {
				if i < 3 || word[0] == '"' || word[0] == '\'' || word[0] == '#' {
					marks = append(marks, word)
				}
			}
		}
		return marks
	}
	form0 := quoted(form(f, harmless.web(port)))
	f.Fuzz(func(t *testing.T, regex, template, location, cookie, hash, value string) {
		w := ruled{regex, template, location, cookie, hash, value}
		for text, instead := range map[*string]string{&w.regex: "/a", &w.template: "/a", &w.location: "/a", &w.cookie: "a", &w.hash: "a", &w.value: "a"} {
			if *text == "" {
				*text = instead
			}
		}
		web := w.web(port)
		if (route.Part{Site: &web.Sites[0]}).Validate() != nil {
			return // it reaches no gateway
		}
		require.ElementsMatch(t, form0, quoted(form(t, web)))
	})
}

// line matches the lines of the configuration that come from a route. All begin with the words of one directive, and none has room for another.
var line = regexp.MustCompile(`^(` + strings.Join([]string{
	``,
	`frontend port-8000 from burano-ports`,
	`backend port-8000 from burano`,
	`backend clients from burano`,
	`  description [a-z0-9.-]+/[a-z0-9.-]+:[a-z0-9.-]+ rules:[0-9a-f]{12}`,
	`  (maxconn|timeout client|timeout server) [0-9]+`,
	`  stick-table type ip size 100000 expire 60000 store conn_cur`,
	`  bind 0\.0\.0\.0:8000 name port-8000( accept-proxy)?`,
	`  acl sources src( [0-9a-f.:]+/[0-9]+)+`,
	`  tcp-request connection (track-sc1 src table port-8000|reject (unless sources|if \{ sc1_conn_cur gt [0-9]+ \})|accept)`,
	`  default_backend port-8000`,
	`  server [0-9a-f.:]+-[0-9]+ [0-9a-f.:\[\]]+:[0-9]+ check( weight 0)?( send-proxy-v2)?`,
}, `|`) + `)$`)

// FuzzRoutesWriteNothingElse checks that no value of a route in etcd writes anything into the configuration but the parts of a route.
func FuzzRoutesWriteNothingElse(f *testing.F) {
	value := `{"version":1,"namespace":"default","service":"web","port":"http","gatewayPort":8000,"protocol":"TCP","sources":["10.0.0.0/8","fd00::/8"],"idleSeconds":60,` +
		`"connections":10,"connectionsPerClient":2,"acceptProxy":true,"sendProxy":true,"backends":[{"address":"10.0.0.1","port":80,"node":"n","ready":true},{"address":"fd00::1","port":80,"draining":true}]}`
	f.Add([]byte(value))
	for _, place := range []string{"default", "web", "http", "TCP", "10.0.0.0/8", "fd00::/8", "10.0.0.1", "fd00::1", "n"} {
		for _, evil := range []string{`a\nfrontend x\n  bind :22`, `a # b`, `a b`, `\"`, `\\`, `%[src]`, `fe80::1%a\nb`, `é`} {
			f.Add([]byte(strings.Replace(value, `"`+place+`"`, `"`+evil+`"`, 1)))
		}
	}
	empty := len(strings.Split(configuration(f, nil, haproxy.Web{}), "\n"))
	f.Fuzz(func(t *testing.T, value []byte) {
		r, err := route.Decode(route.RoutesPrefix+"8000", value)
		if err != nil {
			return // it reaches no gateway
		}
		lines := strings.Split(configuration(t, []route.Route{r}, haproxy.Web{}), "\n")
		head := slices.Index(lines, "frontend port-8000 from burano-ports")
		require.Positive(t, head)
		require.Less(t, head, empty, "the head is as it is without routes")
		for _, text := range lines[head:] {
			require.Regexp(t, line, text)
			require.Less(t, len(text), 2048, "HAProxy takes no longer lines")
		}
	})
}

// form returns the number of words in each line written for HAProxy, and its special characters.
func form(t testing.TB, web haproxy.Web) (lines []string) {
	contents := contents(t, nil, web)
	require.Greater(t, len(contents), 1, "there are maps")
	for file, content := range contents {
		for line := range strings.Lines(string(content)) {
			require.Less(t, len(line), 2048, "HAProxy takes no longer lines")
			words := strings.Fields(line)
			if len(words) == 0 {
				continue
			}
			text := fmt.Sprint(file, " ", len(words))
			if file == configurationFile {
				text += " " + words[0]
				for _, meaning := range "\"'\\#%[]{}$!" {
					text += fmt.Sprintf(" %c%d", meaning, strings.Count(line, string(meaning)))
				}
			}
			lines = append(lines, text)
		}
	}
	slices.Sort(lines)
	return lines
}

const configurationFile = "haproxy.cfg"

func configuration(t testing.TB, routes []route.Route, web haproxy.Web) string {
	return string(contents(t, routes, web)[configurationFile])
}

// contents returns the files written for HAProxy, by their names.
func contents(t testing.TB, routes []route.Route, web haproxy.Web) map[string][]byte {
	directory, err := os.MkdirTemp("", "haproxy-") // the path of a socket is short
	require.NoError(t, err)
	defer os.RemoveAll(directory)
	file := filepath.Join(directory, configurationFile)
	contents := make(map[string][]byte)
	errNobody := errors.New("no HAProxy runs")
	proxy, err := haproxy.Open(context.Background(), haproxy.Config{
		ConfigFile: file, Socket: filepath.Join(directory, "socket"), Binary: "/bin/true",
		Reload: func(context.Context) error {
			content, err := os.ReadFile(file) // the one before comes back
			contents[configurationFile] = content
			return cmp.Or(err, errNobody)
		},
	})
	require.NoError(t, err)
	_, err = proxy.Apply(context.Background(), routes, web)
	require.ErrorIs(t, err, errNobody)
	files, err := filepath.Glob(filepath.Join(directory, "burano", "*.map"))
	require.NoError(t, err)
	for _, file := range files {
		contents[filepath.Base(file)], err = os.ReadFile(file)
		require.NoError(t, err)
	}
	return contents
}
