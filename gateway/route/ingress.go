package route

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"time"
)

// Limits of the rules of Ingresses.
const (
	MaxRules    = 16      // of a path
	MaxNetworks = 256     // of a list of networks
	MaxRegex    = 512     // bytes of a regular expression
	MaxBody     = 1 << 40 // bytes
	MaxRate     = 1_000_000
	MaxBurst    = 100
	maxRepeat   = 100 // of a bounded repetition in a regular expression
	maxLine     = 1600
	// maxWork bounds the ways in which HAProxy, which backtracks, may try to match: as a power of two, for a path of about a thousand bytes.
	maxWork         = 20
	workUnbounded   = 9 // of an unbounded repetition
	workBounded     = 7 // of one with a minimum and a maximum
	workAlternative = 1 // of an alternative, an optional part, or a repetition that ends at a character which it does not repeat
)

// Rule is the treatment of some requests for a path of an Ingress.
type Rule struct {
	Match   *Match   `json:"match,omitempty"` // nil: all
	Targets []Target `json:"targets"`
}

// ClosedPool has no backends. It is the pool of paths with rules that restrict requests: a gateway of an earlier release, which ignores the rules, answers
// 503. No Service has a name with a dot.
func ClosedPool(namespace string) Pool {
	return Pool{Namespace: namespace, Service: "closed.burano", Port: "none"}
}

// Expand gives each rule of a path a path of its own on each port of Ingresses.
func (h HTTP) Expand() HTTP {
	sites := slices.Clone(h.Sites)
	for i, site := range sites {
		if !slices.ContainsFunc(site.Paths, func(p Path) bool { return len(p.Rules) > 0 }) {
			continue
		}
		sites[i].Paths = nil
		for _, path := range site.Paths {
			if len(path.Rules) == 0 {
				sites[i].Paths = append(sites[i].Paths, path)
				continue
			}
			for _, l := range h.Listeners {
				if l.NoIngress || l.TCP {
					continue
				}
				for _, rule := range path.Rules {
					one := Path{Host: path.Host, Path: path.Path, Exact: path.Exact, Redirect: path.Redirect, Port: l.Port, Match: rule.Match, Targets: rule.Targets, Gateways: path.Gateways}
					if rule.Match != nil && rule.Match.Regex != "" {
						one.Path, one.Exact = "/", false
					}
					sites[i].Paths = append(sites[i].Paths, one)
				}
			}
		}
	}
	h.Sites = sites
	return h
}

// Access is from where clients may come.
type Access struct {
	Allow []netip.Prefix `json:"allow,omitempty"` // none: from anywhere
	Deny  []netip.Prefix `json:"deny,omitempty"`
}

// Limits are the requests that a gateway takes of one client, for one pool. Clients with more get the status 503.
type Limits struct {
	PerSecond   int            `json:"perSecond,omitempty"`
	PerMinute   int            `json:"perMinute,omitempty"`
	Burst       int            `json:"burst,omitempty"`       // how many times the rate may come at once
	Connections int            `json:"connections,omitempty"` // requests at the same time
	Except      []netip.Prefix `json:"except,omitempty"`      // clients without limits
}

// Cookie has clients keep their backend by a cookie.
type Cookie struct {
	Name     string        `json:"name"`
	MaxAge   time.Duration `json:"maxAge,omitempty"` // 0: as long as the browser runs
	SameSite string        `json:"sameSite,omitempty"`
	Secure   bool          `json:"secure,omitempty"`
}

// Kinds of values by which a [Hash] chooses a backend.
const (
	HashURI    = "uri"
	HashSource = "source"
	HashHeader = "header"
	HashQuery  = "query"
)

// Hash chooses the backend of a request by a value of it.
type Hash struct {
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"` // of a header, or a parameter
}

var (
	tokenForm    = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	regexForm    = regexp.MustCompile(`^/[A-Za-z0-9._~/()|*+?^$\[\]{}\\,:=@!&;%-]*$`)
	templateForm = regexp.MustCompile(`^/(\$[0-9]|[A-Za-z0-9._~!&()*+,;=:@/-]|%[0-9A-Fa-f]{2})*$`)
	locationForm = regexp.MustCompile(`^(https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?|/)([A-Za-z0-9._~:/?#@!$&()*+,;=%-]*)$`)
)

