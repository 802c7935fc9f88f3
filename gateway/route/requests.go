package route

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"
)

// Kinds of the sources of sites, beside Ingresses, which have none.
const (
	KindGateway     = "Gateway"
	KindListenerSet = "ListenerSet"
	KindHTTPRoute   = "HTTPRoute"
	KindGRPCRoute   = "GRPCRoute"
	KindTCPRoute    = "TCPRoute"
	KindTLSRoute    = "TLSRoute"
)

// Limits of values in HAProxy's configuration, whose lines have 2,048 bytes.
const (
	MaxMatchValue  = 512
	MaxHeaderValue = 1024
	MaxConditions  = 16 // headers, or parameters, of a match or a filter
	MaxTargets     = 16
	MaxWeight      = 1_000_000
	maxCORS        = 64
)

// Match is the further conditions of requests for a path.
type Match struct {
	Method  string `json:"method,omitempty"`
	Headers []Pair `json:"headers,omitempty"`
	Queries []Pair `json:"queries,omitempty"`
	// Of rules of Ingresses alone:
	Cookies []Pair `json:"cookies,omitempty"`
	Regex   string `json:"regex,omitempty"` // of the path, see ValidRegex
}

// Pair is a header, or a parameter of a query, and its value.
type Pair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Target is where a share of the requests goes.
type Target struct {
	Pool    string   `json:"pool,omitempty"` // see Pool.Name; "" when the filters answer
	Weight  int      `json:"weight"`         // in relation to the other targets
	Filters *Filters `json:"filters,omitempty"`
}

// Filters are the changes to a request.
type Filters struct {
	Request  *Headers      `json:"request,omitempty"`
	Response *Headers      `json:"response,omitempty"`
	Host     string        `json:"host,omitempty"` // instead of the client's
	Rewrite  *Rewrite      `json:"rewrite,omitempty"`
	Redirect *Redirect     `json:"redirect,omitempty"`
	Timeout  time.Duration `json:"timeout,omitempty"` // until the backend answers; 0: an hour
	Status   int           `json:"status,omitempty"`  // answered without a backend
	H2C      bool          `json:"h2c,omitempty"`     // the backend is asked by HTTP/2 without TLS
	CORS     *CORS         `json:"cors,omitempty"`
	TLS      *BackendTLS   `json:"tls,omitempty"`
	Mirrors  *Mirrors      `json:"mirrors,omitempty"`
	Retry    *Retry        `json:"retry,omitempty"`

	// Of rules of Ingresses alone, which gateways of earlier releases do not serve:
	Access  *Access       `json:"access,omitempty"`
	Limits  *Limits       `json:"limits,omitempty"`
	Cookie  *Cookie       `json:"cookie,omitempty"`
	Hash    *Hash         `json:"hash,omitempty"`
	OnlyTLS bool          `json:"onlyTLS,omitempty"` // requests without TLS are redirected to HTTPS
	Body    int64         `json:"body,omitempty"`    // maximum of its bytes; 0: any
	Connect time.Duration `json:"connect,omitempty"` // until a backend takes a connection; 0: the default
}

// CORS are pages of which origins may read answers. A gateway of an earlier release says nothing of it.
type CORS struct {
	Origins     []string `json:"origins"` // https://www.example.com, with one asterisk for any characters of the host; or *
	Methods     []string `json:"methods,omitempty"`
	Headers     []string `json:"headers,omitempty"`
	Expose      []string `json:"expose,omitempty"`
	Credentials bool     `json:"credentials,omitempty"`
	MaxAge      int32    `json:"maxAge,omitempty"` // seconds
}

// Any is true for a list that is an asterisk.
func Any(list []string) bool { return slices.Contains(list, "*") }

func (c *CORS) validate() error {
	if c == nil {
		return nil
	}
	for _, one := range []struct {
		what   string
		form   *regexp.Regexp
		values []string
	}{{"an origin", originForm, c.Origins}, {"a method of HTTP", methodForm, c.Methods}, {"the name of a header", headerForm, c.Headers}, {"the name of a header", headerForm, c.Expose}} {
		if len(one.values) > maxCORS {
			return fmt.Errorf("cors: %d values are more than the %d that gateways take", len(one.values), maxCORS)
		}
		size := 0
		for _, value := range one.values {
			size += len(value)
			if value != "*" && !one.form.MatchString(value) || size > MaxHeaderValue {
				return fmt.Errorf("cors: %.100q is not %s, or the list is longer than %d bytes", value, one.what, MaxHeaderValue)
			}
		}
	}
	if c.MaxAge < 0 {
		return fmt.Errorf("cors: an age of %d seconds is none", c.MaxAge)
	}
	return nil
}

