package nginx

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/burano/burano/gateway/route"
)

const (
	snippetText    = "gateways have no configuration of NGINX, and a snippet may hold rules of access"
	snippetInstead = "headers and redirects by filters of an HTTPRoute, the rest in the application"
	authText       = "gateways ask no other service for each request"
	authInstead    = "a proxy with sign-in in front of the application, such as oauth2-proxy, as the backend"
	basicText      = "gateways check no passwords"
	basicInstead   = "a proxy with sign-in in front of the application, as the backend"
	clientsText    = "a port has one check of certificates, which an Ingress cannot change"
	clientsInstead = "tls.frontend of a Gateway, with HTTPRoutes"
	eachText       = "each gateway counts by itself"
	wafText        = "gateways have no application firewall"
	buffersText    = "gateways have buffers of a fixed size, and send bodies on as they come"
	errorsText     = "answers of backends reach clients unchanged"
)

// maxCanary limits the header of a canary, and its value: a line of HAProxy has room for both, and for a regular expression.
const maxCanary = 128

var rows = sync.OnceValue(tableOf)

// tableOf makes the table. A row with a reader is served.
func tableOf() map[string]Row {
	all := make(map[string]Row)
	add := func(names string, row Row) {
		for name := range strings.FieldsSeq(names) {
			row.Name = name
			all[name] = row
		}
	}
	served := func(name string, read func(s *Settings, value string) error) {
		add(name, Row{Verdict: Stays, read: read})
	}
	differs := func(name, text string, read func(s *Settings, value string) error) {
		add(name, Row{Verdict: Changes, Text: text, read: read})
	}
	tuning := func(name, text string, read func(s *Settings, value string) error) {
		verdict := Changes
		if text == "" {
			verdict = Stays
		}
		add(name, Row{Verdict: verdict, Text: text, read: read, tuning: true})
	}
	ignored := func(names, text, instead string) { add(names, Row{Verdict: Ignored, Text: text, Instead: instead}) }
	refused := func(names, text, instead string, off ...string) {
		add(names, Row{Verdict: Refused, Text: text, Instead: instead, off: off})
	}
	dependent := func(needs, names, text, instead string) {
		add(names, Row{Verdict: Refused, Text: text, Instead: instead, needs: needs})
	}

	routing(served, differs)
	canaries(served)
	backends(served, differs)
	access(func(name string, read func(s *Settings, value string) error) {
		add(name, Row{Verdict: Stays, read: read, guards: true})
	}, func(name, text string, read func(s *Settings, value string) error) {
		add(name, Row{Verdict: Changes, Text: text, read: read, guards: true})
	})
	shaping(served, differs, tuning)

	refused("configuration-snippet server-snippet auth-snippet stream-snippet modsecurity-snippet", snippetText, snippetInstead)
	refused("auth-url", authText, authInstead)
	dependent("auth-url", "auth-signin auth-signin-redirect-param auth-response-headers auth-method auth-proxy-set-headers auth-request-redirect auth-cache-key auth-cache-duration auth-always-set-cookie auth-keepalive", authText, authInstead)
	refused("enable-global-auth", authText, authInstead, "false")
	refused("auth-type", basicText, basicInstead)
	dependent("auth-type", "auth-secret auth-secret-type auth-realm", basicText, basicInstead)
	refused("auth-tls-secret", clientsText, clientsInstead)
	dependent("auth-tls-secret", "auth-tls-verify-client auth-tls-verify-depth auth-tls-error-page auth-tls-pass-certificate-to-upstream auth-tls-match-cn", clientsText, clientsInstead)
	refused("enable-modsecurity enable-owasp-core-rules modsecurity-transaction-id", wafText, "a firewall in front of the application, as the backend", "false")
	refused("ssl-passthrough", "an Ingress has no sessions that are passed through", "a TLSRoute at a listener with tls.mode Passthrough", "false")
	refused("satisfy", "all rules of access hold together", "an HTTPRoute or Ingress of its own for each kind of client", "all")
	refused("global-rate-limit", eachText, Prefix+"limit-rps", "0")
	dependent("global-rate-limit", "global-rate-limit-window global-rate-limit-key global-rate-limit-ignored-cidrs", eachText, Prefix+"limit-rps")
	refused("limit-rate limit-rate-after", "gateways do not slow answers down", "a limit of requests: "+Prefix+"limit-rps", "0")
	refused("canary-by-header-pattern", "gateways compare whole values", Prefix+"canary-by-header-value")

	ignored("custom-http-errors default-backend disable-proxy-intercept-errors", errorsText, "pages of errors in the application")
	ignored("proxy-buffering proxy-buffers-number proxy-buffer-size proxy-busy-buffers-size proxy-max-temp-file-size proxy-request-buffering client-body-buffer-size", buffersText, "")
	ignored("proxy-next-upstream proxy-next-upstream-tries proxy-next-upstream-timeout", "connections that fail are tried again three times, at other pods", "")
	ignored("proxy-redirect-from proxy-redirect-to proxy-cookie-domain proxy-cookie-path", "headers of answers reach clients unchanged", "a redirect and cookies of the application for its public host and path")
	ignored("proxy-http-version connection-proxy-header", "gateways keep connections, and pass on upgrades", "")
	ignored("enable-access-log enable-rewrite-log", "the log is switched for all Ingresses", "burano.io/access-log of the IngressClass")
	ignored("session-cookie-path session-cookie-domain session-cookie-change-on-failure session-cookie-conditional-samesite-none affinity-mode affinity-canary-behavior", "the cookie has the path /, and names another pod when its pod has gone", "")
	ignored("load-balance", "gateways send a request to the pod with the fewest connections", "")
	ignored("upstream-hash-by-subset upstream-hash-by-subset-size", "each key has one pod", "")
	ignored("service-upstream", "gateways send requests to pods", "")
	ignored("mirror-target mirror-request-body mirror-host", "gateways send a request to one backend", "")
	ignored("custom-headers", "gateways read no ConfigMap for it", "filters of an HTTPRoute")
	ignored("http2-push-preload", "browsers have no push any more", "")
	ignored("ssl-ciphers ssl-prefer-server-ciphers", "gateways take TLS 1.2 and 1.3, with HAProxy's ciphers", "")
	ignored("preserve-trailing-slash use-port-in-redirects relative-redirects", "redirects have the form of gateways", "")
	ignored("enable-opentelemetry opentelemetry-trust-incoming-span opentelemetry-operation-name enable-opentracing opentracing-trust-incoming-span", "gateways trace no requests; headers of traces pass", "")
	return all
}