// ValidRegex returns the fault of a regular expression of paths, or nil. Gateways match it from the begin of the path on, without regard to case. HAProxy
// backtracks, so expressions that may take long are refused: more than two unbounded repetitions, many alternatives, and choices or repetitions within a repetition.
func ValidRegex(text string) error {
	if len(text) > MaxRegex || !regexForm.MatchString(text) {
		return fmt.Errorf("%.100q is not a regular expression of paths: it begins with /, has no spaces and quotation marks, and at most %d bytes", text, MaxRegex)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return fmt.Errorf("%.100q is not a regular expression: %w", text, err)
	}
	if err := portable(text); err != nil {
		return fmt.Errorf("%.100q: %w", text, err)
	}
	if err := bounded(parsed, false); err != nil {
		return fmt.Errorf("%.100q: %w", text, err)
	}
	return nil
}

var repeatForm = regexp.MustCompile(`^\{[0-9]+(,[0-9]*)?\}`)

// portable reports parts of an expression that PCRE may read otherwise than Go: HAProxy would refuse a whole configuration.
func portable(text string) error {
	const classes, others = "dDwWsS", `./-$^()[]{}|*+?\_~,:=@!&;%`
	work := 0
	within := false          // a class of characters
	alternatives := []bool{} // in groups, the inner one last; Go joins some that PCRE tries one by one
	for i := 0; i < len(text); i++ {
		rest, before := text[i+1:], text[:i]
		switch text[i] {
		case '\\':
			if rest == "" || !strings.Contains(classes+others, rest[:1]) {
				return fmt.Errorf("gateways do not know the escape at %.10q", text[i:])
			}
			if within && strings.Contains(classes, rest[:1]) && (strings.HasSuffix(before, "-") || strings.HasPrefix(rest[1:], "-")) {
				return errors.New("a range of characters has no class as its end")
			}
			i++
		case '*', '+', '?', '{':
			if !within {
				if text[i] == '{' && !repeatForm.MatchString(text[i:]) {
					return errors.New("a brace that is no repetition is escaped")
				}
				work += workOf(text, i)
			}
		case '[':
			if within || strings.HasPrefix(rest, "]") || strings.HasPrefix(rest, "^]") {
				return errors.New("a class of characters has [ and ] escaped only")
			}
			within = true
		case ']':
			within = false
		case '(':
			if !within && strings.HasPrefix(rest, "?") && !strings.HasPrefix(rest, "?:") {
				return errors.New("of groups with a question mark gateways know (?:…) alone")
			}
			if !within {
				alternatives = append(alternatives, false)
			}
		case '|':
			if !within {
				work += workAlternative
			}
			for j := range alternatives {
				alternatives[j] = alternatives[j] || !within
			}
		case ')':
			if last := len(alternatives) - 1; !within && last >= 0 {
				if alternatives[last] && rest != "" && strings.Contains("*+{", rest[:1]) {
					return errors.New("it repeats a part that has alternatives")
				}
				alternatives = alternatives[:last]
			}
		case '^', '$':
			if !within && rest != "" && strings.Contains("*+?{", rest[:1]) {
				return errors.New("an anchor is not repeated")
			}
		}
	}
	if work > maxWork {
		return errors.New("it may take long: write it with at most two of * and +, and few alternatives, or divide it into several paths")
	}
	return nil
}

// workOf is the work of the repetition or question mark at a place.
func workOf(text string, at int) int {
	repeat := repeatForm.FindString(text[at:])
	if repeat == "" {
		repeat = text[at : at+1]
	}
	switch {
	case repeat == "?" && strings.HasSuffix(text[:at], "("): // of a group without a number
		return 0
	case repeat == "?", ends(text[:at], text[at+len(repeat):]):
		return workAlternative
	case text[at] != '{', strings.HasSuffix(repeat, ",}"):
		return workUnbounded
	case strings.Contains(repeat, ","):
		return workBounded
	}
	return 0
}

