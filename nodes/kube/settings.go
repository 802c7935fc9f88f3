package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// annotationSet records Burano's settings of a node (setByBurano), so that they differ from other settings and can be undone.
	annotationSet = "burano.io/set"
	// LockedTaint is the taint of locked nodes: pods that do not tolerate it go, and no new ones come.
	LockedTaint = "burano.io/locked"
	// reservedPrefix begins keys that are Burano's own.
	reservedPrefix = "burano.io/"
)

// Taint keeps pods away from a node that do not tolerate it.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"` // NoSchedule, PreferNoSchedule or NoExecute
}

func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

// id distinguishes a node's taints.
func (t Taint) id() string { return t.Key + ":" + t.Effect }

// Settings are the settings of a Kubernetes node through Burano, beside the settings of its kubelet and of others.
type Settings struct {
	Labels map[string]string `json:"labels,omitempty"`
	Taints []Taint           `json:"taints,omitempty"`
	// Cordoned has it take no new pods; Locked, no pods at all.
	Cordoned bool `json:"cordoned,omitempty"`
	Locked   bool `json:"locked,omitempty"`
	// Assigned has, by the keys of labels, who set them and when. Labels of former versions have none.
	Assigned map[string]Assignment `json:"assigned,omitempty"`
}

// Assignment is when a label was set, and by whom.
type Assignment struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	Changed time.Time `json:"changed,omitzero"` // when it got another value; the zero time for never
	By      string    `json:"by"`               // the name of the user who set it first
}

// labelSpace is the namespace of the ids of labels.
var labelSpace = uuid.MustParse("6b0d2c6e-3c39-4b58-9d5a-0f6a4f0f8a51")

// LabelID is the id of the label of a key that a task has set, or of a host's label of which no task is known.
func LabelID(of, key string) string { return uuid.NewSHA1(labelSpace, []byte(of+"/"+key)).String() }

// Assign returns the assignments of labels after a task has set and removed some.
func (s Settings) Assign(set map[string]string, remove []string, task, by string, now time.Time) map[string]Assignment {
	all := maps.Clone(s.Assigned)
	if all == nil {
		all = map[string]Assignment{}
	}
	for _, key := range remove {
		delete(all, key)
	}
	for key, value := range set {
		was, had := s.Labels[key]
		one, known := all[key]
		switch {
		case !had:
			one = Assignment{ID: LabelID(task, key), Created: now.UTC().Truncate(time.Second), By: by}
		case !known || was == value:
			continue
		default:
			one.Changed = now.UTC().Truncate(time.Second)
		}
		all[key] = one
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// IsZero is true if nothing is set.
func (s Settings) IsZero() bool {
	return len(s.Labels) == 0 && len(s.Taints) == 0 && !s.Cordoned && !s.Locked
}

// With are the settings with these labels and taints added, and without the labels and taints of these keys. A taint to be removed is named by its key
// alone, or as KEY:EFFECT.
func (s Settings) With(labels map[string]string, withoutLabels []string, taints []Taint, withoutTaints []string) Settings {
	s.Labels = maps.Clone(s.Labels)
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	for _, key := range withoutLabels {
		delete(s.Labels, key)
	}
	maps.Copy(s.Labels, labels)
	s.Taints = slices.DeleteFunc(slices.Clone(s.Taints), func(taint Taint) bool {
		replaced := slices.ContainsFunc(taints, func(other Taint) bool { return other.id() == taint.id() })
		return replaced || slices.Contains(withoutTaints, taint.Key) || slices.Contains(withoutTaints, taint.id())
	})
	s.Taints = append(s.Taints, taints...)
	return s
}

// Check finds settings that Kubernetes would refuse or undo, and settings that are not for users.
func (s Settings) Check() error {
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		problems = append(problems, checkKey("label", key))
		if wrong := validation.IsValidLabelValue(s.Labels[key]); len(wrong) > 0 {
			problems = append(problems, fmt.Errorf("label %s cannot have the value %q: %s", key, s.Labels[key], strings.Join(wrong, "; ")))
		}
		if slices.Contains([]string{corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable}, key) {
			problems = append(problems, fmt.Errorf("label %s is the kubelet's: choose another key", key))
		}
	}
	for _, taint := range s.Taints {
		problems = append(problems, checkKey("taint", taint.Key))
		if wrong := validation.IsValidLabelValue(taint.Value); len(wrong) > 0 {
			problems = append(problems, fmt.Errorf("taint %s cannot have the value %q: %s", taint.Key, taint.Value, strings.Join(wrong, "; ")))
		}
		effects := []string{string(corev1.TaintEffectNoSchedule), string(corev1.TaintEffectPreferNoSchedule), string(corev1.TaintEffectNoExecute)}
		if !slices.Contains(effects, taint.Effect) {
			problems = append(problems, fmt.Errorf("taint %s cannot have the effect %q: effects are %s", taint.Key, taint.Effect, strings.Join(effects, ", ")))
		}
		if strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
			problems = append(problems, fmt.Errorf("taint %s is set and removed by Kubernetes itself: choose another key", taint.Key))
		}
	}
	return errors.Join(problems...)
}

