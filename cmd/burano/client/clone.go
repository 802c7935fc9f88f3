package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/internal/envelope"
	"github.com/burano/burano/web/client"
)

// dataCopy is how the files of claims go into a clone.
type dataCopy struct{ wanted, incomplete, yes bool }

func (d *dataCopy) addFlags(command *cobra.Command) {
	command.Flags().BoolVar(&d.wanted, "data", false, "copy the files of claims, too")
	command.Flags().BoolVar(&d.incomplete, "incomplete", false, "with --data: leave out claims that cannot be copied")
	command.Flags().BoolVar(&d.yes, "yes", false, "with --data: agree that pods of the original are frozen for seconds")
}

// writeCopied lists the claims in the preview of a backup, and returns the claims that it cannot have.
func writeCopied(out io.Writer, preview []client.BackupPreview) (missing []string) {
	for _, cluster := range preview {
		for _, claim := range cluster.Claims {
			fmt.Fprintf(out, "> cluster %s: the files of claim %s/%s (%s) are copied\n", cluster.Name, claim.Namespace, claim.Name, claim.Size)
		}
		for _, name := range slices.Sorted(maps.Keys(cluster.Missing)) {
			missing = append(missing, name+" ("+cluster.Missing[name]+")")
			fmt.Fprintf(out, "> cluster %s: claim %s cannot be copied: %s\n", cluster.Name, name, cluster.Missing[name])
		}
	}
	return missing
}

// clone makes an environment of a backup that is made for it. file is the original, for the preview.
func (d dataCopy) clone(ctx context.Context, here, there *client.Client, found client.Environment, file client.EnvironmentFile, how placing, out io.Writer) error {
	if err := hasPackages(ctx, there, file); err != nil {
		return err
	}
	preview, err := here.Backups().Preview(ctx, found.ID)
	if err != nil {
		return err
	}
	missing := writeCopied(out, preview)
	fmt.Fprintf(out, "> pods of environment %s that use claims are frozen while these are copied, for at most 25 seconds\n", found.Name)
	if len(missing) > 0 && !d.incomplete {
		return fmt.Errorf("nothing was done: these claims cannot be copied: %s. With --incomplete the clone is made without them", strings.Join(missing, ", "))
	}
	if how.dryRun {
		return how.place(ctx, there, file, out)
	}
	if !d.yes {
		return fmt.Errorf("nothing was done: repeat the command with --yes to copy the data of environment %s", found.Name)
	}
	answer, err := there.Files().PreviewNew(ctx, how.placed(file))
	if err != nil {
		return fmt.Errorf("nothing was done: %w", err)
	}
	if err := answer.Err(); err != nil {
		return errors.Join(writePreview(out, answer), fmt.Errorf("nothing was done: environment %s: %w", how.name, err))
	}
	made, err := d.backUp(ctx, here, found, how.name, out)
	if err != nil {
		return err
	}
	if there != here {
		if made, err = carry(ctx, here, there, made); err != nil {
			return err
		}
	}
	id, err := there.Backups().Restore(ctx, made, how.name, how.region)
	if err != nil {
		return errors.Join(err, there.Backups().Delete(ctx, made))
	}
	fmt.Fprintf(out, "environment %s (%s) is being deployed\n", how.name, id)
	if err := cli.FollowNewest(ctx, there, id, out); err != nil {
		return fmt.Errorf("%w. Backup %s, of which its claims get their files, stays until a deployment of %s succeeds or %[3]s is deleted", err, made, how.name)
	}
	return there.Backups().Delete(ctx, made)
}

// backUp makes a backup that passes, and returns its id.
func (d dataCopy) backUp(ctx context.Context, api *client.Client, found client.Environment, name string, out io.Writer) (id string, err error) {
	task, err := api.Backups().Make(ctx, found.ID, client.BackupOptions{Reason: "clone " + name, Incomplete: d.incomplete, Passing: true})
	if err != nil {
		return "", err
	}
	if err := cli.Follow(ctx, api, task, out); err != nil {
		return "", err
	}
	result, err := api.Actions().Result(ctx, found.ID, task)
	if err == nil {
		err = json.Unmarshal(result.Result, &id)
	}
	return id, err
}

// carry sends a backup to another project or server, sealed for a key that is forgotten with this process, removes it here, and returns its id there.
func carry(ctx context.Context, here, there *client.Client, id string) (string, error) {
	key, err := envelope.NewKey()
	if err != nil {
		return "", err
	}
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(here.Backups().Download(ctx, id, key.Recipient(), writer)) }()
	made, err := client.Backup{}, error(nil)
	opened, err := key.Reader(reader)
	if err == nil {
		made, err = there.Backups().Upload(ctx, opened, true)
	}
	reader.CloseWithError(err)
	if err != nil {
		err = fmt.Errorf("send the backup there: %w", err)
	}
	return made.ID, errors.Join(err, here.Backups().Delete(context.WithoutCancel(ctx), id))
}
