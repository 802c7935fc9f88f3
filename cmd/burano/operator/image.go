package operator

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/images"
)

// ImageCommand is burano image.
func ImageCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{Use: "image", Short: "The image of cluster nodes, and container images of applications"}
	command.AddCommand(imageBuildCommand(), imageBuildFromCommand(), imagePushCommand(connection), imageCopyCommand(connection), imageListCommand(connection), imageDeleteCommand(connection), imageUploadCommand(connection), imageMarkCommand(connection), imageUnmarkCommand(connection), imageCheckCommand(connection))
	return command
}

func imageBuildCommand() *cobra.Command {
	var options images.Options
	var format string
	var fetch bool
	var prebuilt images.Prebuilt
	command := &cobra.Command{
		Use:   "build --source DIR",
		Short: "Build the node image from the folder images/ of Burano's sources (as root)",
		Long: `Build compiles Kubernetes, etcd, Calico and CoreDNS from pinned sources, and makes a Debian root file system with them. It
writes one tar for the local cloud, or, with --format qcow2 or raw, a disk that machines of a real cloud boot. Each part is cached,
so only changed parts are made again. It needs root, Go and mmdebstrap, and for a disk mkfs.ext4, sfdisk, grub-mkimage, mtools and qemu-img.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			options.Progress, options.Format = command.OutOrStdout(), images.Format(format)
			if fetch {
				options.Prebuilt = &prebuilt
			}
			if options.Out == "" {
				options.Out = "build/node-image." + format
			}
			result, err := images.Build(command.Context(), options)
			if err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "the node image is %s (%d MB, sha256 %.12s…): %d parts made, %d kept, %.0f s\n",
				result.Image, result.Manifest.Size/1e6, result.Manifest.SHA256, result.Made, result.Kept, result.Duration.Seconds())
			return nil
		},
	}
	command.Flags().StringVar(&options.Source, "source", "", "the folder images/ of Burano's sources")
	command.Flags().StringVar(&format, "format", string(images.Tar), "tar, qcow2 or raw")
	command.Flags().StringVar(&options.Out, "output", "", "file to write (default build/node-image.FORMAT)")
	command.Flags().StringVar(&options.CacheDir, "cache", "", "cache of built parts (default: burano/image in the user's cache folder)")
	command.Flags().StringVar(&options.Kubernetes, "kubernetes", "", "build with this minor version of Kubernetes, such as 1.35 (default: the newest)")
	command.Flags().StringSliceVar(&options.With, "with", nil, "optional part of the image: docker (Docker's engine, for containerRuntime: docker)")
	command.Flags().BoolVar(&fetch, "prebuilt", false, "fetch the programs that their projects publish (prebuilt.yaml in the source) instead of compiling them")
	command.Flags().StringVar(&prebuilt.Base, "prebuilt-base", "", "a mirror that has each file below its host and path (default: the projects' own servers)")
	command.Flags().StringVar(&prebuilt.Sums, "prebuilt-sums", "", "file in which the first use records checksums, which later builds require (default: prebuilt.sums in the source)")
	command.Flags().StringVar(&prebuilt.Roots, "prebuilt-roots", "", "file with the certificates for the check of signatures (default: no check)")
	cobra.CheckErr(command.MarkFlagRequired("source"))
	return command
}
