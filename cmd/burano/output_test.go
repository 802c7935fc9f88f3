package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestATextOfManyLinesIsOneInATable(t *testing.T) {
	require.Equal(t, "", inOneLine("\n \n"))
	require.Equal(t, "it failed", inOneLine("it\tfailed\n"))
	require.Equal(t, "node-1: it failed: (and 2 more lines: --output json)", inOneLine("\nnode-1: it failed:\n\nNov 27 kubelet: no\nNov 27 kubelet: again\n"))
	long := inOneLine(strings.Repeat("é", 1000))
	require.Len(t, []rune(long), longCell+1)
}
