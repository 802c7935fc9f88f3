// Package namespaces holds the namespaces of applications in clusters: their levels of Pod Security, their creation and their end.
package namespaces

import (
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/burano/burano/internal/fault"
)

// levels are the levels of Pod Security, the strictest first.
var levels = []podsecurity.Level{podsecurity.LevelRestricted, podsecurity.LevelBaseline, podsecurity.LevelPrivileged}

// Pod is a pod of the model in a namespace.
type Pod struct {
	Name  string
	Level podsecurity.Level // that it gives its namespace; "" for none
	Meta  metav1.ObjectMeta
	Specs []corev1.PodSpec // of its own pods and of its bootstraps
}

// Breaks lists the rules of a level that the pod breaks, each once.
func (p Pod) Breaks(level podsecurity.Level) (broken []string, err error) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return nil, err
	}
	for _, spec := range p.Specs {
		for _, result := range evaluator.EvaluatePod(podsecurity.LevelVersion{Level: level, Version: podsecurity.LatestVersion()}, &p.Meta, &spec) {
			if text := result.ForbiddenReason + " (" + result.ForbiddenDetail + ")"; !result.Allowed && !slices.Contains(broken, text) {
				broken = append(broken, text)
			}
		}
	}
	return broken, nil
}

// keeps is the index of the strictest level that the pod keeps.
func (p Pod) keeps() (int, error) {
	for i, level := range levels {
		broken, err := p.Breaks(level)
		if err != nil || len(broken) == 0 {
			return i, err
		}
	}
	return len(levels) - 1, nil
}

// LevelOf is the level of a namespace with these pods: the level that they give it, or the strictest that all of them keep.
func LevelOf(namespace string, pods []Pod) (podsecurity.Level, error) {
	weakest, giver := 0, -1
	for i, one := range pods {
		keeps, err := one.keeps()
		if err != nil {
			return "", err
		}
		weakest = max(weakest, keeps)
		switch {
		case one.Level == "":
		case giver < 0:
			giver = i
		case pods[giver].Level != one.Level:
			return "", fault.New(fault.Invalid, "pods %s and %s are both in namespace %s, with the podSecurity %s and %s: a namespace has one level", pods[giver].Name, one.Name, namespace,
				pods[giver].Level, one.Level)
		}
	}
	if giver < 0 {
		return levels[weakest], nil
	}
	given := pods[giver]
	for _, one := range pods {
		broken, err := one.Breaks(given.Level)
		if err != nil {
			return "", err
		}
		if len(broken) > 0 {
			return "", fault.New(fault.Invalid, "pod %s breaks the level %s of Pod Security, which pod %s gives namespace %s: %s. Change securityContext, or podSecurity", one.Name, given.Level,
				given.Name, namespace, strings.Join(broken, ", "))
		}
	}
	return given.Level, nil
}

// IsLevel reports whether a text is a level.
func IsLevel(text string) bool { return slices.Contains(levels, podsecurity.Level(text)) }

// Found are the weakest levels that a task has found for namespaces. A pod that could not be described at first makes its namespace weaker, and none makes it stricter again.
type Found struct {
	mutex sync.Mutex
	of    map[string]podsecurity.Level
}

// Weaken returns the weakest level of a namespace so far, with this one.
func (f *Found) Weaken(namespace string, level podsecurity.Level) podsecurity.Level {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.of == nil {
		f.of = map[string]podsecurity.Level{}
	}
	f.of[namespace] = levels[max(slices.Index(levels, f.of[namespace]), slices.Index(levels, level), 0)]
	return f.of[namespace]
}
