package muranopl

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheNearestNameIsNamed(t *testing.T) {
	names := []string{"name", "replicas", "networks", "joinNetworks", "labels", "nodeCount"}
	for key, want := range map[string]string{"replicaz": "replicas", "Replicas": "replicas", "networking": "networks", "label": "labels", "nodecount": "nodeCount", "nam": "name", "x": "", "unlike": ""} {
		require.Equal(t, want, nearest(key, names), key)
	}
}
