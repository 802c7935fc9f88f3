package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	glance "github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/web/client"
)

// imageProperty is the property of an image in Glance by which Murano's forms find it.
const imageProperty = "murano_image_info"

// sayImages prints which images the packages need and whether Glance has them. By then, the packages are in the catalog, and can be deployed as soon as
// the images are there: nothing here is an error.
func sayImages(ctx context.Context, out io.Writer, connection *connection, packages []client.LocalPackage, finder client.Finder) {
	var service *gophercloud.ServiceClient
	var lost error // why Glance cannot be asked
	for _, one := range packages {
		images, problems := one.Package.Images()
		for _, problem := range problems {
			fmt.Fprintf(out, "%s: %s:%d:%d: %v\n", one.Name(), problem.File, problem.Line, problem.Column, problem)
		}
		for _, image := range images {
			if service == nil && lost == nil {
				service, lost = connection.glance(ctx)
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

// glance returns a client of the image service.
func (c *connection) glance(ctx context.Context) (*gophercloud.ServiceClient, error) {
	provider, endpoint, err := client.SignIn(ctx, c.cloud)
	if err != nil {
		return nil, err
	}
	service, err := openstack.NewImageV2(provider, endpoint)
	if err != nil {
		return nil, fmt.Errorf("find Glance in the service catalog: %w", err)
	}
	return service, nil
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
		mark = " --property " + imageProperty + "=" + shellQuoted(image.Info)
	}
	if len(found) == 0 {
		said := "Glance does not have it"
		if address != "" {
			said += ", it is at " + address
		}
		return fmt.Sprintf("%s; openstack image create --disk-format %s --container-format %s%s --file FILE %s",
			said, shellQuoted(image.DiskFormat), shellQuoted(image.ContainerFormat), mark, shellQuoted(image.Name)), nil
	}
	if marked, _ := found[0].Properties[imageProperty].(string); marked == "" && mark != "" {
		return fmt.Sprintf("Glance has it (%s), but forms do not find it; openstack image set%s %s", found[0].ID, mark, found[0].ID), nil
	}
	return fmt.Sprintf("Glance has it (%s)", found[0].ID), nil
}

// shellQuoted writes a text so that a shell takes it as one word.
func shellQuoted(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:", r)
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
