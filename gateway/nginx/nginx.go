// Package nginx reads the annotations of ingress-nginx. Its table is the only source for the publisher, which serves them, for `burano ingress check`,
// which shows the effect on manifests, and for the guide.
package nginx

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/burano/burano/gateway/route"
)

// Prefix begins the names of the annotations.
const Prefix = "nginx.ingress.kubernetes.io/"

// AnnotationIgnore is "ignore" to have the annotations of ingress-nginx without effect on an Ingress, as before gateways served them.
const AnnotationIgnore = "burano.io/nginx-annotations"

// Verdict is the treatment of an annotation.
type Verdict string

// Verdicts.
const (
	Stays   Verdict = "stays"   // served as ingress-nginx does
	Changes Verdict = "changes" // served with a difference, or not needed
	Ignored Verdict = "ignored" // without effect; it does not decide who reaches an application
	Refused Verdict = "refused" // the requests of the Ingress are answered with 503
)

// Finding is the treatment of an annotation of an Ingress.
type Finding struct {
	Annotation string  `json:"annotation"` // with its prefix
	Value      string  `json:"value"`
	Verdict    Verdict `json:"verdict"`
	Text       string  `json:"text,omitempty"`    // the difference, or the reason
	Instead    string  `json:"instead,omitempty"` // to write
}

// Row is an annotation of the table.
type Row struct {
	Name    string // without the prefix
	Verdict Verdict
	Text    string // as in Finding
	Instead string
	read    func(s *Settings, value string) error // of served ones
	tuning  bool                                  // an invalid value is ignored: neither access nor the destination depends on it
	off     []string                              // values without effect, in lower case, of refused ones
	needs   string                                // it has no effect without this annotation
	guards  bool                                  // an empty value is invalid: the annotation decides who reaches the application
}

// Canary is a second backend of the paths of another Ingress.
type Canary struct {
	Weight, Total int    // of Total requests, so many
	Header, Value string // requests with this value; "": always and never
	Cookie        string // always and never
}

// Settings are the annotations of an Ingress as typed values.
type Settings struct {
	NoRedirect bool   // ssl-redirect is false
	Regex      bool   // paths are regular expressions
	Rewrite    string // the path for backends, perhaps with $1 to $9
	AppRoot    string
	Away       *route.Redirect // instead of backends
	WWW        bool            // the host with, or without, www leads here
	Aliases    []string        // further hosts
	Canary     *Canary         // nil: it is none
	Filters    route.Filters
	Secret     string // name, or namespace/name, of the Secret for TLS to backends
	Verify     bool   // the certificates of backends are verified, with the authorities of the Secret

	canary             Canary
	isCanary, affinity bool
	tls                bool
	name               string
	cookie             route.Cookie
	limits             route.Limits
	cors               corsSettings
	code               map[string]int
	locations          map[string]string
}

// Plain reports whether nothing is set that a gateway needs rules for.
func (s Settings) Plain() bool {
	return s.Filters == (route.Filters{}) && !s.Regex && s.Rewrite == "" && s.Away == nil && s.Secret == ""
}

// Read reads the annotations of an Ingress. When a finding is Refused, the Ingress must not be served.
func Read(annotations map[string]string) (Settings, []Finding) {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(annotations)), func(name string) bool { return !strings.HasPrefix(name, Prefix) })
	if len(names) == 0 || annotations[AnnotationIgnore] == "ignore" {
		return Settings{}, nil
	}
	s := Settings{
		cookie: route.Cookie{Name: "INGRESSCOOKIE"}, limits: route.Limits{Burst: 5}, canary: Canary{Total: 100}, cors: defaultCORS(),
		code: map[string]int{}, locations: map[string]string{},
	}
	var findings []Finding
	for _, name := range names {
		value, row := annotations[name], rowOf(strings.TrimPrefix(name, Prefix))
		f := Finding{Annotation: name, Value: value, Verdict: row.Verdict, Text: row.Text, Instead: row.Instead}
		if why := row.idle(annotations); why != "" {
			f.Verdict, f.Text, f.Instead = Stays, why, ""
		} else if row.read != nil {
			if err := row.read(&s, value); err != nil {
				f.Text, f.Instead = err.Error(), ""
				if f.Verdict = Refused; row.tuning {
					f.Verdict = Ignored
				}
			}
		}
		findings = append(findings, f)
	}
	findings = append(findings, s.finish(annotations)...)
	if AnyRefused(findings) {
		s = Settings{Canary: s.Canary, Regex: s.Regex, Rewrite: s.Rewrite, Aliases: s.Aliases} // which paths it has
	}
	return s, findings
}

