package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"
	glance "github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/orchestrator/openstack"
)

func imageCheckCommand(connection *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use:   "check [NAME|ID]",
		Short: "Check whether an image of Glance can be a node of a cluster, and name missing properties and remedies",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			client, err := connection.Glance(command.Context())
			if err != nil {
				return err
			}
			name := "burano-node"
			if len(args) == 1 {
				name = args[0]
			}
			image, err := findImage(command.Context(), client, name)
			if err != nil {
				return err
			}
			kind, err := formInGlance(command.Context(), client, image)
			if err != nil {
				return err
			}
			grave := 0
			for _, lack := range imageLacks(image, kind) {
				weight := "note"
				if lack.grave {
					weight = "problem"
					grave++
				}
				fmt.Fprintf(command.OutOrStdout(), "%s: %s; %s\n", weight, lack.what, lack.remedy)
			}
			if grave > 0 {
				return fmt.Errorf("image %s (%s) cannot be a node as it is", image.Name, image.ID)
			}
			holds := ""
			if says, _ := image.Properties[openstack.KubernetesProperty].(string); says != "" {
				holds = ", with Kubernetes " + says
			}
			fmt.Fprintf(command.OutOrStdout(), "image %s (%s) can be a node%s\n", image.Name, image.ID, holds)
			return nil
		},
	}
}

// findImage finds an image by its id or by its name, which has to be its alone.
func findImage(ctx context.Context, client *gophercloud.ServiceClient, name string) (glance.Image, error) {
	image, err := glance.Get(ctx, client, name).Extract()
	if err == nil {
		return *image, nil
	}
	if !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return glance.Image{}, fmt.Errorf("look for image %s: %w", name, err)
	}
	found, err := imagesNamed(ctx, client, name)
	switch {
	case err != nil:
		return glance.Image{}, err
	case len(found) == 0:
		return glance.Image{}, fmt.Errorf("Glance has no image %s that this project sees; `burano image upload FILE --name %s` uploads one", name, cli.ShellQuoted(name))
	case len(found) > 1:
		var ids []string
		for _, one := range found {
			ids = append(ids, one.ID)
		}
		return glance.Image{}, fmt.Errorf("%d images are called %s, and a deployment takes none of them by this name: rename or delete all but one of %s",
			len(found), name, strings.Join(ids, ", "))
	}
	return found[0], nil
}

// formInGlance reads the first bytes of the data only.
func formInGlance(ctx context.Context, client *gophercloud.ServiceClient, image glance.Image) (form, error) {
	if image.Status != glance.ImageStatusActive {
		return formUnknown, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	data, err := imagedata.Download(ctx, client, image.ID).Extract()
	if err != nil {
		return formUnknown, fmt.Errorf("read the beginning of image %s: %w", image.ID, err)
	}
	defer data.Close()
	begin := make([]byte, formLength)
	length, err := io.ReadFull(data, begin)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return formUnknown, fmt.Errorf("read the beginning of image %s: %w", image.ID, err)
	}
	return formOf(begin[:length]), nil
}

// lack is what an image has not as it should be, and what mends it. A grave one keeps nodes from coming up.
type lack struct {
	grave        bool
	what, remedy string
}

// imageLacks compares an image with the needs of a node.
func imageLacks(image glance.Image, kind form) []lack {
	var lacks []lack
	grave := func(what, remedy string) { lacks = append(lacks, lack{true, what, remedy}) }
	note := func(what, remedy string) { lacks = append(lacks, lack{false, what, remedy}) }
	set := func(option string) string { return "openstack image set " + option + " " + image.ID }
	property := func(name string) string {
		text, _ := image.Properties[name].(string)
		return text
	}

	switch image.Status {
	case glance.ImageStatusActive:
	case glance.ImageStatusDeactivated:
		grave("it is deactivated, so no server can be made from it", set("--activate"))
	default:
		grave(fmt.Sprintf("its status is %s: it has no data", image.Status), "upload it again: burano image upload FILE")
	}
	if image.ContainerFormat != "bare" {
		grave(fmt.Sprintf("its container format is %q", image.ContainerFormat), "upload it as bare: burano image upload FILE")
	}
	wanted := map[form]string{formTar: "raw", formQCOW2: "qcow2", formDisk: "raw"}
	switch {
	case image.Status != glance.ImageStatusActive:
	case kind == formUnknown:
		grave("its data is neither a qcow2 nor a disk with partitions nor a tar", "upload the node image: burano image upload FILE")
	case image.DiskFormat != wanted[kind]:
		grave(fmt.Sprintf("its data is %s, and its disk format says %s", wanted[kind], image.DiskFormat), "upload it again: burano image upload FILE")
	case kind == formTar:
		note("it is a tar, which only the local cloud boots", "for another cloud build the disk: make image-disk")
	}

	var info struct{ Title, Type string }
	switch text := property(cli.ImageProperty); {
	case text == "":
		note("it has no property "+cli.ImageProperty+", so forms do not offer it", set("--property "+cli.ImageProperty+"="+cli.ShellQuoted(imageMark)))
	case json.Unmarshal([]byte(text), &info) != nil || !strings.HasPrefix(info.Type, "linux"):
		note(fmt.Sprintf("its property %s is %s, so forms do not offer it for clusters", cli.ImageProperty, text), set("--property "+cli.ImageProperty+"="+cli.ShellQuoted(imageMark)))
	}
	if image.Hidden {
		note("it is hidden, so forms do not offer it", set("--unhidden"))
	}
	if property(digestProperty) == "" {
		note("Burano did not upload it, so whether a node is in it is not known", "upload it with: burano image upload FILE")
	}
	if property(openstack.KubernetesProperty) == "" {
		note("it does not say which Kubernetes it holds, so clusters cannot be upgraded to it",
			"upload it again with the manifest that was built with it beside it, or say what kubelet --version says in it: "+set("--property "+openstack.KubernetesProperty+"=v1.X.Y"))
	}
	if kind == formTar {
		return lacks
	}
	if architecture := property("architecture"); architecture != "" && architecture != "x86_64" {
		grave("its property architecture is "+architecture+", and the node image is x86_64", set("--property architecture=x86_64"))
	}
	if property("os_secure_boot") == "required" {
		grave("it demands Secure Boot, and its loader is not signed", set("--property os_secure_boot=disabled"))
	}
	if image.MinDiskGigabytes < leastDiskGB {
		note(fmt.Sprintf("it may be put on a disk of %d GB, and a node needs %d", image.MinDiskGigabytes, leastDiskGB), set(fmt.Sprintf("--min-disk %d", leastDiskGB)))
	}
	if image.MinRAMMegabytes < leastMemoryMB {
		note(fmt.Sprintf("it may be given %d MB of memory, and a node needs %d", image.MinRAMMegabytes, leastMemoryMB), set(fmt.Sprintf("--min-ram %d", leastMemoryMB)))
	}
	if property("hw_rng_model") == "" {
		note("servers get no random numbers from the hypervisor, so that keys may take time at the first boot", set("--property hw_rng_model=virtio"))
	}
	return lacks
}
