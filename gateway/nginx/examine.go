package nginx

import (
	"cmp"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"

	networking "k8s.io/api/networking/v1"

	"github.com/burano/burano/gateway/route"
)

// Line is the treatment of a part of an Ingress.
type Line struct {
	Part    string  `json:"part"` // a field, or an annotation
	Value   string  `json:"value"`
	Verdict Verdict `json:"verdict"` // Stays, Changes or Refused
	Text    string  `json:"text,omitempty"`
	Instead string  `json:"instead,omitempty"`
}

// Classes are the names of the IngressClasses that gateways serve.
type Classes struct {
	Names   []string
	Default bool // one of them is the default class
}

const formerClass = "kubernetes.io/ingress.class"

// Examine returns the treatment of each part of an Ingress, refused ones first.
func Examine(ingress *networking.Ingress, classes Classes) []Line {
	lines := []Line{classOf(ingress, classes)}
	settings, findings := Read(ingress.Annotations)
	for _, f := range findings {
		line := Line{Part: f.Annotation, Value: f.Value, Verdict: f.Verdict, Text: f.Text, Instead: f.Instead}
		if line.Verdict == Ignored {
			line.Verdict, line.Text = Changes, "it is ignored: "+line.Text
		}
		lines = append(lines, line)
	}
	for i, rule := range ingress.Spec.Rules {
		where := fmt.Sprintf("rules[%d]", i)
		if err := route.ValidHost(rule.Host); err != nil {
			lines = append(lines, Line{Part: where + ".host", Value: rule.Host, Verdict: Refused, Text: err.Error()})
		}
		if strings.HasPrefix(rule.Host, "*.") {
			lines = append(lines, Line{Part: where + ".host", Value: rule.Host, Verdict: Changes, Text: "the asterisk is one label, and up to four where annotations are served"})
		}
		if rule.HTTP == nil {
			continue
		}
		for j, path := range rule.HTTP.Paths {
			lines = append(lines, pathLine(settings, fmt.Sprintf("%s.http.paths[%d]", where, j), rule.Host, path))
			if path.Backend.Resource != nil {
				lines = append(lines, Line{Part: fmt.Sprintf("%s.http.paths[%d].backend.resource", where, j), Value: path.Backend.Resource.Name, Verdict: Refused, Text: "gateways send requests to Services"})
			}
		}
	}
	if backend := ingress.Spec.DefaultBackend; backend != nil && backend.Resource != nil {
		lines = append(lines, Line{Part: "defaultBackend.resource", Value: backend.Resource.Name, Verdict: Refused, Text: "gateways send requests to Services"})
	} else if backend != nil && backend.Service != nil {
		lines = append(lines, Line{Part: "defaultBackend.service", Value: backend.Service.Name, Verdict: Stays})
	}
	for i, section := range ingress.Spec.TLS {
		line := Line{Part: fmt.Sprintf("tls[%d].secretName", i), Value: section.SecretName, Verdict: Stays}
		if section.SecretName == "" {
			line.Verdict, line.Text, line.Instead = Changes, "ingress-nginx shows its default certificate", "an Ingress whose tls has a Secret and no hosts: all hosts without a certificate show it"
		}
		lines = append(lines, line)
	}
	rank := map[Verdict]int{Refused: 0, Changes: 1, Stays: 2}
	slices.SortStableFunc(lines, func(a, b Line) int { return rank[a.Verdict] - rank[b.Verdict] })
	return lines
}

func classOf(ingress *networking.Ingress, classes Classes) Line {
	line := Line{Part: "ingressClassName", Verdict: Stays}
	former, annotated := ingress.Annotations[formerClass]
	name := ""
	switch {
	case ingress.Spec.IngressClassName != nil:
		name = *ingress.Spec.IngressClassName
	case annotated:
		name, line.Part = former, formerClass
	case classes.Default:
		return line
	}
	line.Value = name
	if name == "" || !slices.Contains(classes.Names, name) {
		line.Verdict, line.Text = Changes, "gateways do not serve the class"
		line.Instead = "ingressClassName: " + cmp.Or(append(slices.Clone(classes.Names), "burano")...)
		if annotated && ingress.Spec.IngressClassName == nil {
			line.Instead += ", without the annotation"
		}
	}
	return line
}

