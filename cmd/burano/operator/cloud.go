package operator

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

func imageMarkCommand(connection *cli.Connection) *cobra.Command {
	var mark client.ImageMark
	command := &cobra.Command{
		Use:   "mark IMAGE-ID",
		Short: "Mark an image of the cloud, so that forms offer it",
		Args:  cobra.ExactArgs(1),
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
			if err := api.MarkImage(command.Context(), args[0], &mark); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s: marked as %s\n", args[0], mark.Type)
			return nil
		}),
	}
	command.Flags().StringVar(&mark.Type, "type", "", "type of image that forms look for, such as linux or linux.kubernetes")
	command.Flags().StringVar(&mark.Title, "title", "", "title of the image in forms")
	_ = command.MarkFlagRequired("type")
	return command
}

func imageUnmarkCommand(connection *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use:   "unmark IMAGE-ID",
		Short: "Remove the mark of an image",
		Args:  cobra.ExactArgs(1),
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
			if err := api.MarkImage(command.Context(), args[0], nil); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s: not marked any more\n", args[0])
			return nil
		}),
	}
}