// Headers are changes of headers.
type Headers struct {
	Set    []Pair   `json:"set,omitempty"`
	Add    []Pair   `json:"add,omitempty"`
	Remove []string `json:"remove,omitempty"`
}

// Rewrite gives a request another path.
type Rewrite struct {
	Path string `json:"path"`
	// Prefix is how many bytes of the path asked for it replaces; nil: all.
	Prefix *int `json:"prefix,omitempty"`
	// Regex matches the path; $1 to $9 in Path are its groups.
	Regex string `json:"regex,omitempty"`
}

// Redirect sends the client elsewhere, by the path that is asked for or that Rewrite gives.
type Redirect struct {
	Scheme string `json:"scheme"`         // of Ingresses "": that of the request
	Host   string `json:"host,omitempty"` // "": the one asked for
	Port   uint16 `json:"port"`
	Code   int    `json:"code"`

	// Location is the whole destination, and Rest appends the path and the query of the request to it.
	Location string `json:"location,omitempty"`
	Rest     bool   `json:"rest,omitempty"`
}

// Session is the destination of TLS sessions by the client's name of the server, or of all connections of a port.
type Session struct {
	Port    uint16   `json:"port"`
	Host    string   `json:"host,omitempty"` // as in Path
	Targets []Target `json:"targets"`        // without filters, but TLS where it is opened
	// Gateways are the only ones that serve it; none: all.
	Gateways []string `json:"gateways,omitempty"`
}

// Opened are TLS sessions that a gateway opens itself, by the client's name of the server.
type Opened struct {
	Port     uint16   `json:"port"`
	Host     string   `json:"host,omitempty"`     // as in Path
	Gateways []string `json:"gateways,omitempty"` // as in Session
	// Owner is the Gateway, as namespace/name, whose other sessions on the port are for other requests: such a request is answered with 421. A gateway of an
	// earlier release answers it as any other one.
	Owner string `json:"owner,omitempty"`
}

var (
	methodForm    = regexp.MustCompile(`^[A-Z]{1,16}$`)
	parameterForm = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,256}$`)
	headerForm    = regexp.MustCompile(`^[A-Za-z0-9._-]{1,256}$`)
	// valueForm has no control characters: a line break would begin another header.
	valueForm  = regexp.MustCompile(`^[^\x00-\x08\x0a-\x1f\x7f]+$`)
	originForm = regexp.MustCompile(`^https?://[a-z0-9.-]*[*]?[a-z0-9.-]*(:[0-9]{1,5})?$`)
	siteKinds  = []string{KindGateway, KindListenerSet, KindHTTPRoute, KindGRPCRoute, KindTCPRoute, KindTLSRoute}
	redirects  = []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect}
)

func validPairs(what string, form *regexp.Regexp, longest int, pairs []Pair) error {
	if len(pairs) > MaxConditions {
		return fmt.Errorf("%d are more than the %d that gateways take of %s", len(pairs), MaxConditions, what)
	}
	for _, pair := range pairs {
		if !form.MatchString(pair.Name) {
			return fmt.Errorf("%s: %.100q is not a name of letters, digits, dots, hyphens and underscores", what, pair.Name)
		}
		if len(pair.Value) > longest || !valueForm.MatchString(pair.Value) {
			return fmt.Errorf("%s: the value of %s is empty, has control characters or is longer than %d bytes", what, pair.Name, longest)
		}
	}
	return nil
}

// Validate returns the fault of a match, or nil.
func (m Match) Validate() error {
	if m.Method != "" && !methodForm.MatchString(m.Method) {
		return fmt.Errorf("%.100q is not a method of HTTP", m.Method)
	}
	if err := validPairs("the headers of a match", headerForm, MaxMatchValue, m.Headers); err != nil {
		return err
	}
	if m.Regex != "" {
		if err := ValidRegex(m.Regex); err != nil {
			return err
		}
	}
	if err := validPairs("the cookies of a match", tokenForm, MaxMatchValue, m.Cookies); err != nil {
		return err
	}
	return validPairs("the parameters of a match", parameterForm, MaxMatchValue, m.Queries)
}

