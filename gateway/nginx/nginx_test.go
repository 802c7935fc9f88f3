package nginx_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	networking "k8s.io/api/networking/v1"

	"github.com/burano/burano/gateway/nginx"
	"github.com/burano/burano/gateway/route"
)

func annotations(list ...string) map[string]string {
	all := make(map[string]string)
	for _, one := range list {
		name, value, _ := strings.Cut(one, "=")
		all[nginx.Prefix+name] = value
	}
	return all
}

func TestTheFortyAnnotationsOfPublicManifestsAreInTheTable(t *testing.T) {
	table := make(map[string]nginx.Row)
	for _, row := range nginx.Table() {
		table[row.Name] = row
		require.True(t, row.Verdict == nginx.Stays || row.Text != "", "%s has a reason", row.Name)
	}
	for _, name := range []string{
		"rewrite-target", "ssl-redirect", "force-ssl-redirect", "proxy-body-size", "backend-protocol", "proxy-read-timeout", "proxy-send-timeout", "proxy-connect-timeout", "use-regex",
		"configuration-snippet", "server-snippet", "whitelist-source-range", "auth-type", "auth-secret", "auth-realm", "auth-url", "auth-signin", "auth-response-headers", "enable-cors", "cors-allow-origin",
		"cors-allow-methods", "cors-allow-headers", "cors-allow-credentials", "proxy-buffer-size", "proxy-buffering", "proxy-buffers-number", "affinity", "session-cookie-name", "session-cookie-max-age",
		"session-cookie-expires", "app-root", "permanent-redirect", "temporal-redirect", "from-to-www-redirect", "canary", "canary-weight", "canary-by-header", "limit-rps", "limit-connections",
		"upstream-hash-by", "ssl-passthrough", "auth-tls-secret", "custom-http-errors", "server-alias", "upstream-vhost", "x-forwarded-prefix", "proxy-request-buffering", "proxy-http-version",
	} {
		require.Contains(t, table, name)
	}
}

func TestAnnotationsAreReadIntoTypedValues(t *testing.T) {
	s, findings := nginx.Read(annotations("proxy-body-size=8m", "proxy-read-timeout=600", "proxy-send-timeout=60s", "proxy-connect-timeout=5", "limit-rps=5", "limit-whitelist=10.0.0.0/8,192.0.2.1",
		"affinity=cookie", "session-cookie-expires=3600", "enable-cors=true", "upstream-hash-by=${arg_user}", "ssl-redirect=false", "canary=true", "canary-weight=5"))
	for _, f := range findings {
		require.Contains(t, []nginx.Verdict{nginx.Stays, nginx.Changes}, f.Verdict, f.Annotation)
	}
	require.Equal(t, int64(8<<20), s.Filters.Body)
	require.Equal(t, 10*time.Minute, s.Filters.Timeout)
	require.Equal(t, 5*time.Second, s.Filters.Connect)
	require.Equal(t, 5, s.Filters.Limits.PerSecond)
	require.Len(t, s.Filters.Limits.Except, 2)
	require.Equal(t, &route.Cookie{Name: "INGRESSCOOKIE", MaxAge: time.Hour}, s.Filters.Cookie)
	require.Equal(t, &route.Hash{Kind: route.HashQuery, Name: "user"}, s.Filters.Hash)
	require.True(t, s.NoRedirect)
	require.Equal(t, 5, s.Canary.Weight)
	require.False(t, s.Filters.CORS.Credentials)
	require.NoError(t, s.Filters.Validate())
}

func TestAnUnknownAnnotationAboutAccessIsRefused(t *testing.T) {
	for name, verdict := range map[string]nginx.Verdict{
		"auth-new": nginx.Refused, "whitelist-new": nginx.Refused, "denylist-new": nginx.Refused, "limit-new": nginx.Refused, "new-snippet": nginx.Refused, "new": nginx.Ignored,
	} {
		_, findings := nginx.Read(annotations(name + "=x"))
		require.Len(t, findings, 1)
		require.Equal(t, verdict, findings[0].Verdict, name)
		require.Contains(t, findings[0].Event(), nginx.Prefix+name)
	}
	ignoring := annotations("auth-new=x")
	ignoring[nginx.AnnotationIgnore] = "ignore"
	s, findings := nginx.Read(ignoring)
	require.Empty(t, findings)
	require.True(t, s.Plain())
}

func TestAnAnnotationThatSwitchesNothingOnClosesNoIngress(t *testing.T) {
	for _, list := range [][]string{
		{"enable-modsecurity=false", "enable-owasp-core-rules=False", "modsecurity-transaction-id="}, {"ssl-passthrough=false"}, {"enable-global-auth=false"}, {"satisfy=all"}, {"limit-rate=0", "limit-rate-after=0"},
		{"configuration-snippet= \n"}, {"limit-rps=0", "limit-rpm=0", "limit-connections=0", "limit-whitelist=10.0.0.0/8"}, {"ssl-redirect="}, {"cors-allow-credentials="}, {"backend-protocol="}, {"rewrite-target="}, {"permanent-redirect="},
		{"auth-realm=x", "auth-secret=x", "auth-secret-type=auth-map", "auth-type="}, {"auth-response-headers=X-User", "auth-signin=https://a.org", "auth-url="}, {"auth-tls-verify-client=off", "auth-tls-verify-depth=1"},
		{"global-rate-limit=0", "global-rate-limit-window=1s"}, {"enable-cors=false"},
	} {
		s, findings := nginx.Read(annotations(list...))
		require.Len(t, findings, len(list))
		for _, f := range findings {
			require.Contains(t, []nginx.Verdict{nginx.Stays, nginx.Changes}, f.Verdict, f)
		}
		require.True(t, s.Plain(), list)
		require.False(t, s.NoRedirect, list)
	}
	for _, list := range [][]string{
		{"auth-type=basic", "auth-realm=x"}, {"auth-url=https://a.org", "auth-response-headers=x"}, {"auth-tls-secret=a/b", "auth-tls-verify-client=off"}, {"enable-modsecurity=true"}, {"satisfy=any"},
		{"whitelist-source-range="}, {"denylist-source-range= "}, {"limit-rps="}, {"limit-rps=-1"}, {"limit-rate=1"}, {"auth-new="}, {"ssl-passthrough=yes"},
	} {
		_, findings := nginx.Read(annotations(list...))
		require.True(t, nginx.AnyRefused(findings), list)
	}
}