type adder func(name string, read func(s *Settings, value string) error)

type differing func(name, text string, read func(s *Settings, value string) error)

// routing adds the annotations that decide where requests go.
func routing(served adder, differs differing) {
	differs("ssl-redirect", "\"false\" takes the redirect of hosts with a certificate away; burano.io/ssl-redirect comes first", func(s *Settings, value string) error {
		yes, err := truth(value)
		s.NoRedirect = !yes
		return err
	})
	differs("force-ssl-redirect", "a gateway knows its own TLS alone: behind a balancer that ends TLS it redirects for ever", func(s *Settings, value string) (err error) {
		s.Filters.OnlyTLS, err = truth(value)
		return err
	})
	differs("rewrite-target", "a Prefix path ends at a slash; with use-regex, or with groups in the path, it is a regular expression", func(s *Settings, value string) error {
		s.Rewrite = value
		return (route.Filters{Rewrite: &route.Rewrite{Path: value, Regex: "/"}}).Validate()
	})
	differs("use-regex", "it holds for the paths of this Ingress alone; nested repetitions, and expressions that may take long, are refused", func(s *Settings, value string) (err error) {
		s.Regex, err = truth(value)
		return err
	})
	served("app-root", func(s *Settings, value string) error {
		s.AppRoot = value
		if !strings.HasPrefix(value, "/") {
			return fmt.Errorf("%.100q is not a path", value)
		}
		return route.ValidLocation(value)
	})
	for _, name := range []string{"permanent-redirect", "temporal-redirect"} {
		differs(name, "of NGINX's variables $request_uri at the end alone is served", func(s *Settings, value string) error {
			s.locations[name] = value
			location, _ := strings.CutSuffix(value, "$request_uri")
			if strings.Contains(location, "$") {
				return fmt.Errorf("%.100q has a variable of NGINX; $request_uri at its end alone is served", value)
			}
			return route.ValidLocation(location)
		})
		served(name+"-code", func(s *Settings, value string) (err error) {
			s.code[name], err = number(value, 301, 308)
			return err
		})
	}
	differs("from-to-www-redirect", "the other host needs a certificate of its own for HTTPS, in tls of the Ingress", func(s *Settings, value string) (err error) {
		s.WWW, err = truth(value)
		return err
	})
	differs("server-alias", "for the first host of the Ingress; regular expressions are refused", func(s *Settings, value string) error {
		for name := range strings.SplitSeq(value, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			if err := route.ValidHost(name); err != nil || name == "" {
				return fmt.Errorf("%.100q is not a host name", name)
			}
			s.Aliases = append(s.Aliases, name)
		}
		if len(s.Aliases) > 16 {
			return errors.New("gateways take 16 aliases")
		}
		return nil
	})
}

