package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"

	"github.com/burano/burano/web/client"
)

// ImageProperty is the property of an image in Glance by which Murano's forms find it.
const ImageProperty = "murano_image_info"

// Glance returns a client of the image service.
func (c *Connection) Glance(ctx context.Context) (*gophercloud.ServiceClient, error) {
	provider, endpoint, err := client.SignIn(ctx, c.Cloud)
	if err != nil {
		return nil, err
	}
	service, err := openstack.NewImageV2(provider, endpoint)
	if err != nil {
		return nil, fmt.Errorf("find Glance in the service catalog: %w", err)
	}
	return service, nil
}

// ShellQuoted writes a text so that a shell takes it as one word.
func ShellQuoted(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:", r)
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