func checkKey(what, key string) error {
	if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
		return fmt.Errorf("%q is no key of a %s: %s", key, what, strings.Join(wrong, "; "))
	}
	if strings.HasPrefix(key, reservedPrefix) {
		return fmt.Errorf("the %s %s would be Burano's own: choose another key", what, key)
	}
	return nil
}

// wanted are the taints that the settings come to.
func (s Settings) wanted() []Taint {
	if s.Locked {
		return append(slices.Clone(s.Taints), Taint{Key: LockedTaint, Effect: string(corev1.TaintEffectNoExecute)})
	}
	return s.Taints
}

// setByBurano are the settings of a node by Burano.
type setByBurano struct {
	Labels   []string `json:"labels,omitempty"`
	Taints   []string `json:"taints,omitempty"` // KEY:EFFECT
	Cordoned bool     `json:"cordoned,omitempty"`
}

// ApplySettings applies a node's settings: it removes former settings of Burano that are gone, and leaves the settings of others. A node that does not
// exist yet is made, so that its kubelet finds its settings and no pod comes too early.
func ApplySettings(ctx context.Context, config *rest.Config, name string, settings Settings) error {
	return applySettingsBy(ctx, config, name, settings, false)
}

func applySettingsBy(ctx context.Context, config *rest.Config, name string, settings Settings, always bool) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a Kubernetes client: %w", err)
	}
	err = persist(ctx, func(ctx context.Context) error { return applySettings(ctx, client, name, settings, always) })
	if err != nil {
		return fmt.Errorf("set labels, taints and state of node %s: %w", name, err)
	}
	return nil
}

// applySettings makes a node that is not there where something is set of it, or always.
func applySettings(ctx context.Context, client kubernetes.Interface, name string, settings Settings, always bool) error {
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if settings.IsZero() && !always {
			return nil
		}
		made := withSettings(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, settings)
		_, err = client.CoreV1().Nodes().Create(ctx, made, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	made := withSettings(node, settings)
	if reflect.DeepEqual(node, made) {
		return nil
	}
	version := node.ResourceVersion
	node.ResourceVersion = "" // so that the patch is refused after a change by another client
	before, err := json.Marshal(node)
	if err != nil {
		return err
	}
	made.ResourceVersion = version
	after, err := json.Marshal(made)
	if err != nil {
		return err
	}
	patch, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// withSettings is the node as the settings want it.
func withSettings(node *corev1.Node, settings Settings) *corev1.Node {
	node = node.DeepCopy()
	var former, now setByBurano
	_ = json.Unmarshal([]byte(node.Annotations[annotationSet]), &former) // a damaged value counts as none
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	for _, key := range former.Labels {
		delete(node.Labels, key)
	}
	maps.Copy(node.Labels, settings.Labels)
	now.Labels = slices.Sorted(maps.Keys(settings.Labels))

	wanted := map[string]Taint{}
	for _, taint := range settings.wanted() {
		wanted[taint.id()] = taint
	}
	now.Taints = slices.Sorted(maps.Keys(wanted))
	var taints []corev1.Taint
	for _, taint := range node.Spec.Taints {
		id := taint.Key + ":" + string(taint.Effect)
		one, there := wanted[id]
		switch {
		case there:
			taint.Value = one.Value
			delete(wanted, id)
		case slices.Contains(former.Taints, id):
			continue
		}
		taints = append(taints, taint)
	}
	for _, id := range now.Taints {
		if one, missing := wanted[id]; missing {
			taints = append(taints, corev1.Taint{Key: one.Key, Value: one.Value, Effect: corev1.TaintEffect(one.Effect)})
		}
	}
	node.Spec.Taints = taints

	_, leaving := node.Annotations[annotationLeaving]
	switch {
	case settings.Cordoned || settings.Locked:
		// A node that another user has cordoned before stays cordoned later.
		now.Cordoned = former.Cordoned || leaving || !node.Spec.Unschedulable
		node.Spec.Unschedulable = true
		delete(node.Annotations, annotationLeaving)
	case former.Cordoned && !leaving:
		node.Spec.Unschedulable = false
	}
	if reflect.DeepEqual(now, setByBurano{}) {
		delete(node.Annotations, annotationSet)
		return node
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	text, _ := json.Marshal(now) // texts and a truth value: it cannot fail
	node.Annotations[annotationSet] = string(text)
	return node
}

// SettingsOf are all labels and taints of a node, whoever has set them, and whether it takes new pods.
func SettingsOf(node corev1.Node) *Settings {
	found := &Settings{Labels: node.Labels, Cordoned: node.Spec.Unschedulable}
	for _, taint := range node.Spec.Taints {
		found.Taints = append(found.Taints, Taint{Key: taint.Key, Value: taint.Value, Effect: string(taint.Effect)})
		found.Locked = found.Locked || taint.Key == LockedTaint
	}
	return found
}

// keptCordoned is true if a node is cordoned because its settings ask for it.
func keptCordoned(node *corev1.Node) bool {
	var set setByBurano
	_ = json.Unmarshal([]byte(node.Annotations[annotationSet]), &set)
	return set.Cordoned
}

// Open makes a node take pods again, whoever has cordoned it.
func Open(ctx context.Context, config *rest.Config, node string) error {
	return patchNode(ctx, config, node, false, nil)
}
