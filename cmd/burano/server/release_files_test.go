package server

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestThePackagedSettingsAreTheDefaults takes the comments off the file of settings that a package has.
func TestThePackagedSettingsAreTheDefaults(t *testing.T) {
	written := string(CommentedSettings((&Options{}).Flags()))
	options, packed, err := resolved(t, []string{"--config", "FILE"}, nil, written)
	require.NoError(t, err)
	require.Equal(t, "/var/lib/burano", options.State)
	require.Equal(t, "burano-service", options.Cloud)
	_, all, err := resolved(t, []string{"--config", "FILE"}, nil, regexp.MustCompile(`(?m)^#([a-z-]+:)`).ReplaceAllString(written, "$1"))
	require.NoError(t, err)
	require.NotContains(t, all.print(), "# default", "each setting is in it")
	values := func(s *settings) string { return regexp.MustCompile(`  # .*`).ReplaceAllString(s.print(), "") }
	require.Equal(t, values(packed), values(all))
}
