package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"
	glance "github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/spf13/cobra"

	"github.com/burano/burano/images"
)

// imageMark is the value of the property by which Murano's forms find images for Kubernetes nodes.
const imageMark = `{"title": "Burano node", "type": "linux.kubernetes"}`

// digestProperty keeps the digest of an uploaded image, so that the same one is not uploaded again.
const digestProperty = "burano_sha256"

func imageCommand(connection *connection) *cobra.Command {
	command := &cobra.Command{Use: "image", Short: "The image that nodes of clusters are made from"}
	command.AddCommand(imageBuildCommand(), imageUploadCommand(connection))
	return command
}

func imageBuildCommand() *cobra.Command {
	var options images.Options
	var format string
	command := &cobra.Command{
		Use:   "build --source DIR",
		Short: "Build the node image from the folder images/ of Burano's sources (as root)",
		Long: `Build compiles Kubernetes, etcd, Calico and CoreDNS from pinned sources, makes a Debian root file system with them, and
writes it as one tar for the local cloud, or, with --format qcow2 or raw, as a disk that machines of a real cloud boot. Each part is kept in a cache,
so only what changed is made again. It needs root, Go and mmdebstrap, and for a disk mkfs.ext4, sfdisk, grub-mkimage, mtools and qemu-img.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			options.Progress, options.Format = command.OutOrStdout(), images.Format(format)
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
	command.Flags().StringVar(&options.CacheDir, "cache", "", "folder that keeps built parts (default: burano/image in the user's cache folder)")
	cobra.CheckErr(command.MarkFlagRequired("source"))
	return command
}

func imageUploadCommand(connection *connection) *cobra.Command {
	var name string
	var public bool
	command := &cobra.Command{
		Use:   "upload FILE",
		Short: "Upload a node image to Glance, unless the same image is there already",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			client, err := connection.glance(command.Context())
			if err != nil {
				return err
			}
			id, uploaded, err := uploadImage(command.Context(), client, name, args[0], public)
			if err != nil {
				return err
			}
			if uploaded {
				fmt.Fprintf(command.OutOrStdout(), "image %s (%s) is uploaded\n", name, id)
			} else {
				fmt.Fprintf(command.OutOrStdout(), "image %s (%s) is there already\n", name, id)
			}
			return nil
		},
	}
	command.Flags().StringVar(&name, "name", "burano-node", "name of the image in Glance")
	command.Flags().BoolVar(&public, "public", false, "let every project use the image (for administrators)")
	return command
}

// uploadImage puts the file into Glance under the name, in place of another image of that name that was uploaded before.
func uploadImage(ctx context.Context, client *gophercloud.ServiceClient, name, path string, public bool) (id string, uploaded bool, err error) {
	digest, err := digestOf(path)
	if err != nil {
		return "", false, err
	}
	pages, err := glance.List(client, glance.ListOpts{Name: name}).AllPages(ctx)
	if err != nil {
		return "", false, fmt.Errorf("list images: %w", err)
	}
	found, err := glance.ExtractImages(pages)
	if err != nil {
		return "", false, fmt.Errorf("list images: %w", err)
	}
	var stale []string
	for _, image := range found {
		switch {
		case image.Properties[digestProperty] == nil:
			return "", false, fmt.Errorf("image %s (%s) was not uploaded by Burano: delete it, or choose another --name", name, image.ID)
		case image.Properties[digestProperty] == digest && image.Status == glance.ImageStatusActive:
			return image.ID, false, nil
		default:
			stale = append(stale, image.ID)
		}
	}
	visibility := glance.ImageVisibilityPrivate
	if public {
		visibility = glance.ImageVisibilityPublic
	}
	created, err := glance.Create(ctx, client, glance.CreateOpts{
		Name: name, DiskFormat: "raw", ContainerFormat: "bare", Visibility: &visibility,
		Properties: map[string]string{imageProperty: imageMark, digestProperty: digest},
	}).Extract()
	if err != nil {
		return "", false, fmt.Errorf("create image %s: %w", name, err)
	}
	if err := uploadData(ctx, client, created.ID, path); err != nil {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return "", false, errors.Join(err, glance.Delete(cleanup, client, created.ID).ExtractErr())
	}
	for _, old := range stale {
		if err := glance.Delete(ctx, client, old).ExtractErr(); err != nil {
			return "", false, fmt.Errorf("delete the former image %s: %w", old, err)
		}
	}
	return created.ID, true, nil
}

// digestOf returns the SHA-256 of a file in hexadecimal digits.
func digestOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	digest := sha256.New()
	if _, err := io.Copy(digest, file); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}

func uploadData(ctx context.Context, client *gophercloud.ServiceClient, id, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	// Without the wrapper the HTTP client would close the file itself.
	if err := imagedata.Upload(ctx, client, id, io.NopCloser(file)).ExtractErr(); err != nil {
		return fmt.Errorf("upload %s: %w", path, err)
	}
	return nil
}