// idle is the reason for which an annotation that is there has no effect in ingress-nginx either, or empty.
func (r Row) idle(annotations map[string]string) string {
	value := strings.ToLower(strings.TrimSpace(annotations[Prefix+r.Name]))
	switch {
	case value == "" && !r.guards:
		return "it is empty, and has no effect"
	case slices.Contains(r.off, value):
		return fmt.Sprintf("with %q it has no effect", value)
	case r.needs != "" && rowOf(r.needs).unset(annotations):
		return "it has no effect without " + r.needs
	}
	return ""
}

// unset reports whether an annotation is missing, or has no effect.
func (r Row) unset(annotations map[string]string) bool {
	_, there := annotations[Prefix+r.Name]
	return !there || r.idle(annotations) != ""
}

// AnyRefused reports whether a finding is Refused.
func AnyRefused(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Verdict == Refused })
}

// Table lists the annotations, by name.
func Table() []Row {
	list := slices.Collect(maps.Values(rows()))
	slices.SortFunc(list, func(a, b Row) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// rowOf is the row of an annotation. Unknown ones whose names are about access are refused.
func rowOf(name string) Row {
	if row, known := rows()[name]; known {
		return row
	}
	for _, prefix := range []string{"auth-", "whitelist", "allowlist", "denylist", "limit-", "satisfy", "global-rate-limit", "modsecurity", "enable-modsecurity"} {
		if strings.HasPrefix(name, prefix) {
			return Row{Name: name, Verdict: Refused, Text: "gateways do not know it, and it may decide who reaches the application", guards: true}
		}
	}
	if strings.HasSuffix(name, "-snippet") {
		return Row{Name: name, Verdict: Refused, Text: snippetText, Instead: snippetInstead}
	}
	return Row{Name: name, Verdict: Ignored, Text: "gateways do not know it"}
}

// PathIsRegex reports whether a path of the Ingress is a regular expression: with use-regex, or with rewrite-target where its characters show it.
func (s Settings) PathIsRegex(path string, exact bool) bool {
	return !exact && (s.Regex || s.Rewrite != "" && strings.ContainsAny(path, `()*+?[]{}|^$\`))
}

// maxNamed limits the annotations that one Event names.
const maxNamed = 10

// Event is the text of one Event for all findings with a verdict, Refused or Ignored. It is empty without any.
func Event(findings []Finding, verdict Verdict) string {
	findings = slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return f.Verdict != verdict })
	switch len(findings) {
	case 0:
		return ""
	case 1:
		return findings[0].Event()
	}
	text := "annotations are ignored: "
	if verdict == Refused {
		text = "requests are answered with 503, because parts of the Ingress are refused: "
	}
	for i, f := range findings[:min(len(findings), maxNamed)] {
		if i > 0 {
			text += "; "
		}
		text += f.name() + ": " + f.Text
		if f.Instead != "" {
			text += " (instead: " + f.Instead + ")"
		}
	}
	if more := len(findings) - maxNamed; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text + "."
}

// pathPart is in place of an annotation where a finding is about a path.
const pathPart = "path"

func (f Finding) name() string {
	if f.Annotation == pathPart {
		return fmt.Sprintf("path %.100q", f.Value)
	}
	return f.Annotation
}

// Event is the text of a finding in an Event.
func (f Finding) Event() string {
	text := fmt.Sprintf("the annotation %s is ignored: %s", f.Annotation, f.Text)
	switch {
	case f.Annotation == pathPart:
		text = fmt.Sprintf("requests are answered with 503, because the %s is refused: %s", f.name(), f.Text)
	case f.Verdict == Refused:
		text = fmt.Sprintf("requests are answered with 503, because the annotation %s is refused: %s", f.Annotation, f.Text)
	}
	if f.Instead != "" {
		text += ". Instead: " + f.Instead
	}
	return text + "."
}
