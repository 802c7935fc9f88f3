package kube

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// Field is a part of an object that would be other than it is; nil stands for one that is not there.
type Field struct {
	Path          string // such as spec.template.spec.containers[web].image
	Before, After any
}

// ofServer are fields that the API server writes.
var ofServer = []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"}

// Differences are the fields that Apply of an object would change. there is false where it would make it. The error of an object that the API server refuses is its own.
func Differences(ctx context.Context, config *rest.Config, fieldManager string, object runtime.Object) (fields []Field, there bool, err error) {
	now, then, err := try(ctx, config, fieldManager, object)
	if err != nil || now == nil {
		return nil, false, err
	}
	for _, one := range []*unstructured.Unstructured{now, then} {
		unstructured.RemoveNestedField(one.Object, "status")
		for _, name := range ofServer {
			unstructured.RemoveNestedField(one.Object, "metadata", name)
		}
	}
	return differences("", now.Object, then.Object), true, nil
}

// try returns an object as it is and as Apply would make it; nil when there is none.
func try(ctx context.Context, config *rest.Config, fieldManager string, object runtime.Object) (now, then *unstructured.Unstructured, err error) {
	content, err := plain(object)
	if err != nil {
		return nil, nil, err
	}
	client, err := NewClient(config)
	if err != nil {
		return nil, nil, err
	}
	resource, err := client.resource(content.GroupVersionKind(), content.GetNamespace())
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", describe(content), err)
	}
	now, err = resource.Get(ctx, content.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", describe(content), err)
	}
	then, err = resource.Apply(ctx, content.GetName(), content, metav1.ApplyOptions{FieldManager: fieldManager, Force: true, DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return now, nil, fmt.Errorf("try to apply %s: %w", describe(content), plainly(err))
	}
	return now, then, nil
}

// differences are the parts of two values that are not the same, in the order of their paths.
func differences(path string, before, after any) (found []Field) {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	was, is := parts(before), parts(after)
	if was == nil || is == nil || reflect.TypeOf(before) != reflect.TypeOf(after) {
		return []Field{{path, before, after}}
	}
	keys := maps.Clone(was)
	maps.Copy(keys, is)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		inner := path + "[" + key + "]"
		if _, list := before.([]any); !list && !strings.ContainsAny(key, "./") {
			inner = strings.TrimPrefix(path+"."+key, ".")
		}
		found = append(found, differences(inner, was[key], is[key])...)
	}
	return found
}

// parts are the values in a map, or in a list by their names, or else by their places; nil for another value.
func parts(value any) map[string]any {
	switch value := value.(type) {
	case map[string]any:
		return value
	case []any:
		named, placed := map[string]any{}, map[string]any{}
		for i, item := range value {
			placed[fmt.Sprintf("%03d", i)] = item
			fields, _ := item.(map[string]any)
			if name, _ := fields["name"].(string); name != "" {
				named[name] = item
			}
		}
		if len(named) == len(value) {
			return named
		}
		return placed
	}
	return nil
}

// refused is the answer of the API server to an object that it does not take, in one line.
type refused struct {
	text string
	err  error
}

func (r *refused) Error() string { return r.text }

func (r *refused) Unwrap() error { return r.err }

// plainly makes one line of an error by which the API server refuses an object: the fields and their faults, without the names that the caller
// adds, and without listings of whole objects.
func plainly(err error) error {
	status, is := err.(apierrors.APIStatus)
	if !is || !apierrors.IsInvalid(err) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return err
	}
	var texts []string
	for _, cause := range status.Status().Details.Causes {
		text, _, _ := strings.Cut(cause.Message, "\n")
		if cause.Field != "" && cause.Field != "<nil>" {
			text = cause.Field + ": " + text
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return &refused{strings.Join(texts, "; "), err}
}
