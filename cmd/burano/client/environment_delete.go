package client

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// deletion deletes environments.
type deletion struct {
	api          *client.Client
	in           io.Reader
	out          io.Writer
	abandon      bool
	yes          bool
	wait         bool
	allowDestroy []string
}

func environmentDeleteCommand(connection *cli.Connection) *cobra.Command {
	var timeout time.Duration
	var d deletion
	command := &cobra.Command{
		Use:   "delete NAME|ID…",
		Short: "Delete environments with everything that was deployed in them, and wait until they are gone",
		Long: `Delete shows the effects of deleting each environment, deletes it, and waits until it is gone.

An environment with a cluster is deleted only when that is agreed to: by --yes, by --allow-destroy with the names of its clusters, or by the
answer to a question on a terminal. An environment in which a task runs is deleted after the task with --wait.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(command.Context(), timeout)
			defer cancel()
			var err error
			if d.api, err = connection.Connect(ctx); err != nil {
				return err
			}
			d.in, d.out = command.InOrStdin(), command.OutOrStdout()
			// All deletions begin before any is waited for. A failure does not stop the others.
			var going []client.Environment
			var failed []error
			for _, name := range args {
				found, err := d.begin(ctx, name)
				if err != nil {
					failed = append(failed, fmt.Errorf("delete environment %s: %w", name, err))
					continue
				}
				going = append(going, found)
			}
			for _, one := range going {
				if err := d.api.Environments().WaitDeleted(ctx, one.ID); err != nil {
					failed = append(failed, fmt.Errorf("delete environment %s: %w", one.Name, err))
					continue
				}
				fmt.Fprintf(d.out, "%s is deleted\n", one.Name)
			}
			return errors.Join(failed...)
		},
	}
	flags := command.Flags()
	flags.DurationVar(&timeout, "timeout", 10*time.Minute, "how long to wait until they are gone")
	flags.BoolVar(&d.abandon, "abandon", false, "forget them at once, and leave everything in the cloud as it is")
	flags.BoolVarP(&d.yes, "yes", "y", false, "agree to the loss of clusters with everything that is in them")
	flags.StringSliceVar(&d.allowDestroy, "allow-destroy", nil, "agree to the loss of the cluster with this id or name; may be given several times")
	flags.BoolVar(&d.wait, "wait", false, "wait for the end of running tasks")
	return command
}

// begin shows the plan of an environment's deletion, and begins it with the user's consent.
func (d *deletion) begin(ctx context.Context, name string) (client.Environment, error) {
	found, err := d.api.Environments().Get(ctx, name)
	if err != nil {
		return found, err
	}
	if d.abandon {
		return found, d.delete(ctx, found)
	}
	does, err := d.api.Environments().Deletion(ctx, found.ID)
	if err != nil {
		return found, err
	}
	if does.Busy != nil && does.Busy.Kind != "deletion" {
		if !d.wait {
			return found, fmt.Errorf("%w: wait for its end with --wait, or cancel it (burano deployment cancel %s)", does.Busy, does.Busy.DeploymentID)
		}
		fmt.Fprintf(d.out, "%s: %v\n", found.Name, does.Busy)
		if err := d.api.Environments().WaitIdle(ctx, found.ID); err != nil {
			return found, err
		}
		if does, err = d.api.Environments().Deletion(ctx, found.ID); err != nil {
			return found, err
		}
	}
	for _, one := range does.Goes {
		fmt.Fprintf(d.out, "- %s\n", one)
	}
	for _, one := range does.Stays {
		fmt.Fprintf(d.out, "= stays: %s\n", one)
	}
	if missing := does.Missing(d.allowDestroy); len(missing) > 0 && !d.yes {
		if err := d.ask(found.Name, missing); err != nil {
			return found, err
		}
	}
	return found, d.delete(ctx, found)
}

func (d *deletion) delete(ctx context.Context, environment client.Environment) error {
	return d.api.Environments().Delete(ctx, environment.ID, d.abandon)
}

// ask has the user agree on a terminal.
func (d *deletion) ask(environment string, missing []client.Consent) error {
	if file, is := d.in.(*os.File); !is || !term.IsTerminal(int(file.Fd())) {
		return fmt.Errorf("%s: nothing was done. Agree to it with --yes, or with --allow-destroy %s", missing[0].Message, cmp.Or(missing[0].Name, missing[0].ObjectID))
	}
	fmt.Fprintf(d.out, "Delete environment %s with all of this? [y/N] ", environment)
	answer, err := bufio.NewReader(io.LimitReader(d.in, 100)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("nothing was done")
	}
	return nil
}
