package nginx

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
		} else if host == "" {
			line.Verdict, line.Text, line.Instead = Refused, AnyHostText, "the host of the rule, or a path without a regular expression"
		}
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
