package direct

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/orchestrator/store"
)

// noRows keep nothing.
type noRows struct{ Rows }

func (noRows) PutStackResource(context.Context, string, store.StackResource) error { return nil }

// A resource that could not be changed is as it was: it must be deleted before the resources that it was made with.
func TestAFailedChangeKeepsTheOrderOfDeletion(t *testing.T) {
	refused := errors.New("refused")
	kinds["OS::Test::Thing"] = kind{properties: map[string]property{"size": {changes: true}},
		update: func(context.Context, *job, []string) error { return refused }}
	t.Cleanup(func() { delete(kinds, "OS::Test::Thing") })
	s := &stack{project: &project{driver: New(noRows{})}}
	one := &resource{Name: "thing", Type: "OS::Test::Thing", Action: actionCreate, Status: complete, Properties: map[string]any{"size": 1}, Needs: []string{"subnet"}}
	wanted := definition{kind: "OS::Test::Thing", needs: []string{"net"}}
	done, err := s.adapt(t.Context(), one, wanted, map[string]any{"size": 2})
	require.True(t, done)
	require.ErrorContains(t, err, "refused")
	require.Equal(t, []string{"net", "subnet"}, one.Needs)

	refused = nil
	_, err = s.adapt(t.Context(), one, wanted, map[string]any{"size": 2})
	require.NoError(t, err)
	require.Equal(t, []string{"net"}, one.Needs)
}
