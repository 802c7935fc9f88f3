package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	glance "github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/images"
	"github.com/burano/burano/orchestrator/openstack"
)

func imageBuildFromCommand() *cobra.Command {
	var options images.ApplicationOptions
	command := &cobra.Command{
		Use:   "build-from NAME|DIR",
		Short: "Build a container image of Debian's packages (as root)",
		Long: `Build-from makes a container image of Debian's packages and writes it as an archive, for ` + "`burano image push`" + `. Images for applications of the
catalog are known by name: ` + strings.Join(images.Applications(), ", ") + `. A folder of your own has container.yaml (name, entryPoint, commands, env, user, stopSignal,
base, release) and the files that it names. These are a list of packages (packages), files to copy over them (files), and a script that runs last (install, with the root
file system in ROOT). It needs root and mmdebstrap; packages come from the mirrors of this machine's own apt sources.`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			options.Source, options.Progress = args[0], command.OutOrStdout()
			result, err := images.BuildApplication(command.Context(), options)
			if err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "the container image %s is %s (%.1f MB), made in %.0f s\n", result.Name, result.Image, float64(result.Size)/1e6, result.Duration.Seconds())
			return nil
		},
	}
	command.Flags().StringVar(&options.Out, "output", "", "file to write (default: the name of the image with .tar)")
	command.Flags().StringVar(&options.Name, "name", "", "name of the image (default: the name in container.yaml)")
	command.Flags().StringVar(&options.CacheDir, "cache", "", "cache of installed packages (default: burano/applications in the user's cache folder)")
	return command
}

func imagePushCommand(connection *cli.Connection) *cobra.Command {
	var public bool
	var to registryOption
	var as string
	command := &cobra.Command{
		Use:   "push FILE",
		Short: "Upload a container image to Glance, from which Burano copies it to nodes, or to the registry of a cluster",
		Long: `Push uploads a container image to Glance, from an archive as ` + "`burano image build-from` or `docker save`" + ` makes it. The image is called
` + openstack.ContainerHost + `/NAME:TAG, and this is how applications name it: no registry is needed. Burano copies it to the minions of a cluster when an application
that runs it is deployed there. The image belongs to the project, or is public with --public. A former image of that name in the project is hidden;
running applications keep it until they are deployed again.

With --to it goes to the registry of an environment's cluster (enableRegistry) instead, under any name; the command prints the name for pods.`,
		Example: `  burano image push web.tar --to demo --as team/web:1`,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if to.environment != "" {
				return pushToCluster(command, connection, to, args[0], as)
			}
			if as != "" || to.cluster != "" {
				return errors.New("--as and --cluster are for the registry of a cluster: name its environment with --to")
			}
			client, err := connection.Glance(command.Context())
			if err != nil {
				return err
			}
			called, done, err := pushImage(command.Context(), client, args[0], public)
			if err != nil {
				return err
			}
			state := "is there already"
			if done.new {
				state = "is pushed"
			}
			fmt.Fprintf(command.OutOrStdout(), "container image %s (%s) %s\n", called, done.id, state)
			for _, id := range done.former {
				fmt.Fprintf(command.OutOrStdout(), "the former image %s is hidden now; delete it when everything that runs it was deployed again\n", id)
			}
			return nil
		},
	}
	command.Flags().BoolVar(&public, "public", false, "let every project use the image in Glance (for administrators)")
	to.addFlags(command, "environment whose cluster gets the image, in its registry")
	command.Flags().StringVar(&as, "as", "", "name of the image there, such as team/web:1 (default: as in the archive)")
	command.MarkFlagsMutuallyExclusive("public", "to")
	return command
}

// pushImage puts an archive into Glance under the name that it has of itself, in place of those of the project that had the name.
func pushImage(ctx context.Context, client *gophercloud.ServiceClient, path string, public bool) (called string, done uploadedImage, err error) {
	if called, err = images.NameOf(path); err != nil {
		return "", done, err
	}
	if !openstack.IsContainerImage(called) {
		return "", done, fmt.Errorf("the image in %s is called %s: only names such as %s/web:1 are looked for in Glance; build it with --name, or give it another tag", path, called, openstack.ContainerHost)
	}
	digest, err := digestOf(path)
	if err != nil {
		return "", done, err
	}
	visibility := glance.ImageVisibilityPrivate
	if public {
		visibility = glance.ImageVisibilityPublic
	}
	found, err := imagesNamed(ctx, client, called)
	if err != nil {
		return "", done, err
	}
	created, err := glance.Create(ctx, client, glance.CreateOpts{
		Name: called, DiskFormat: "raw", ContainerFormat: openstack.ContainerFormat, Visibility: &visibility, Properties: map[string]string{digestProperty: digest},
	}).Extract()
	if err != nil {
		return "", done, fmt.Errorf("create image %s: %w", called, err)
	}
	giveUp := func(cause error) error {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return errors.Join(cause, glance.Delete(cleanup, client, created.ID).ExtractErr())
	}
	var former []string
	for _, image := range found {
		switch {
		case image.Owner != created.Owner: // shared by others
		case image.Properties[digestProperty] == nil:
			return "", done, giveUp(fmt.Errorf("image %s (%s) was not pushed by Burano: delete it, or give yours another name", called, image.ID))
		case image.Properties[digestProperty] == digest && image.Status == glance.ImageStatusActive && image.Visibility == visibility:
			return called, uploadedImage{id: image.ID}, giveUp(nil)
		default:
			former = append(former, image.ID)
		}
	}
	if err := uploadData(ctx, client, created.ID, path); err != nil {
		return "", done, giveUp(err)
	}
	for _, id := range former {
		if err := glance.Update(ctx, client, id, glance.UpdateOpts{glance.ReplaceImageHidden{NewHidden: true}}).Err; err != nil {
			return "", done, fmt.Errorf("hide the former image %s: %w", id, err)
		}
	}
	return called, uploadedImage{id: created.ID, new: true, former: former}, nil
}