// canaries adds the annotations about a second backend.
func canaries(served adder) {
	served("canary", func(s *Settings, value string) (err error) {
		s.isCanary, err = truth(value)
		return err
	})
	served("canary-weight", func(s *Settings, value string) (err error) {
		s.canary.Weight, err = number(value, 0, route.MaxWeight)
		return err
	})
	served("canary-weight-total", func(s *Settings, value string) (err error) {
		s.canary.Total, err = number(value, 1, route.MaxWeight)
		return err
	})
	served("canary-by-header", func(s *Settings, value string) error {
		s.canary.Header = value
		if len(value) > maxCanary {
			return fmt.Errorf("it is longer than %d bytes", maxCanary)
		}
		return (route.Match{Headers: []route.Pair{{Name: value, Value: "always"}}}).Validate()
	})
	served("canary-by-header-value", func(s *Settings, value string) error {
		s.canary.Value = value
		if len(value) > maxCanary {
			return fmt.Errorf("it is longer than %d bytes", maxCanary)
		}
		return (route.Match{Headers: []route.Pair{{Name: "a", Value: value}}}).Validate()
	})
	served("canary-by-cookie", func(s *Settings, value string) error {
		s.canary.Cookie = value
		return (route.Match{Cookies: []route.Pair{{Name: value, Value: "always"}}}).Validate()
	})
}

// backends adds the annotations by which backends are asked.
func backends(served adder, differs differing) {
	differs("backend-protocol", "HTTP, HTTPS, GRPC and GRPCS are served", func(s *Settings, value string) error {
		switch strings.ToUpper(value) {
		case "HTTP":
		case "HTTPS":
			s.tls = true
		case "GRPC":
			s.Filters.H2C = true
		case "GRPCS":
			s.Filters.H2C, s.tls = true, true
		default:
			return fmt.Errorf("gateways do not ask backends by %.20q, but by HTTP, HTTPS, GRPC and GRPCS", value)
		}
		return nil
	})
	differs("proxy-ssl-secret", "the Secret is of type kubernetes.io/tls, in the namespace of the Ingress", func(s *Settings, value string) error {
		s.Secret = value
		return nil
	})
	served("proxy-ssl-verify", func(s *Settings, value string) (err error) {
		s.Verify, err = onOff(value)
		return err
	})
	served("proxy-ssl-name", func(s *Settings, value string) error {
		s.name = strings.ToLower(value)
		return (route.Filters{Host: s.name}).Validate()
	})
	differs("proxy-ssl-server-name", "gateways send the name of proxy-ssl-name, if it is set", func(_ *Settings, value string) error {
		_, err := onOff(value)
		return err
	})
	anything := func(_ *Settings, _ string) error { return nil }
	differs("proxy-ssl-protocols", "gateways take TLS 1.2 and 1.3", anything)
	differs("proxy-ssl-ciphers", "gateways take HAProxy's ciphers", anything)
	differs("proxy-ssl-verify-depth", "gateways verify the whole chain", anything)
}

