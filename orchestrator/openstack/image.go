package openstack

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"

	"github.com/burano/burano/internal/fault"
)

// KubernetesProperty is the property of a node image with the version of its Kubernetes, such as v1.36.3.
const KubernetesProperty = "burano_kubernetes"

// KeepalivedProperty is the property of a node image with the version of its keepalived, such as 1:2.2.7-1+b2.
const KeepalivedProperty = "burano_keepalived"

// StorageProperty is the property of a node image with the version of its volumes' controllers, such as v13.0.0.
const StorageProperty = "burano_storage"

// CinderProperty is the property of a node image with the version of the controller that attaches volumes of Cinder, such as
// v4.12.0.
const CinderProperty = "burano_cinder"

// XFSProperty is the property of a node image with the version of its xfsprogs, such as 6.1.0-1. It is needed for storage classes of Cinder whose volumes are in the zones of their
// nodes.
const XFSProperty = "burano_xfs"

// NFSProperty is the property of a node image with the version of its nfs-common, such as 1:2.6.2-4+deb12u1. It is needed for storage classes of
// Manila.
const NFSProperty = "burano_nfs"

// RegistryProperty is the property of a node image with the version of its registry of container images, such as v3.1.2.
const RegistryProperty = "burano_registry"

// CalicoProperty is the property of a node image with the version of its Calico, such as v3.28.5, if it has all that
// BGP needs.
const CalicoProperty = "burano_calico"

// DockerProperty is the property of a node image with the version of its Docker, such as 20.10.24+dfsg1-1.
const DockerProperty = "burano_docker"

// CalicoDefinitionsProperty is the property of a node image with the version of the Calico whose kinds in Kubernetes it defines, such as v3.28.5.
const CalicoDefinitionsProperty = "burano_calico_definitions"

// NodeImage is an image with the properties that clusters need. A property that the image does not have is "".
type NodeImage struct {
	ID, Name   string
	Kubernetes string // its version, such as v1.36.3
	Keepalived string // its version
	Storage    string // the version of the volumes' controllers
	Cinder     string // the version of the controller that attaches volumes of Cinder
	XFS        string // the version of xfsprogs
	NFS        string // the version of nfs-common
	Registry   string // the version of the registry of container images
	Calico     string // its version, if the image has all that BGP needs
	Docker     string // its version
	// CalicoDefinitions is the version of the Calico whose kinds the image defines.
	CalicoDefinitions string
}

// Image finds an image by its id or its name. A missing image, or a name of several (Invalid), is a fault.
func (g Glance) Image(ctx context.Context, named string) (NodeImage, error) {
	client, err := g.client()
	if err != nil {
		return NodeImage{}, err
	}
	if uuid.Validate(named) == nil && identified("image", named) == nil { // Glance has no other ids
		image, err := images.Get(ctx, client, named).Extract()
		if err == nil {
			return nodeImage(*image), nil
		}
		if !gophercloud.ResponseCodeIs(err, http.StatusNotFound) && !gophercloud.ResponseCodeIs(err, http.StatusBadRequest) {
			return NodeImage{}, fmt.Errorf("ask Glance for image %s: %w", named, err)
		}
	}
	pages, err := allPages(ctx, images.List(client, images.ListOpts{Name: named, Status: images.ImageStatusActive}))
	if err != nil {
		return NodeImage{}, fmt.Errorf("ask Glance for image %s: %w", named, err)
	}
	found, err := images.ExtractImages(pages)
	switch {
	case err != nil:
		return NodeImage{}, fmt.Errorf("ask Glance for image %s: %w", named, err)
	case len(found) == 0:
		return NodeImage{}, fault.New(fault.Invalid, "The project sees no image %s", named)
	case len(found) > 1:
		ids := make([]string, len(found))
		for i, one := range found {
			ids[i] = one.ID
		}
		return NodeImage{}, fault.New(fault.Invalid, "%d images are called %s: name one of them by its id: %s", len(found), named, strings.Join(ids, ", "))
	}
	return nodeImage(found[0]), nil
}

func nodeImage(image images.Image) NodeImage {
	of := func(property string) string {
		text, _ := image.Properties[property].(string)
		return text
	}
	return NodeImage{ID: image.ID, Name: image.Name, Kubernetes: of(KubernetesProperty), Keepalived: of(KeepalivedProperty), Storage: of(StorageProperty),
		Cinder: of(CinderProperty), XFS: of(XFSProperty), NFS: of(NFSProperty), Registry: of(RegistryProperty), Calico: of(CalicoProperty),
		Docker: of(DockerProperty), CalicoDefinitions: of(CalicoDefinitionsProperty)}
}

// ImageOf is the id of the image that a server was made from; "" where Nova does not return it, or does not know the
// server.
func (n Nova) ImageOf(ctx context.Context, serverID string) (string, error) {
	state, server, err := n.server(ctx, serverID)
	if err != nil || state.Status == Gone {
		return "", err
	}
	id, _ := server.Image["id"].(string)
	return id, nil
}