// Guarded reports whether rules decide who reaches the application.
func (s Settings) Guarded() bool {
	access := s.Filters.Access
	return access != nil && len(access.Allow)+len(access.Deny) > 0 || s.Filters.Limits != nil
}

// PathFault is the reason for which a path of the Ingress cannot have its rules of access, or nil: requests would lead around them.
func (s Settings) PathFault(path networking.HTTPIngressPath) *Finding {
	text := cmp.Or(path.Path, "/")
	if !s.Guarded() {
		return nil
	}
	exact := path.PathType != nil && *path.PathType == networking.PathTypeExact
	if s.PathIsRegex(text, exact) {
		parsed, err := syntax.Parse(text, syntax.Perl)
		if err != nil || plainLiterals(parsed) {
			return nil // an invalid one is closed anyway
		}
	} else if strings.Trim(text, unreserved) == "" {
		specific := path.PathType == nil || *path.PathType == networking.PathTypeImplementationSpecific
		if !specific || strings.HasSuffix(text, "/") {
			return nil
		}
		return &Finding{
			Annotation: pathPart, Value: text, Verdict: Refused, Text: "with rules of access, ImplementationSpecific leaves paths like " + text + ".x open, which ingress-nginx guards",
			Instead: "pathType: Prefix or Exact",
		}
	}
	return &Finding{
		Annotation: pathPart, Value: text, Verdict: Refused, Text: "with rules of access it has letters, digits, hyphens, dots, underscores, tildes and slashes alone: others have several forms",
		Instead: "a path of these characters, or the path / for the whole host",
	}
}

// unreserved are the characters of paths that have one form, with the slash.
const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/"

// plainLiterals reports whether the characters that an expression names are unreserved.
func plainLiterals(r *syntax.Regexp) bool {
	switch r.Op {
	case syntax.OpLiteral:
		return !slices.ContainsFunc(r.Rune, func(c rune) bool { return !strings.ContainsRune(unreserved, c) })
	case syntax.OpCharClass:
		if len(r.Rune) > 0 && r.Rune[len(r.Rune)-1] > unicode.MaxASCII {
			return true // all characters but some
		}
		for i := 0; i+1 < len(r.Rune); i += 2 {
			for c := r.Rune[i]; c <= r.Rune[i+1]; c++ {
				if !strings.ContainsRune(unreserved, c) {
					return false
				}
			}
		}
	}
	return !slices.ContainsFunc(r.Sub, func(one *syntax.Regexp) bool { return !plainLiterals(one) })
}

// AnyHostText is the reason for which a rule without a host has no regular expressions.
const AnyHostText = "a regular expression is for a host, and the rule has none"

func pathLine(s Settings, where, host string, path networking.HTTPIngressPath) Line {
	kind := networking.PathTypeImplementationSpecific
	if path.PathType != nil {
		kind = *path.PathType
	}
	text := cmp.Or(path.Path, "/")
	line := Line{Part: where, Value: fmt.Sprintf("%s (%s)", text, kind), Verdict: Stays}
	if s.PathIsRegex(text, kind == networking.PathTypeExact) {
		if err := route.ValidRegex(text); err != nil {
			line.Verdict, line.Text = Refused, err.Error()
			line.Instead = "a path of its own for each case"
		} else if f := s.PathFault(path); f != nil {
			line.Verdict, line.Text, line.Instead = Refused, f.Text, f.Instead
		} else if host == "" {
			line.Verdict, line.Text, line.Instead = Refused, AnyHostText, "the host of the rule, or a path without a regular expression"
		}
		return line
	}
	if f := s.PathFault(path); f != nil {
		line.Verdict, line.Text, line.Instead = Refused, f.Text, f.Instead
		return line
	}
	if err := route.ValidPath(text); err != nil {
		line.Verdict, line.Text = Refused, err.Error()
		line.Instead = Prefix + "use-regex: \"true\", if it is a regular expression"
		return line
	}
	if kind == networking.PathTypeImplementationSpecific {
		line.Verdict, line.Text, line.Instead = Changes, "it is a Prefix, which ends at a slash", "pathType: Prefix"
	}
	return line
}
