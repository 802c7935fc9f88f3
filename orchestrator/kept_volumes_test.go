package orchestrator

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPreviewSaysWhatBecomesOfTheVolumesOfAClusterThatIsDestroyed(t *testing.T) {
	with := func(classes []any, keep any) placed {
		return placed{properties: map[string]any{"storageClasses": classes, "keepVolumes": keep}}
	}
	local, cinder := map[string]any{"backend": "local"}, map[string]any{"backend": "cinder"}
	require.Empty(t, placed{}.volumes())
	require.Empty(t, with([]any{local}, false).volumes())
	require.Equal(t, "; its volumes in Cinder stay (keepVolumes), and are yours to delete", with([]any{local, cinder}, nil).volumes())
	require.Equal(t, "; its volumes in Cinder stay (keepVolumes), and are yours to delete", with([]any{cinder}, true).volumes())
	require.Contains(t, with([]any{cinder}, false).volumes(), "are deleted (keepVolumes: false)")
}
