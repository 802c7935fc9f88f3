package kube

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestDifferencesNameTheFields(t *testing.T) {
	before := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"burano.io/digest": "1"}}, "spec": map[string]any{"replicas": int64(3),
		"containers": []any{map[string]any{"name": "web", "image": "nginx:1", "args": []any{"a", "b"}}, map[string]any{"name": "side"}}}}
	after := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"burano.io/digest": "2"}}, "spec": map[string]any{"replicas": int64(1),
		"containers": []any{map[string]any{"name": "web", "image": "nginx:2", "args": []any{"a"}}}}}
	require.Equal(t, []Field{
		{"metadata.annotations[burano.io/digest]", "1", "2"},
		{"spec.containers[side]", map[string]any{"name": "side"}, nil},
		{"spec.containers[web].args[001]", "b", nil},
		{"spec.containers[web].image", "nginx:1", "nginx:2"},
		{"spec.replicas", int64(3), int64(1)},
	}, differences("", before, after))
	require.Empty(t, differences("", after, after))
}

func TestARefusalOfTheAPIServerIsOneLine(t *testing.T) {
	refusal := apierrors.NewInvalid(schema.GroupKind{Kind: "PersistentVolumeClaim"}, "data", field.ErrorList{
		field.Forbidden(field.NewPath("spec"), "spec is immutable after creation except resources.requests\n  core.PersistentVolumeClaimSpec{\n  ... // 2 fields\n }"),
		field.Forbidden(field.NewPath("spec", "resources", "requests", "storage"), "field can not be less than status.capacity"),
	})
	err := plainly(refusal)
	require.EqualError(t, err, "spec: Forbidden: spec is immutable after creation except resources.requests; spec.resources.requests.storage: Forbidden: field can not be less than status.capacity")
	require.True(t, apierrors.IsInvalid(err), "it is told apart as before")
	other := errors.New("connection refused")
	require.Equal(t, other, plainly(other))
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "x")
	require.Equal(t, error(gone), plainly(gone))
}
