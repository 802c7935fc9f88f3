package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestATextOfManyLinesIsOneInATable(t *testing.T) {
	require.Equal(t, "", InOneLine("\n \n"))
	require.Equal(t, "it failed", InOneLine("it\tfailed\n"))
	require.Equal(t, "node-1: it failed: (and 2 more lines: --output json)", InOneLine("\nnode-1: it failed:\n\nNov 27 kubelet: no\nNov 27 kubelet: again\n"))
	long := InOneLine(strings.Repeat("é", 1000))
	require.Len(t, []rune(long), longCell+1)
}
