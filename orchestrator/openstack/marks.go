package openstack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/projects"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
)

// imageInfo is the property of an image in which Murano stores the image's use in forms (https://docs.openstack.org/murano/).
const imageInfo = "murano_image_info"

// Mark makes forms offer an image.
type Mark struct {
	Title string `json:"title"`
	Type  string `json:"type"`
}

// MarkImage marks an image, so that forms offer it, with the caller's own token; nil removes the mark. A missing image (NotFound), and one
// that Glance does not let the caller change (Forbidden), are faults.
func (s *Service) MarkImage(ctx context.Context, caller identity.Caller, id string, mark *Mark) error {
	if err := identified("image", id); err != nil {
		return err
	}
	own, _, err := s.inCatalogOf(ctx, caller)
	if err != nil {
		return err
	}
	client, err := openstack.NewImageV2(own.ProviderClient, s.home.endpoint)
	if err != nil {
		return err
	}
	image, err := images.Get(ctx, client, id).Extract()
	if err != nil {
		return imageFault(id, err)
	}
	_, marked := image.Properties[imageInfo]
	change := images.UpdateImageProperty{Op: images.AddOp, Name: imageInfo}
	switch {
	case mark == nil && !marked:
		return nil
	case mark == nil:
		change.Op = images.RemoveOp
	default:
		text, err := json.Marshal(mark)
		if err != nil {
			return err
		}
		if change.Value = string(text); marked {
			change.Op = images.ReplaceOp
		}
	}
	_, err = images.Update(ctx, client, id, images.UpdateOpts{change}).Extract()
	return imageFault(id, err)
}

func imageFault(id string, err error) error {
	switch {
	case err == nil:
		return nil
	case gophercloud.ResponseCodeIs(err, http.StatusNotFound):
		return fault.New(fault.NotFound, "The project sees no image with id %s", id)
	case gophercloud.ResponseCodeIs(err, http.StatusForbidden):
		return fault.New(fault.Forbidden, "Glance does not let you change image %s: its owner or an administrator may", id)
	}
	return fmt.Errorf("mark image %s: %w", id, err)
}

// AllProjects lists the enabled projects of the cloud, by name, with the caller's own token. If Keystone does not let the caller list them, the error
// is a fault of kind Forbidden.
func (s *Service) AllProjects(ctx context.Context, caller identity.Caller) ([]identity.Project, error) {
	enabled := true
	pages, err := allPages(ctx, projects.List(s.as(caller.Token), projects.ListOpts{Enabled: &enabled}))
	if gophercloud.ResponseCodeIs(err, http.StatusForbidden) {
		return nil, fault.New(fault.Forbidden, "Keystone does not let you list projects: an administrator of the cloud may")
	}
	if err != nil {
		return nil, fmt.Errorf("ask Keystone for all projects: %w", err)
	}
	found, err := projects.ExtractProjects(pages)
	if err != nil {
		return nil, fmt.Errorf("read the list of projects: %w", err)
	}
	list := make([]identity.Project, len(found))
	for i, one := range found {
		list[i] = identity.Project{ID: one.ID, Name: one.Name, DomainID: one.DomainID}
	}
	return list, nil
}