var (
	repeatedForm = regexp.MustCompile(`(\[[^]\\]*(\\.[^]\\]*)*\]|\\.|[A-Za-z0-9_~/,:=@!&;%-])$`)
	literalForm  = regexp.MustCompile(`^\??\)*\\?([A-Za-z0-9_~/,:=@!&;%-]|\\[^A-Za-z0-9])`)
)

// ends reports whether the repetition of one character, or of a class of them, is followed by a character that it does not repeat. HAProxy tries one length of it then.
func ends(before, after string) bool {
	repeated, next := repeatedForm.FindString(before), literalForm.FindString(after)
	if rest := strings.TrimPrefix(after, next); repeated == "" || next == "" || rest != "" && strings.Contains("*?{", rest[:1]) { // it may be absent
		return false
	}
	class, err := syntax.Parse(repeated, syntax.Perl|syntax.FoldCase)
	if err != nil {
		return false
	}
	stop := rune(next[len(next)-1])
	switch class.Op {
	case syntax.OpLiteral:
		return !strings.EqualFold(string(class.Rune), string(stop))
	case syntax.OpCharClass:
		for i := 0; i < len(class.Rune); i += 2 {
			if class.Rune[i] <= stop && stop <= class.Rune[i+1] {
				return false
			}
		}
		return true
	}
	return false
}

// bounded refuses a repetition, or a choice, within a repetition.
func bounded(r *syntax.Regexp, within bool) error {
	switch r.Op {
	case syntax.OpAlternate, syntax.OpQuest, syntax.OpEmptyMatch:
		if within {
			return errors.New("it repeats a part that has alternatives")
		}
	case syntax.OpStar, syntax.OpPlus, syntax.OpRepeat:
		if r.Op == syntax.OpRepeat && max(r.Min, r.Max) > maxRepeat {
			return fmt.Errorf("a part is repeated more than %d times", maxRepeat)
		}
		if within {
			return errors.New("it repeats a part that has a repetition")
		}
		within = true
	}
	for _, one := range r.Sub {
		if err := bounded(one, within); err != nil {
			return err
		}
	}
	return nil
}

