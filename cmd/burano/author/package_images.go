package author

import (
	"context"
	"fmt"
	"io"

	"github.com/gophercloud/gophercloud/v2"
	glance "github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// sayImages prints which images the packages need and whether Glance has them. By then, the packages are in the catalog, and can be deployed as soon as
// the images are there: nothing here is an error.
func sayImages(ctx context.Context, out io.Writer, connection *cli.Connection, packages []client.LocalPackage, finder client.Finder) {
	var service *gophercloud.ServiceClient
	var lost error // why Glance cannot be asked
	for _, one := range packages {
		images, problems := one.Package.Images()
		for _, problem := range problems {
			fmt.Fprintf(out, "%s: %s:%d:%d: %v\n", one.Name(), problem.File, problem.Line, problem.Column, problem)
		}
		for _, image := range images {
			if service == nil && lost == nil {
				service, lost = connection.Glance(ctx)
			}
			said, err := "", lost
			if err == nil {
				said, err = ofGlance(ctx, service, image, finder.ImageAddress(image))
			}
			if err != nil {
				said = fmt.Sprintf("whether Glance has it cannot be told: %v", err)
			}
			fmt.Fprintf(out, "%s: needs the image %s (%s, %s): %s\n", one.Name(), image.Name, image.DiskFormat, image.ContainerFormat, said)
		}
	}
}

// ofGlance describes the image that Glance has, found by name and formats as Murano's client does, and the next step.
func ofGlance(ctx context.Context, service *gophercloud.ServiceClient, image catalog.Image, address string) (string, error) {
	pages, err := glance.List(service, glance.ListOpts{Name: image.Name, DiskFormat: image.DiskFormat, ContainerFormat: image.ContainerFormat}).AllPages(ctx)
	if err != nil {
		return "", fmt.Errorf("list images: %w", err)
	}
	found, err := glance.ExtractImages(pages)
	if err != nil {
		return "", fmt.Errorf("list images: %w", err)
	}
	mark := "" // a note for the command
	if image.Info != "" {
		mark = " --property " + cli.ImageProperty + "=" + cli.ShellQuoted(image.Info)
	}
	if len(found) == 0 {
		said := "Glance does not have it"
		if address != "" {
			said += ", it is at " + address
		}
		return fmt.Sprintf("%s; openstack image create --disk-format %s --container-format %s%s --file FILE %s",
			said, cli.ShellQuoted(image.DiskFormat), cli.ShellQuoted(image.ContainerFormat), mark, cli.ShellQuoted(image.Name)), nil
	}
	if marked, _ := found[0].Properties[cli.ImageProperty].(string); marked == "" && mark != "" {
		return fmt.Sprintf("Glance has it (%s), but forms do not find it; openstack image set%s %s", found[0].ID, mark, found[0].ID), nil
	}
	return fmt.Sprintf("Glance has it (%s)", found[0].ID), nil
}
