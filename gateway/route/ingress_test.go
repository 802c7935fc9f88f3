package route_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/burano/burano/gateway/route"
)

func TestRegularExpressionsOfPathsAreBounded(t *testing.T) {
	for _, good := range []string{`/`, `/something(/|$)(.*)`, `/api/v[0-9]+/([^/]+)/(.*)`, `/a\.b$`, `/(?:a|b)/x`, `/[a-z]{1,3}/x?`, `/\d+`, `/(a|b)/(.*)`, `/x/.*/y/.*`, `/[a-z\]]+/[^/]+\.(png|jpg)$`} {
		require.NoError(t, route.ValidRegex(good), good)
	}
	for _, bad := range []string{
		``, `a`, `/ a`, "/a\nb", `/'`, `/"`, `/#`, `/(a+)+`, `/(a|a)*`, `/(a?)*x`, `/.*.*.*x$`, `/(a+)b*[a-z]+x`, `/` + strings.Repeat(`(a|a)`, 30) + `$`, `/` + strings.Repeat(`a?`, 21), `/[^/]+([a-z]+)?.*x`, `/.*.*.*.*.*`, `/(`, `/a**`, `/\1`, `/(?=a)`, `/(?i)a`, `/\x{100}`, `/[[:alpha:]]`, `/[\d-z]`, `/^*`, `/a{1000}`, `/a{`,
		`/\Qa`, `/é`, "/" + strings.Repeat("a", 600), `/[]a]`, `/\pL`, `/a\`,
	} {
		require.Error(t, route.ValidRegex(bad), bad)
	}
	for regex, literal := range map[string]string{
		`/something(/|$)(.*)`: "/something", `/something.*`: "/", `/a/b(.*)`: "/a/", `/a|/b`: "/", `/plain`: "/plain", `/a/(b|c)/d`: "/a/", `/x(a)|/b`: "/",
	} {
		require.Equal(t, literal, route.LiteralPath(regex), regex)
	}
}

// TestHAProxyTakesEachValidExpression has HAProxy read thousands of them: one that it refused would refuse all changes of a gateway.
func TestHAProxyTakesEachValidExpression(t *testing.T) {
	pieces := rapid.SampledFrom([]string{
		`a`, `B`, `9`, `/`, `.`, `(`, `)`, `(?:`, `|`, `*`, `+`, `?`, `{2}`, `{1,}`, `{1,3}`, `{`, `}`, `[`, `]`, `[^`, `-`, `^`, `$`, `\d`, `\W`, `\s`, `\.`, `\/`, `\-`, `\[`, `\]`, `\\`, `,`, `:`, `=`, `&`, `%`, `~`, `[a-z]`, `(.*)`, `(/|$)`,
	})
	var lines []string
	seen := map[string]bool{}
	rapid.Check(t, func(t *rapid.T) {
		for range 60 {
			regex := "/" + strings.Join(rapid.SliceOfN(pieces, 0, 8).Draw(t, "pieces"), "")
			if route.ValidRegex(regex) != nil || seen[regex] {
				continue
			}
			seen[regex] = true
			_, err := regexp.Compile(regex)
			require.NoError(t, err)
			lines = append(lines, fmt.Sprintf("  http-request replace-path '(?i)^(?:%s)' '\\1\\9' if { path -m reg '(?i)^(?:%s)' }", regex, regex))
		}
	})
	require.Greater(t, len(lines), 300)
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	text := "defaults\n  mode http\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\nfrontend f\n  bind 127.0.0.1:1\nbackend a\n" + strings.Join(lines, "\n") + "\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	output, err := exec.Command("/usr/sbin/haproxy", "-c", "-f", file).CombinedOutput()
	require.NoError(t, err, "%s", output)
}

func TestAnEarlierGatewayClosesAPathWithRules(t *testing.T) {
	path := route.Path{Host: "a.org", Path: "/", Pool: route.ClosedPool("default").Name(), Rules: []route.Rule{{Targets: []route.Target{{Pool: "default/a/http", Weight: 1, Filters: &route.Filters{OnlyTLS: true}}}}}}
	site := route.Site{Namespace: "default", Ingress: "a", Paths: []route.Path{path}}
	value, err := route.EncodePart(route.Part{Site: &site})
	require.NoError(t, err)
	part, err := route.DecodePart(route.PartKey(route.Part{Site: &site}), value)
	require.NoError(t, err)
	require.Equal(t, site, *part.Site)
	part.Site.Paths[0].Rules = nil // which it does not know
	require.NoError(t, part.Validate())
	closed := route.ClosedPool("default")
	require.NoError(t, route.Part{Pool: &closed}.Validate())
	require.Empty(t, closed.Backends)

	path.Port = 80
	site.Paths[0] = path
	require.Error(t, route.Part{Site: &site}.Validate(), "a path of Gateway API has no rules")
}
