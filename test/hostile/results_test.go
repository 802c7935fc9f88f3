package hostile

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

const multiplier = `
Namespaces: {=: org.hostile}
Name: Multiplier
Methods:
  multiply:
    Usage: Static
    Scope: Public
    Body:
      - $text: ('x' * 1500000)
      - $row: list($text) * 100
      - Return: list($row) * 100
`

// results has a static action return 10,000 references to one text of 1.5 MB, many times at once.
func results(t *testing.T, l *lab) {
	status, answer := l.upload(t, map[string]string{"Classes/Multiplier.yaml": multiplier,
		"manifest.yaml": "Format: 1.4\nType: Library\nFullName: org.hostile\nName: Hostile\nClasses: {org.hostile.Multiplier: Multiplier.yaml}\n"})
	require.Equal(t, http.StatusOK, status, answer)
	var group errgroup.Group
	for range 8 {
		group.Go(func() error {
			for range 5 {
				status, answer, err := l.ask(t.Context(), l.hostile, http.MethodPost, "/v1/actions", map[string]any{"className": "org.hostile.Multiplier", "methodName": "multiply"})
				if err != nil {
					return err
				}
				if status != http.StatusTooManyRequests {
					require.Equalf(t, http.StatusRequestEntityTooLarge, status, "%.500s", answer)
					require.Contains(t, string(answer), "has more than 16 MiB")
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
}
