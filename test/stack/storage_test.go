package stack

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func storing(t *testing.T, classes ...any) map[string]any {
	return withMasters(t, map[string]any{"storageClasses": classes})
}

func TestStorageClassesChangeNothingOfTheStack(t *testing.T) {
	w := newWorld(t)
	w.imageSays = `, "burano_storage": "v13.0.0"`
	w.there = w.push(t, environment(t, demo))
	w.unchanged(t, storing(t, map[string]any{"name": "burano-local", "backend": "local"}))
	w.imageSays = `, "burano_storage": "v13.0.0", "burano_cinder": "v4.12.0", "burano_xfs": "6.1.0-1"`
	w.unchanged(t, storing(t, map[string]any{"name": "fast", "backend": "cinder", "fsType": "xfs", "mountOptions": []any{"noatime"}, "zones": []any{"a", "b"}}))
}

func TestStorageClassesThatCannotBeAreRefused(t *testing.T) {
	local := map[string]any{"name": "burano-local", "backend": "local"}
	w := newWorld(t)
	w.imageSays = `, "burano_kubernetes": "v1.36.3"`
	require.ErrorContains(t, w.fail(t, storing(t, local)), "does not say that it can serve volumes, which storageClasses need: build a node image with this release and upload it")
	w.imageSays = `, "burano_storage": "v13.0.0"`
	require.ErrorContains(t, w.fail(t, storing(t, local, local)), `storage class "burano-local": there are two of that name`)
	require.ErrorContains(t, w.fail(t, storing(t, map[string]any{"name": "fast", "backend": "tape"})), `storage class "fast": there is no back-end "tape": there are [cinder local manila]`)
	require.ErrorContains(t, w.fail(t, storing(t, map[string]any{"name": "shared", "backend": "manila"})),
		"does not say that it can serve volumes that are shares of Manila, which storageClasses has: build a node image with this release")
	w.imageSays = `, "burano_storage": "v13.0.0", "burano_cinder": "v4.12.0"`
	xfs := map[string]any{"name": "fast", "backend": "cinder", "fsType": "xfs", "mountOptions": []any{"noatime"}}
	const newer = "does not say that it can serve volumes of Cinder with the file system xfs, or in the zones of their nodes, which storageClasses asks for: build a node image with this release"
	require.ErrorContains(t, w.fail(t, storing(t, xfs)), newer)
	require.ErrorContains(t, w.fail(t, storing(t, map[string]any{"name": "fast", "backend": "cinder", "zones": []any{"a", "b"}})), newer)
	require.ErrorContains(t, w.fail(t, storing(t, map[string]any{"name": "kept", "backend": "local", "reclaimPolicy": "Keep"})), `reclaimPolicy is "Keep": say Delete or Retain`)
}