// access adds the annotations that decide who reaches an application.
func access(served adder, differs differing) {
	allow := func(s *Settings, value string) error {
		list, err := networksOf(value)
		if err == nil && everywhere(list) {
			return nil // as without the annotation
		}
		if s.Filters.Access == nil {
			s.Filters.Access = &route.Access{}
		}
		if len(s.Filters.Access.Allow) > 0 {
			return errors.New("whitelist-source-range and allowlist-source-range are the same; write one of them")
		}
		s.Filters.Access.Allow = list
		return err
	}
	served("whitelist-source-range", allow)
	served("allowlist-source-range", allow)
	served("denylist-source-range", func(s *Settings, value string) (err error) {
		if s.Filters.Access == nil {
			s.Filters.Access = &route.Access{}
		}
		s.Filters.Access.Deny, err = networksOf(value)
		return err
	})
	const each = "each gateway counts by itself, for each Service of the Ingress"
	differs("limit-rps", each, func(s *Settings, value string) (err error) {
		s.limits.PerSecond, err = number(value, 0, 10_000) // 0: no limit
		return err
	})
	differs("limit-rpm", each, func(s *Settings, value string) (err error) {
		s.limits.PerMinute, err = number(value, 0, 10_000) // 0: no limit
		return err
	})
	differs("limit-connections", each+"; requests in progress count", func(s *Settings, value string) (err error) {
		s.limits.Connections, err = number(value, 0, 10_000) // 0: no limit
		return err
	})
	served("limit-burst-multiplier", func(s *Settings, value string) (err error) {
		s.limits.Burst, err = number(value, 1, route.MaxBurst)
		return err
	})
	for _, name := range []string{"limit-whitelist", "limit-allowlist"} {
		served(name, func(s *Settings, value string) error {
			list, err := networksOf(value)
			s.limits.Except = append(s.limits.Except, list...)
			return err
		})
	}
}

// shaping adds the annotations about bodies, times, headers, CORS and sessions.
func shaping(served adder, differs differing, tuning func(name, text string, read func(s *Settings, value string) error)) {
	tuning("proxy-body-size", "a request that announces more is answered with 413; without the annotation there is no limit, where ingress-nginx has 1m", func(s *Settings, value string) (err error) {
		s.Filters.Body, err = size(value)
		return err
	})
	tuning("proxy-connect-timeout", "it holds for each of four tries; the default is half a second", func(s *Settings, value string) (err error) {
		s.Filters.Connect, err = seconds(value, time.Hour)
		return err
	})
	for _, name := range []string{"proxy-read-timeout", "proxy-send-timeout"} {
		tuning(name, "the longer one of proxy-read-timeout and proxy-send-timeout holds for both; the default is an hour", func(s *Settings, value string) error {
			patience, err := seconds(value, route.MaxIdle)
			s.Filters.Timeout = max(s.Filters.Timeout, patience)
			return err
		})
	}
	served("enable-cors", func(s *Settings, value string) (err error) {
		s.cors.enabled, err = truth(value)
		return err
	})
	differs("cors-allow-origin", "an origin has one asterisk at most", func(s *Settings, value string) error {
		s.cors.Origins = items(value)
		return s.cors.Validate()
	})
	served("cors-allow-methods", func(s *Settings, value string) error {
		s.cors.Methods = items(value)
		return s.cors.Validate()
	})
	served("cors-allow-headers", func(s *Settings, value string) error {
		s.cors.Headers = items(value)
		return s.cors.Validate()
	})
	served("cors-expose-headers", func(s *Settings, value string) error {
		s.cors.Expose = items(value)
		return s.cors.Validate()
	})
	differs("cors-allow-credentials", "not with the origin *, which browsers refuse with credentials", func(s *Settings, value string) (err error) {
		s.cors.Credentials, err = truth(value)
		return err
	})
	served("cors-max-age", func(s *Settings, value string) error {
		age, err := number(value, 0, 1<<31-1)
		s.cors.MaxAge = int32(age)
		return err
	})
	served("affinity", func(s *Settings, value string) error {
		if s.affinity = value == "cookie"; !s.affinity {
			return fmt.Errorf("the affinity is cookie, and not %.20q", value)
		}
		return nil
	})
	served("session-cookie-name", func(s *Settings, value string) error {
		s.cookie.Name = value
		return (route.Filters{Cookie: &s.cookie}).Validate()
	})
	for _, name := range []string{"session-cookie-max-age", "session-cookie-expires"} {
		tuning(name, "", func(s *Settings, value string) error {
			age, err := seconds(value, 100*365*24*time.Hour)
			s.cookie.MaxAge = max(s.cookie.MaxAge, age)
			return err
		})
	}
	tuning("session-cookie-samesite", "", func(s *Settings, value string) error {
		same := s.cookie
		same.SameSite = value
		err := (route.Filters{Cookie: &same}).Validate()
		if err == nil {
			s.cookie.SameSite = value
		}
		return err
	})
	tuning("session-cookie-secure", "", func(s *Settings, value string) (err error) {
		s.cookie.Secure, err = truth(value)
		return err
	})
	tuning("upstream-hash-by", "$request_uri, $uri (with the query), $remote_addr, $binary_remote_addr, $http_NAME and $arg_NAME are served", func(s *Settings, value string) (err error) {
		s.Filters.Hash, err = hashOf(value)
		return err
	})
	served("x-forwarded-prefix", func(s *Settings, value string) error {
		headers := &route.Headers{Set: []route.Pair{{Name: "X-Forwarded-Prefix", Value: value}}}
		err := (route.Filters{Request: headers}).Validate()
		s.Filters.Request = headers
		return err
	})
	differs("upstream-vhost", "a name without a port", func(s *Settings, value string) error {
		s.Filters.Host = strings.ToLower(value)
		return s.Filters.Validate()
	})
}

