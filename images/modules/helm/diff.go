package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// change is an object of Kubernetes that a deployment would add, change or remove.
type change struct {
	What      string `json:"what"` // added, changed or removed
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"` // "" when the chart has none
	Name      string `json:"name"`
	// Fields are the changed fields of a changed object, and More the number of further ones.
	Fields []field `json:"fields,omitempty"`
	More   int     `json:"more,omitempty"`
}

// field is a changed part of an object; nil is an absent one. The content of Secrets is masked.
type field struct {
	Path   string `json:"path"` // such as spec.template.spec.containers[web].image
	Before any    `json:"before"`
	After  any    `json:"after"`
}

// Bounds of the shown changes of a release.
const (
	mostChanges = 500
	mostFields  = 40
	mostValue   = 500 // bytes of a value as JSON
)

// masked replaces a Secret's value.
const masked = "*** SANITIZED ***"

// diff returns the changes that a deployment would make to the objects of the release. It changes nothing.
func (r *releases) diff() (answer, error) {
	loaded, digest, err := r.read()
	if err != nil {
		return answer{}, err
	}
	list, err := r.revisions()
	if err != nil {
		return answer{}, err
	}
	said := answer{}
	if len(list) > 0 {
		said = describe(list[0])
		if unchanged(list[0], digest) {
			return said, nil
		}
	}
	wanted, err := r.rehearse(loaded, list)
	if err != nil {
		return said, err
	}
	said.Changed = true
	before := ""
	if last := replacing(list); last != nil {
		before = last.Manifest
	}
	said.Changes, said.MoreChanges, err = compare(before, wanted)
	return said, err
}

// replacing is the revision whose objects an upgrade replaces: the one that came up last, or an install that failed.
func replacing(list []*releasev1.Release) *releasev1.Release {
	if i := slices.IndexFunc(list, ran); i >= 0 {
		return list[i]
	}
	if len(list) > 0 {
		return list[0]
	}
	return nil
}

// rehearse renders the manifests of the next revision.
func (r *releases) rehearse(loaded *chartv2.Chart, list []*releasev1.Release) (string, error) {
	if slices.ContainsFunc(list, ran) {
		upgrade := r.newUpgrade()
		upgrade.DryRunStrategy = action.DryRunServer
		rendered, err := upgrade.Run(r.asked.Name, loaded, r.asked.Values)
		return manifestOf(rendered), err
	}
	install := r.newInstall()
	install.DryRunStrategy = action.DryRunServer
	if len(loaded.CRDObjects()) > 0 {
		// The cluster does not know the chart's own kinds yet: templates are rendered without looking anything up there.
		client, err := r.config.KubernetesClientSet()
		if err != nil {
			return "", err
		}
		version, err := client.Discovery().ServerVersion()
		if err != nil {
			return "", fmt.Errorf("ask the cluster for its version: %w", err)
		}
		known, err := action.GetVersionSet(client.Discovery())
		if err != nil {
			return "", fmt.Errorf("ask the cluster for its kinds: %w", err)
		}
		install.DryRunStrategy, install.IncludeCRDs, install.APIVersions = action.DryRunClient, true, known
		install.KubeVersion = &common.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor}
	}
	rendered, err := install.Run(loaded, r.asked.Values)
	return manifestOf(rendered), err
}

func manifestOf(rendered any) string {
	if release, ok := rendered.(*releasev1.Release); ok && release != nil {
		return release.Manifest
	}
	return ""
}

