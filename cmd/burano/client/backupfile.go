package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/orchestrator/backup"
	"github.com/burano/burano/web/client"
)

func backupDownloadCommand(connection *cli.Connection) *cobra.Command {
	var recipient, path string
	command := &cobra.Command{
		Use:   "download BACKUP --recipient PUBLIC-KEY --file FILE",
		Short: "Write a backup as one file, sealed for a key; another project or another Burano can restore it",
		Long: `Download writes a backup to a file: the model with its secrets, the etcd of its clusters and the files of all claims. The file is sealed for the public
key of burano environment key, and only the key file opens it. Authorities of clusters are not in it. An existing file is not overwritten.`,
		Args: cobra.ExactArgs(1),
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
			if path == "-" {
				return api.Backups().Download(command.Context(), args[0], recipient, command.OutOrStdout())
			}
			return writeWhole(path, func(to io.Writer) error { return api.Backups().Download(command.Context(), args[0], recipient, to) })
		}),
	}
	command.Flags().StringVar(&recipient, "recipient", "", "public key (age1…) for which the file is sealed")
	command.Flags().StringVarP(&path, "file", "o", "", "file to write, - for standard output")
	_ = command.MarkFlagRequired("recipient")
	_ = command.MarkFlagRequired("file")
	return command
}

// writeWhole writes a new file, which appears whole or not at all.
func writeWhole(path string, write func(to io.Writer) error) (err error) {
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(err, fmt.Errorf("%s is there already: choose another name", path))
	}
	part := path + ".part"
	file, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = write(file)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return os.Rename(part, path)
}

// openBackupFile opens a file that is sealed for a key.
func openBackupFile(path, keyFile string) (opened io.Reader, closeFile func() error, err error) {
	key, err := readKey(keyFile)
	if err != nil {
		return nil, nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	opened, err = key.Reader(file)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return opened, file.Close, nil
}

// checkBackupFile reads a file to its end.
func checkBackupFile(path, keyFile string) (described backup.File, err error) {
	opened, closeFile, err := openBackupFile(path, keyFile)
	if err != nil {
		return described, err
	}
	defer func() { err = errors.Join(err, closeFile()) }()
	if described, err = backup.Check(opened); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return described, err
}

func addKeyFlag(command *cobra.Command, keyFile *string) {
	command.Flags().StringVar(keyFile, "key", "", "file with the key for which the backup is sealed (burano environment key)")
	_ = command.MarkFlagRequired("key")
}

func backupCheckCommand() *cobra.Command {
	var keyFile string
	command := &cobra.Command{
		Use:   "check FILE --key KEYFILE",
		Short: "Read the file of a backup to its end, and describe it; it needs no server",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			described, err := checkBackupFile(args[0], keyFile)
			if err != nil {
				return err
			}
			out := command.OutOrStdout()
			fmt.Fprintf(out, "environment %s at %s, by Burano %s\n", described.EnvironmentName, described.Created.Local().Format(time.DateTime), described.Burano)
			for _, cluster := range described.Clusters {
				fmt.Fprintf(out, "cluster %s\n", cluster.Name)
				for _, claim := range cluster.Claims {
					fmt.Fprintf(out, "  claim %s/%s: %d bytes, SHA-256 %s\n", claim.Namespace, claim.Name, claim.Bytes, claim.Checksum)
				}
			}
			return nil
		},
	}
	addKeyFlag(command, &keyFile)
	return command
}

func backupUploadCommand(connection *cli.Connection) *cobra.Command {
	var keyFile string
	command := &cobra.Command{
		Use:   "upload FILE --key KEYFILE",
		Short: "Store a downloaded backup in the project, and print its id for burano backup restore",
		Long: `Upload opens a file of burano backup download on this machine, checks it to its end, and sends the content to the server: the key stays here. The backup
belongs to the project and counts for its quota. What is wrong with the file is found before anything is stored.`,
		Args: cobra.ExactArgs(1),
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
			made, err := uploadBackup(command.Context(), api, args[0], keyFile)
			if err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), made.ID)
			return nil
		}),
	}
	addKeyFlag(command, &keyFile)
	return command
}

func uploadBackup(ctx context.Context, api *client.Client, path, keyFile string) (made client.Backup, err error) {
	if _, err := checkBackupFile(path, keyFile); err != nil {
		return made, err
	}
	opened, closeFile, err := openBackupFile(path, keyFile)
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, closeFile()) }()
	return api.Backups().Upload(ctx, opened, false)
}
