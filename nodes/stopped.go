package nodes

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/burano/burano/nodes/ssh"
)

//go:embed scripts/stopped-units.sh
var stoppedUnitsScript string

// stoppedUnits is an error that names the units of a node that do not run; nil where all do.
func stoppedUnits(ctx context.Context, client *ssh.Client) error {
	out, err := client.Run(ctx, ssh.Script{Name: "look for units that do not run", Body: stoppedUnitsScript})
	if err != nil {
		return err
	}
	return stoppedIn(out)
}

func stoppedIn(out string) error {
	var problems []string
	for line := range strings.Lines(out) {
		if unit, state, is := strings.Cut(strings.TrimSpace(line), " "); is {
			problems = append(problems, fmt.Sprintf("%s does not run (%s): journalctl -u %s on the node says why", unit, state, unit))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, "; "))
}