func TestAFaultOfSeveralAnnotationsNamesOne(t *testing.T) {
	var networks []string
	for i := range 200 {
		networks = append(networks, fmt.Sprintf("10.0.0.%d", i))
	}
	list := strings.Join(networks, ",")
	_, findings := nginx.Read(annotations("limit-rps=1", "limit-whitelist="+list, "limit-allowlist="+list))
	at := slices.IndexFunc(findings, func(f nginx.Finding) bool { return f.Verdict == nginx.Refused })
	require.Equal(t, nginx.Prefix+"limit-whitelist", findings[at].Annotation)
	require.Contains(t, findings[at].Text, "400 networks")
}

func TestTheCheckWarnsOfRedirectsThatBeginWithTheUpgrade(t *testing.T) {
	ingress := &networking.Ingress{}
	ingress.Annotations = annotations("ssl-redirect=false", "force-ssl-redirect=true")
	texts := make(map[string]string)
	for _, line := range nginx.Examine(ingress, nginx.Classes{}) {
		if line.Verdict == nginx.Changes {
			texts[line.Part] = line.Text
		}
	}
	require.Contains(t, texts[nginx.Prefix+"ssl-redirect"], "takes the redirect of hosts with a certificate away")
	require.Contains(t, texts[nginx.Prefix+"force-ssl-redirect"], "behind a balancer that ends TLS")
}

func TestTheCheckNamesEachPartOfAnIngress(t *testing.T) {
	class, prefix, specific := "nginx", networking.PathTypePrefix, networking.PathTypeImplementationSpecific
	ingress := &networking.Ingress{Spec: networking.IngressSpec{IngressClassName: &class, TLS: []networking.IngressTLS{{SecretName: "a"}, {}}, Rules: []networking.IngressRule{{Host: "*.a.org"}}}}
	ingress.Annotations = annotations("use-regex=true", "configuration-snippet=x", "proxy-buffering=on", "ssl-redirect=true")
	ingress.Spec.Rules[0].HTTP = &networking.HTTPIngressRuleValue{Paths: []networking.HTTPIngressPath{{Path: "/a(/|$)(.*)", PathType: &specific}, {Path: "/(a+)+", PathType: &prefix}}}
	verdicts := make(map[string]nginx.Verdict)
	lines := nginx.Examine(ingress, nginx.Classes{Names: []string{"burano"}})
	for _, line := range lines {
		verdicts[line.Part] = line.Verdict
	}
	require.Equal(t, map[string]nginx.Verdict{
		"ingressClassName": nginx.Changes, nginx.Prefix + "use-regex": nginx.Changes, nginx.Prefix + "configuration-snippet": nginx.Refused, nginx.Prefix + "proxy-buffering": nginx.Changes,
		nginx.Prefix + "ssl-redirect": nginx.Changes, "rules[0].host": nginx.Changes, "rules[0].http.paths[0]": nginx.Stays, "rules[0].http.paths[1]": nginx.Refused, "tls[0].secretName": nginx.Stays, "tls[1].secretName": nginx.Changes,
	}, verdicts)
	require.Equal(t, nginx.Refused, lines[0].Verdict)
	served := nginx.Examine(ingress, nginx.Classes{Names: []string{"nginx"}})
	at := slices.IndexFunc(served, func(l nginx.Line) bool { return l.Part == "ingressClassName" })
	require.Equal(t, nginx.Stays, served[at].Verdict)
}

// FuzzAnnotationsAreValidOrRefused checks that no value gives filters that gateways would not take.
func FuzzAnnotationsAreValidOrRefused(f *testing.F) {
	for _, row := range nginx.Table() {
		f.Add(row.Name, "true", "canary", "x")
	}
	f.Add("rewrite-target", "/$1\n", "permanent-redirect", "https://a'\"%[src]")
	f.Fuzz(func(t *testing.T, name, value, second, other string) {
		s, findings := nginx.Read(map[string]string{nginx.Prefix + name: value, nginx.Prefix + second: other})
		require.NotEmpty(t, findings)
		for _, one := range findings {
			require.NotEmpty(t, one.Verdict)
			require.NotEmpty(t, one.Event())
		}
		if !nginx.AnyRefused(findings) {
			require.NoError(t, s.Filters.Validate())
			require.NoError(t, (route.Filters{Redirect: s.Away}).Validate())
			for _, alias := range s.Aliases {
				require.NoError(t, route.ValidHost(alias))
			}
		}
	})
}

func TestAListOfAllAddressesIsNoRule(t *testing.T) {
	s, findings := nginx.Read(annotations("whitelist-source-range=0.0.0.0/0, ::/0"))
	require.False(t, nginx.AnyRefused(findings))
	require.True(t, s.Plain())
	s, _ = nginx.Read(annotations("allowlist-source-range=0.0.0.0/0", "denylist-source-range=10.0.0.0/8"))
	require.Len(t, s.Filters.Access.Allow, 1, "clients of IPv6 are not in it")
}