func truth(value string) (bool, error) {
	yes, err := strconv.ParseBool(strings.TrimSpace(value))
	if err != nil {
		return false, fmt.Errorf("it is \"true\" or \"false\", and not %.40q", value)
	}
	return yes, nil
}

func onOff(value string) (bool, error) {
	if value != "on" && value != "off" {
		return false, fmt.Errorf("it is on or off, and not %.40q", value)
	}
	return value == "on", nil
}

func number(value string, least, most int) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(value))
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%.40q is not a number from %d to %d", value, least, most)
	}
	return n, nil
}

// seconds reads a number of seconds, or a time of NGINX like 60s and 5m.
func seconds(value string, most time.Duration) (time.Duration, error) {
	text := strings.TrimSpace(value)
	if _, err := strconv.Atoi(text); err == nil {
		text += "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d > most || d%time.Second != 0 {
		return 0, fmt.Errorf("%.40q is not a number of seconds, from 1 to %d", value, int64(most/time.Second))
	}
	return d, nil
}

var sizeForm = regexp.MustCompile(`^([0-9]{1,12})([kKmMgG]?)$`)

// size reads a size of NGINX; 0 is any.
func size(value string) (int64, error) {
	parts := sizeForm.FindStringSubmatch(strings.TrimSpace(value))
	if parts == nil {
		return 0, fmt.Errorf("%.40q is not a size like 8m", value)
	}
	n, _ := strconv.ParseInt(parts[1], 10, 64)
	unit := map[string]int64{"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}[strings.ToLower(parts[2])]
	if n > route.MaxBody/unit {
		return 0, fmt.Errorf("%.40q is more than gateways count", value)
	}
	return n * unit, nil
}

func items(value string) (list []string) {
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

func networksOf(value string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for _, item := range items(value) {
		network, err := netip.ParsePrefix(item)
		if err != nil {
			var address netip.Addr
			if address, err = netip.ParseAddr(item); err == nil {
				network, err = address.Prefix(address.BitLen())
			}
		}
		if err != nil || network.Addr().Zone() != "" {
			return nil, fmt.Errorf("%.60q is neither a network like 203.0.113.0/24 nor an address", item)
		}
		list = append(list, network.Masked())
	}
	if len(list) == 0 || len(list) > route.MaxNetworks {
		return nil, fmt.Errorf("it lists 1 to %d networks, and not %d", route.MaxNetworks, len(list))
	}
	return list, nil
}

// everywhere reports whether a list has all addresses of both versions of IP.
func everywhere(list []netip.Prefix) bool {
	return slices.Contains(list, netip.PrefixFrom(netip.IPv4Unspecified(), 0)) && slices.Contains(list, netip.PrefixFrom(netip.IPv6Unspecified(), 0))
}

var variableForm = regexp.MustCompile(`^\$(http|arg)_([A-Za-z0-9_]{1,64})$`)

func hashOf(value string) (*route.Hash, error) {
	text := strings.NewReplacer("${", "$", "}", "").Replace(value)
	switch text {
	case "$request_uri", "$uri":
		return &route.Hash{Kind: route.HashURI}, nil
	case "$remote_addr", "$binary_remote_addr":
		return &route.Hash{Kind: route.HashSource}, nil
	}
	parts := variableForm.FindStringSubmatch(text)
	switch {
	case parts == nil:
		return nil, fmt.Errorf("gateways choose no backend by %.60q", value)
	case parts[1] == "http":
		return &route.Hash{Kind: route.HashHeader, Name: strings.ReplaceAll(parts[2], "_", "-")}, nil
	}
	return &route.Hash{Kind: route.HashQuery, Name: parts[2]}, nil
}

// corsSettings are the annotations about CORS.
type corsSettings struct {
	enabled bool
	route.CORS
}

// Validate returns the fault of the settings, or nil.
func (c corsSettings) Validate() error { return (route.Filters{CORS: &c.CORS}).Validate() }

// defaultCORS are ingress-nginx's values.
func defaultCORS() corsSettings {
	return corsSettings{CORS: route.CORS{
		Origins: []string{"*"}, Methods: []string{"GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"}, Credentials: true, MaxAge: 1728000,
		Headers: []string{"DNT", "Keep-Alive", "User-Agent", "X-Requested-With", "If-Modified-Since", "Cache-Control", "Content-Type", "Range", "Authorization"},
	}}
}

// finish puts settings of several annotations together. Its findings are about combinations.
func (s *Settings) finish(annotations map[string]string) (findings []Finding) {
	refuse := func(name, format string, arguments ...any) {
		findings = append(findings, Finding{Annotation: Prefix + name, Value: annotations[Prefix+name], Verdict: Refused, Text: fmt.Sprintf(format, arguments...)})
	}
	if s.isCanary {
		one := s.canary
		if s.Canary = &one; one.Weight > one.Total {
			refuse("canary-weight", "%d of %d requests are more than all", one.Weight, one.Total)
		}
	}
	if s.affinity {
		one := s.cookie
		s.Filters.Cookie = &one
	}
	if s.limits.PerSecond+s.limits.PerMinute+s.limits.Connections > 0 {
		one := s.limits
		s.Filters.Limits = &one
	}
	if s.cors.enabled {
		one := s.cors.CORS
		if route.Any(one.Origins) {
			one.Credentials = false
		}
		s.Filters.CORS = &one
	}
	switch {
	case s.tls && s.Verify && (s.Secret == "" || s.name == ""):
		refuse("proxy-ssl-verify", "the certificates of backends are verified with the authorities of proxy-ssl-secret and the name of proxy-ssl-name, and one of them is missing")
	case s.tls:
		s.Filters.TLS = &route.BackendTLS{Host: s.name, Unverified: !s.Verify}
	default:
		s.Secret, s.Verify = "", false // they are about TLS
	}
	names := slices.Sorted(maps.Keys(s.locations)) // a permanent one comes first
	for _, name := range names {
		if s.Away != nil {
			break
		}
		location, rest := strings.CutSuffix(s.locations[name], "$request_uri")
		code := s.code[name]
		if code == 0 {
			code = map[string]int{"permanent-redirect": 301, "temporal-redirect": 302}[name]
		}
		s.Away = &route.Redirect{Location: location, Rest: rest, Code: code}
		if err := (route.Filters{Redirect: s.Away}).Validate(); err != nil {
			refuse(name, "%v", err)
		}
	}
	if err := s.Filters.Validate(); err != nil && len(findings) == 0 {
		refuse(s.culprit(annotations), "%v", err)
	}
	return findings
}

// culprit is the annotation, of several whose values are valid alone, that makes the filters invalid.
func (s *Settings) culprit(annotations map[string]string) string {
	f := s.Filters
	for _, part := range []struct {
		filters route.Filters
		names   []string
	}{
		{route.Filters{Limits: f.Limits}, []string{"limit-whitelist", "limit-allowlist", "limit-rps", "limit-rpm", "limit-connections"}},
		{route.Filters{TLS: f.TLS}, []string{"proxy-ssl-name", "proxy-ssl-secret", "backend-protocol"}},
		{route.Filters{CORS: f.CORS}, []string{"enable-cors"}},
		{route.Filters{Cookie: f.Cookie}, []string{"affinity"}},
	} {
		for _, name := range part.names {
			if _, there := annotations[Prefix+name]; there && part.filters.Validate() != nil {
				return name
			}
		}
	}
	return "*" // of all together
}
