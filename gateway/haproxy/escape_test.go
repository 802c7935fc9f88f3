package haproxy_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/haproxy"
	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
)

// written is what users write of requests: it reaches HAProxy's configuration and its maps.
type written struct{ host, path, name, value, method, parameter, query string }

// web serves what is written in every place where it may stand.
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

// FuzzWhatUsersWriteStaysWhereItIs holds that no text of a user begins another line, word or quotation in the configuration or in a map: what is written
// of any text that is taken has the form of what is written of a harmless one.
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

// form is how many words each line has of what is written for HAProxy, and what it has of characters with a meaning.
func form(t testing.TB, web haproxy.Web) (lines []string) {
	directory, err := os.MkdirTemp("", "haproxy-") // the path of a socket is short
	require.NoError(t, err)
	defer os.RemoveAll(directory)
	file := filepath.Join(directory, "haproxy.cfg")
	contents := make(map[string][]byte)
	errNobody := errors.New("no HAProxy runs")
	proxy, err := haproxy.Open(context.Background(), haproxy.Config{
		ConfigFile: file, Socket: filepath.Join(directory, "socket"), Binary: "/bin/true",
		Reload: func(context.Context) error {
			content, err := os.ReadFile(file) // the one before comes back
			contents[file] = content
			return cmp.Or(err, errNobody)
		},
	})
	require.NoError(t, err)
	_, err = proxy.Apply(context.Background(), nil, web)
	require.ErrorIs(t, err, errNobody)
	files, err := filepath.Glob(filepath.Join(directory, "burano", "*.map"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		contents[file], err = os.ReadFile(file)
		require.NoError(t, err)
	}
	for file, content := range contents {
		for line := range strings.Lines(string(content)) {
			require.Less(t, len(line), 2048, "HAProxy takes no longer lines")
			words := strings.Fields(line)
			if len(words) == 0 {
				continue
			}
			text := fmt.Sprint(filepath.Base(file), " ", len(words))
			if strings.HasSuffix(file, ".cfg") {
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