// LiteralPath is the longest path that all paths have above them, or are, that a valid regular expression matches.
func LiteralPath(regex string) string {
	depth := 0
	for _, c := range regex {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '|' && depth <= 0:
			return "/" // alternatives of the whole
		}
	}
	end := strings.IndexAny(regex, `()|*+?^$[]{}\`)
	literal := regex
	if end >= 0 {
		literal = regex[:end]
		if !strings.HasPrefix(regex[end:], "(/|$)") { // the last part may go on
			literal = literal[:strings.LastIndexByte(literal, '/')+1]
		}
	}
	if ValidPath(literal) != nil {
		return "/"
	}
	return literal
}

func validNetworks(name string, networks []netip.Prefix) error {
	if len(networks) > MaxNetworks {
		return fmt.Errorf("%d networks are more than the %d that gateways take (%s)", len(networks), MaxNetworks, name)
	}
	for _, one := range networks {
		if !one.IsValid() || one.Addr().Zone() != "" {
			return fmt.Errorf("%s: %s is not a network", name, one)
		}
	}
	return nil
}

func (a *Access) validate() error {
	if a == nil {
		return nil
	}
	return errors.Join(validNetworks("allow", a.Allow), validNetworks("deny", a.Deny))
}

func (l *Limits) validate() error {
	if l == nil {
		return nil
	}
	for _, one := range []int{l.PerSecond, l.PerMinute, l.Connections} {
		if one < 0 || one > MaxRate {
			return fmt.Errorf("a limit is 0 to %d, and not %d", MaxRate, one)
		}
	}
	if l.Burst < 1 || l.Burst > MaxBurst {
		return fmt.Errorf("a burst is 1 to %d times the rate, and not %d", MaxBurst, l.Burst)
	}
	return validNetworks("except", l.Except)
}

func (c *Cookie) validate() error {
	switch {
	case c == nil:
		return nil
	case !tokenForm.MatchString(c.Name):
		return fmt.Errorf("%.100q is not the name of a cookie of letters, digits, hyphens and underscores", c.Name)
	case c.MaxAge < 0 || c.MaxAge%time.Second != 0:
		return fmt.Errorf("the age of a cookie is whole seconds, and not %s", c.MaxAge)
	case !slices.Contains([]string{"", "Lax", "Strict", "None"}, c.SameSite):
		return fmt.Errorf("SameSite is Lax, Strict or None, and not %.20q", c.SameSite)
	}
	return nil
}

func (h *Hash) validate() error {
	if h == nil {
		return nil
	}
	switch h.Kind {
	case HashURI, HashSource:
		if h.Name == "" {
			return nil
		}
	case HashHeader, HashQuery:
		if tokenForm.MatchString(h.Name) {
			return nil
		}
	}
	return fmt.Errorf("a backend is not chosen by %.20q %.100q", h.Kind, h.Name)
}

// validateIngress returns the fault of the filters that Ingresses alone have.
func (f Filters) validateIngress() error {
	if f.Body < 0 || f.Body > MaxBody {
		return fmt.Errorf("a body has 0 to %d bytes, and not %d", int64(MaxBody), f.Body)
	}
	if f.Connect < 0 || f.Connect > time.Hour || f.Connect%time.Millisecond != 0 {
		return fmt.Errorf("the time to connect is whole milliseconds, at most an hour, and not %s", f.Connect)
	}
	return errors.Join(f.Access.validate(), f.Limits.validate(), f.Cookie.validate(), f.Hash.validate())
}

func (r *Rewrite) validate() error {
	if r == nil {
		return nil
	}
	if r.Regex != "" {
		if len(r.Path) > MaxPath || !templateForm.MatchString(r.Path) || r.Prefix != nil {
			return fmt.Errorf("%.100q is not a path with groups $1 to $9", r.Path)
		}
		return ValidRegex(r.Regex)
	}
	if prefix := r.Prefix; prefix != nil && (*prefix < 0 || *prefix > MaxPath) {
		return fmt.Errorf("a prefix of %d bytes is none", *prefix)
	}
	return ValidPath(r.Path)
}

// ValidLocation returns the fault of the destination of a redirect, or nil.
func ValidLocation(text string) error {
	if len(text) > MaxHeaderValue || !locationForm.MatchString(text) || strings.HasPrefix(text, "//") {
		return fmt.Errorf("%.100q is not a URL like https://www.example.com/path, or a path", text)
	}
	return nil
}

func (r *Redirect) validate() error {
	if r == nil {
		return nil
	}
	if err := validName(r.Host); err != nil {
		return err
	}
	wrong := fmt.Errorf("a redirect to the scheme %.20q, port %d with the status %d is none", r.Scheme, r.Port, r.Code)
	switch {
	case !slices.Contains(redirects, r.Code):
		return wrong
	case r.Location != "":
		if r.Scheme != "" || r.Host != "" || r.Port != 0 {
			return wrong
		}
		return ValidLocation(r.Location)
	case r.Scheme == "" && (r.Port != 0 || r.Host == "" || r.Rest), r.Scheme != "" && (r.Scheme != "http" && r.Scheme != "https" || r.Port == 0 || r.Rest):
		return wrong
	}
	return nil
}

// size is how much of a line of HAProxy the conditions of a match take, at most.
func (m *Match) size() int {
	size := len(m.Method) + len(m.Regex)
	for _, pairs := range [][]Pair{m.Headers, m.Cookies, m.Queries} {
		for _, one := range pairs {
			size += 50 + len(one.Name) + 2*len(one.Value)
		}
	}
	return size
}

func (p Path) validateRules() error {
	if len(p.Rules) > MaxRules {
		return fmt.Errorf("%d rules are more than the %d that gateways take of a path", len(p.Rules), MaxRules)
	}
	for _, rule := range p.Rules {
		if rule.Match != nil {
			if err := rule.Match.Validate(); err != nil {
				return err
			}
			if rule.Match.Regex != "" && rule.Match.size()+len(p.Host) > maxLine {
				return fmt.Errorf("the conditions of a rule with a regular expression are longer than %d bytes", maxLine)
			}
		}
		if err := validTargets(rule.Targets, requests); err != nil {
			return err
		}
	}
	return nil
}
