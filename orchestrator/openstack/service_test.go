package openstack

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Keystone (Zed) writes the end of a token that ends with its application credential without a zone.
func TestTheEndOfATokenIsReadAsKeystoneWritesIt(t *testing.T) {
	for _, text := range []string{"2026-11-27T01:29:23.816193", "2026-11-27T01:29:23.816193Z", "2026-11-27T02:29:23.816193+01:00"} {
		var read struct{ End keystoneTime }
		require.NoError(t, json.Unmarshal([]byte(`{"End": "`+text+`"}`), &read))
		require.Equal(t, time.Date(2026, 11, 27, 1, 29, 23, 816193000, time.UTC), time.Time(read.End).UTC())
	}
	require.Error(t, json.Unmarshal([]byte(`{"End": "soon"}`), &struct{ End keystoneTime }{}))
}
