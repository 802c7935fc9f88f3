package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

const allowDestroyUsage = "id or name of a cluster that may be deleted with everything in it, or of a pod or claim whose data may lose its application; may be given several times"

// DeployCommand is burano deploy.
func DeployCommand(connection *cli.Connection) *cobra.Command {
	var follow, dryRun bool
	var allowDestroy []string
	command := &cobra.Command{
		Use:   "deploy FILE",
		Short: "Deploy an environment with its applications from a YAML file",
		Long: `Deploy applies FILE to the environment that it names, and deploys the environment. It creates the environment when the project has
none of that name. Deploying an unchanged file again changes nothing that runs.

The file has a name and a list of applications, each an object model as in Murano's API. Ids may be any readable names;
applications refer to each other by them:

  name: demo
  applications:
    - "?": {type: com.mirantis.docker.kubernetes.KubernetesCluster, id: cluster}
      name: cluster
      …
    - "?": {type: com.mirantis.docker.kubernetes.KubernetesPod, id: pod}
      kubernetesCluster: cluster
      …

Existing objects keep their ids, and so their servers and data: they are found by id, otherwise by name (a node by the name of
its instance), and not by their place in the file.

It may also have description, region and defaultNetworks, which an environment gets at its creation, and metadata, which its resources
in the cloud get.

With --dry-run nothing is made or stored, also of a new environment. ` + exitCodesOfPreviews,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			described, err := client.ReadEnvironmentFile(args[0])
			if err != nil {
				return err
			}
			api, err := connection.Connect(command.Context())
			if err != nil {
				return err
			}
			if dryRun {
				return printPreview(command.Context(), api, described, allowDestroy, command.OutOrStdout())
			}
			if follow {
				if err := cli.FollowOthers(command.Context(), api, described.Name, command.OutOrStdout()); err != nil {
					return err
				}
			}
			show := func(answer client.Preview) error { return writePreview(command.OutOrStdout(), answer) }
			environment, err := api.Files().DeployShown(command.Context(), described, show, allowDestroy...)
			if err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "environment %s (%s) is being deployed\n", described.Name, environment)
			if !follow {
				return nil
			}
			return cli.FollowNewest(command.Context(), api, environment, command.OutOrStdout())
		},
	}
	command.Flags().BoolVarP(&follow, "follow", "f", false, "show the deployment's reports as they come; the exit code is 0 when it succeeded")
	command.Flags().StringSliceVar(&allowDestroy, "allow-destroy", nil, allowDestroyUsage)
	command.Flags().BoolVar(&dryRun, "dry-run", false, "only show additions, changes, removals and the faults of the file")
	return command
}

// printPreview prints the preview of a deployment of a file. Its error is that of previewed.
func printPreview(ctx context.Context, api *client.Client, file client.EnvironmentFile, allowDestroy []string, out io.Writer) error {
	var answer client.Preview
	existing, err := api.Environments().Get(ctx, file.Name)
	switch {
	case client.IsStatus(err, http.StatusNotFound):
		fmt.Fprintf(out, "environment %s would be made\n", file.Name)
		answer, err = api.Files().PreviewNew(ctx, file)
	case err == nil:
		answer, err = api.Files().Preview(ctx, existing.ID, file)
	}
	if err != nil {
		return err
	}
	if err := writePreview(out, answer); err != nil {
		return err
	}
	return previewed(answer, allowDestroy...)
}

func writePreview(out io.Writer, answer client.Preview) error {
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	previewTable(answer)(table)
	return table.Flush()
}
