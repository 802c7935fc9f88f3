package client

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAClusterIsFoundByItsNameOrBecauseItIsTheOnlyOne(t *testing.T) {
	service := func(kind, id, name string) map[string]any {
		return map[string]any{"?": map[string]any{"type": kind, "id": id}, "name": name}
	}
	environment := Environment{Name: "e", Services: []map[string]any{
		service(ClusterClass+"/0.0.0@x", "1", "a"), service("other", "2", "b"), service(ClusterClass, "3", "c"),
	}}
	id, err := environment.ClusterID("c")
	require.NoError(t, err)
	require.Equal(t, "3", id)
	id, err = environment.ClusterID("1")
	require.NoError(t, err)
	require.Equal(t, "1", id)
	_, err = environment.ClusterID("")
	require.ErrorContains(t, err, "a, c")
	_, err = environment.ClusterID("b")
	require.ErrorContains(t, err, `no cluster "b"`)
}
