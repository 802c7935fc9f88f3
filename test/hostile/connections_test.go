package hostile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// connections opens 10,000 connections without any account: some send nothing, some a part of long headers, and some a request.
func connections(t *testing.T, l *lab) {
	half := "GET /v1/environments HTTP/1.1\r\nHost: x\r\nX-Long: " + strings.Repeat("x", 32<<10)
	texts := []string{"", half, "GET /v1/environments HTTP/1.1\r\nHost: x\r\n\r\n"}
	var group errgroup.Group
	group.SetLimit(50)
	for n := range 10_000 {
		group.Go(func() error {
			_, err := l.dial(t, texts[n%len(texts)])
			return err
		})
	}
	require.NoError(t, group.Wait())
}
