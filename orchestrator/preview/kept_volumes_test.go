package preview

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPreviewSaysWhatBecomesOfTheVolumesOfAClusterThatIsDestroyed(t *testing.T) {
	with := func(classes []any, keep any) Object {
		return Object{Fields: map[string]any{"storageClasses": classes, "keepVolumes": keep}}
	}
	local, cinder := map[string]any{"backend": "local"}, map[string]any{"backend": "cinder"}
	require.Empty(t, Object{}.volumes())
	require.Empty(t, with([]any{}, true).volumes())
	require.Equal(t, "; its local volumes go with its servers", with([]any{local}, true).volumes())
	require.Equal(t, "; its local volumes go with its servers; its volumes in Cinder stay (keepVolumes), and are yours to delete", with([]any{local, cinder}, nil).volumes())
	require.Equal(t, "; its volumes in Cinder stay (keepVolumes), and are yours to delete", with([]any{cinder}, true).volumes())
	manila := map[string]any{"backend": "manila"}
	require.Equal(t, "; its shares in Manila stay (keepVolumes), and are yours to delete", with([]any{manila}, true).volumes())
	require.Equal(t, "; its volumes in Cinder and shares in Manila stay (keepVolumes), and are yours to delete", with([]any{manila, cinder}, nil).volumes())
	for _, classes := range [][]any{{cinder}, {local}, {manila}, nil} { // volumes of former classes go, too
		require.Contains(t, with(classes, false).volumes(), "its volumes in Cinder and shares in Manila, where it has any, are deleted (keepVolumes: false)")
	}
}