// compare lists the differences of the second manifest, in the order of kinds and names, and the number of omitted changes.
func compare(before, after string) (changes []change, more int, err error) {
	had, err := objectsOf(before)
	if err != nil {
		return nil, 0, fmt.Errorf("read what is installed: %w", err)
	}
	has, err := objectsOf(after)
	if err != nil {
		return nil, 0, fmt.Errorf("read what the chart gives: %w", err)
	}
	keys := map[string]bool{}
	for key := range had {
		keys[key] = true
	}
	for key := range has {
		keys[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		was, is := had[key], has[key]
		one := change{What: "changed"}
		object := is
		switch {
		case was == nil:
			one.What = "added"
		case is == nil:
			one.What, object = "removed", was
		default:
			one.Fields = differences("", was, is, nil)
			if len(one.Fields) == 0 {
				continue
			}
		}
		described := unstructured.Unstructured{Object: object}
		one.Kind, one.Namespace, one.Name = described.GetKind(), described.GetNamespace(), described.GetName()
		if one.Kind == "Secret" {
			hideData(one.Fields)
		}
		if len(one.Fields) > mostFields {
			one.Fields, one.More = one.Fields[:mostFields], len(one.Fields)-mostFields
		}
		for i := range one.Fields {
			one.Fields[i].Before, one.Fields[i].After = brief(one.Fields[i].Before), brief(one.Fields[i].After)
		}
		changes = append(changes, one)
	}
	if len(changes) > mostChanges {
		return changes[:mostChanges], len(changes) - mostChanges, nil
	}
	return changes, 0, nil
}

// objectsOf are the objects of a manifest by group, kind, namespace and name: another version of a kind makes no other object.
func objectsOf(manifest string) (map[string]map[string]any, error) {
	objects := map[string]map[string]any{}
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096)
	for {
		var object map[string]any
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object) == 0 {
			continue
		}
		described := unstructured.Unstructured{Object: object}
		kind := described.GroupVersionKind()
		objects[strings.Join([]string{kind.Kind, kind.Group, described.GetNamespace(), described.GetName()}, " ")] = object
	}
}

// differences are the parts of two values that are not the same.
func differences(path string, before, after any, found []field) []field {
	if reflect.DeepEqual(before, after) {
		return found
	}
	was, isMap := before.(map[string]any)
	is, areMaps := after.(map[string]any)
	if isMap && areMaps {
		return inMaps(path, was, is, found)
	}
	were, isList := before.([]any)
	are, areLists := after.([]any)
	if !isList || !areLists {
		return append(found, field{path, before, after})
	}
	if had, has := named(were), named(are); had != nil && has != nil {
		for _, name := range union(had, has) {
			found = differences(path+"["+name+"]", had[name], has[name], found)
		}
		return found
	}
	for i := range max(len(were), len(are)) {
		var one, other any
		if i < len(were) {
			one = were[i]
		}
		if i < len(are) {
			other = are[i]
		}
		found = differences(fmt.Sprintf("%s[%d]", path, i), one, other, found)
	}
	return found
}

func inMaps(path string, before, after map[string]any, found []field) []field {
	for _, key := range union(before, after) {
		inner := strings.TrimPrefix(path+"."+key, ".")
		if strings.Contains(key, ".") {
			inner = path + "[" + key + "]"
		}
		found = differences(inner, before[key], after[key], found)
	}
	return found
}

func union(a, b map[string]any) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// named are the items of a list by their names; nil when they have none of their own, each.
func named(list []any) map[string]any {
	items := map[string]any{}
	for _, item := range list {
		object, _ := item.(map[string]any)
		name, _ := object["name"].(string)
		if name == "" || items[name] != nil {
			return nil
		}
		items[name] = item
	}
	return items
}

// hideData masks the content of a Secret.
func hideData(fields []field) {
	for i, one := range fields {
		top, _, _ := strings.Cut(one.Path, ".")
		top, _, _ = strings.Cut(top, "[")
		if top == "data" || top == "stringData" {
			fields[i].Before, fields[i].After = hidden(one.Before), hidden(one.After)
		}
		if strings.Contains(one.Path, "last-applied-configuration") {
			fields[i].Before, fields[i].After = masked, masked
		}
	}
}

func hidden(value any) any {
	switch v := value.(type) {
	case nil:
		return nil
	case map[string]any:
		inner := map[string]any{}
		for key, item := range v {
			inner[key] = hidden(item)
		}
		return inner
	}
	return masked
}

// brief is a value, or the beginning of it as JSON where that is long.
func brief(value any) any {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil || text.Len() <= mostValue {
		return value
	}
	cut := text.Bytes()[:mostValue]
	for !utf8.Valid(cut) && len(cut) > mostValue-utf8.UTFMax {
		cut = cut[:len(cut)-1]
	}
	return string(cut) + " …"
}