func (h *Headers) validate() error {
	if h == nil {
		return nil
	}
	for _, pairs := range [][]Pair{h.Set, h.Add} {
		if err := validPairs("the headers of a filter", headerForm, MaxHeaderValue, pairs); err != nil {
			return err
		}
	}
	if len(h.Remove) > MaxConditions {
		return fmt.Errorf("%d headers are more than the %d that gateways remove", len(h.Remove), MaxConditions)
	}
	for _, name := range h.Remove {
		if !headerForm.MatchString(name) {
			return fmt.Errorf("%.100q is not the name of a header", name)
		}
	}
	return nil
}

// Validate returns the fault of filters, or nil.
func (f Filters) Validate() error {
	for _, headers := range []*Headers{f.Request, f.Response} {
		if err := headers.validate(); err != nil {
			return err
		}
	}
	if err := validName(f.Host); err != nil {
		return err
	}
	if err := errors.Join(f.Rewrite.validate(), f.Redirect.validate(), f.validateIngress()); err != nil {
		return err
	}
	if err := f.CORS.validate(); err != nil {
		return err
	}
	if err := f.TLS.validate(); err != nil {
		return err
	}
	if err := f.Mirrors.validate(); err != nil {
		return err
	}
	if err := f.Retry.Validate(); err != nil {
		return err
	}
	if f.Timeout < 0 || f.Timeout > MaxIdle || f.Timeout%time.Millisecond != 0 {
		return fmt.Errorf("a timeout is whole milliseconds, at most %s, and not %s", MaxIdle, f.Timeout)
	}
	if f.Status != 0 && (f.Status < 400 || f.Status > 599) {
		return fmt.Errorf("the status %d is not that of an error", f.Status)
	}
	return nil
}

// validName is ValidHost of a host that is one.
func validName(host string) error {
	if len(host) > 0 && host[0] == '*' {
		return fmt.Errorf("%q is not the name of a host", host)
	}
	return ValidHost(host)
}

// Answers reports whether a gateway answers by itself.
func (f *Filters) Answers() bool { return f != nil && (f.Redirect != nil || f.Status != 0) }

// Kinds of content, by the changes that gateways may make.
const (
	untouched = iota // passed on as it is
	opened           // sent over TLS, too
	requests         // filtered, too
)

func validTargets(targets []Target, kind int) error {
	if len(targets) > MaxTargets {
		return fmt.Errorf("%d backends are more than the %d that gateways take of a rule", len(targets), MaxTargets)
	}
	some := false
	for _, target := range targets {
		if target.Weight < 0 || target.Weight > MaxWeight {
			return fmt.Errorf("the weight %d is not 0 to %d", target.Weight, MaxWeight)
		}
		some = some || target.Weight > 0
		if target.Filters != nil {
			if only := (Filters{TLS: target.Filters.TLS}); kind == untouched || kind == opened && *target.Filters != only {
				return fmt.Errorf("what is not opened is not filtered")
			}
			if err := target.Filters.Validate(); err != nil {
				return err
			}
		}
		if target.secured() && target.Filters.Answers() {
			return fmt.Errorf("a backend with TLS answers by itself")
		}
		if !(target.Pool == "" && target.Filters.Answers()) && !poolForm.MatchString(target.Pool) {
			return fmt.Errorf("%q is not a port of a Service", target.Pool)
		}
	}
	if !some {
		return fmt.Errorf("no backend has a weight")
	}
	return nil
}

// validate returns the fault of a path's fields of Gateway API.
func (p Path) validate() error {
	if p.Port == 0 {
		if p.Match != nil || len(p.Targets) > 0 {
			return fmt.Errorf("a path with a match or targets needs a port")
		}
		if !poolForm.MatchString(p.Pool) {
			return fmt.Errorf("%q is not a port of a Service", p.Pool)
		}
		return p.validateRules()
	}
	if len(p.Rules) > 0 {
		return fmt.Errorf("a path of one port has targets")
	}
	if p.Pool != "" || p.Redirect {
		return fmt.Errorf("a path of one port has targets")
	}
	if p.Match != nil {
		if err := p.Match.Validate(); err != nil {
			return err
		}
	}
	return validTargets(p.Targets, requests)
}

func (s Session) validate(kind int) error {
	if s.Port == 0 {
		return fmt.Errorf("a session needs a port")
	}
	if err := ValidHost(s.Host); err != nil {
		return err
	}
	return validTargets(s.Targets, kind)
}

// And gives the changes of both, as filters that follow each other.
func (h *Headers) And(other *Headers) *Headers {
	switch {
	case h == nil:
		return other
	case other == nil:
		return h
	}
	return &Headers{Set: slices.Concat(h.Set, other.Set), Add: slices.Concat(h.Add, other.Add), Remove: slices.Concat(h.Remove, other.Remove)}
}
