package localcloud

import (
	"context"

	"github.com/burano/burano/test/localcloud/glance"
	"github.com/burano/burano/test/localcloud/heat"
	"github.com/burano/burano/test/localcloud/hypervisor"
	"github.com/burano/burano/test/localcloud/nova"
)

// disks are Glance's images as Cinder wants them.
type disks struct {
	*glance.Service
	machines *hypervisor.Hypervisor
}

func (d disks) Write(ctx context.Context, imageID, file string) error {
	return d.machines.WriteImage(ctx, imageID, file)
}

// compute is Nova as Heat wants it.
type compute struct{ nova *nova.Service }

func (c compute) CheckImage(ctx context.Context, projectID, ref string) error {
	return c.nova.CheckImage(ctx, projectID, ref)
}

func (c compute) CheckFlavor(_ context.Context, _, ref string) error { return c.nova.CheckFlavor(ref) }

func (c compute) CreateServer(ctx context.Context, projectID string, request heat.ServerRequest) (heat.Server, error) {
	var volumes []nova.VolumeAttachment
	for _, volume := range request.Volumes {
		volumes = append(volumes, nova.VolumeAttachment{VolumeID: volume.ID, Device: volume.Device, DeleteOnTermination: volume.Delete, Boots: volume.Boots})
	}
	server, err := c.nova.Create(ctx, projectID, nova.CreateServer{
		Name: request.Name, FlavorID: request.Flavor, ImageID: request.Image, KeyName: request.KeyName, UserData: request.UserData,
		Metadata: request.Metadata, Ports: request.Ports, Networks: request.Networks, SecurityGroups: request.SecurityGroups,
		AvailabilityZone: request.AvailabilityZone, GroupID: request.Group, Volumes: volumes,
	})
	if err != nil {
		return heat.Server{}, err
	}
	return c.describe(ctx, server), nil
}

func (c compute) GetServer(ctx context.Context, projectID, id string) (heat.Server, error) {
	server, err := c.nova.Get(ctx, projectID, id)
	if err != nil {
		return heat.Server{}, err
	}
	return c.describe(ctx, server), nil
}

func (c compute) describe(ctx context.Context, server nova.Server) heat.Server {
	return heat.Server{ID: server.ID, Name: server.Name, Status: server.Status, Fault: server.Fault, Show: c.nova.Show(ctx, server)}
}

func (c compute) FindServers(ctx context.Context, projectID, name string) (ids []string, err error) {
	for _, server := range c.nova.Servers(ctx, projectID) {
		if server.Name == name {
			ids = append(ids, server.ID)
		}
	}
	return ids, nil
}

func (c compute) RenameServer(ctx context.Context, projectID, id, name string, metadata map[string]string) error {
	return c.nova.Rename(ctx, projectID, id, name, metadata)
}

func (c compute) RebuildServer(ctx context.Context, projectID, id, image string) error {
	return c.nova.Rebuild(ctx, projectID, id, image)
}

func (c compute) ResizeServer(ctx context.Context, projectID, id, flavor string) error {
	return c.nova.Resize(ctx, projectID, id, flavor)
}

func (c compute) ReplugServer(ctx context.Context, projectID, id string, ports, networks []string) error {
	return c.nova.Replug(ctx, projectID, id, ports, networks)
}

func (c compute) AttachVolume(ctx context.Context, projectID, serverID, volumeID, device string) error {
	_, err := c.nova.AttachVolume(ctx, projectID, serverID, nova.VolumeAttachment{VolumeID: volumeID, Device: device})
	return err
}

func (c compute) DetachVolume(ctx context.Context, projectID, serverID, volumeID string) error {
	return c.nova.DetachVolume(ctx, projectID, serverID, volumeID)
}

func (c compute) DeleteServer(ctx context.Context, projectID, id string) error {
	return c.nova.Delete(ctx, projectID, id)
}

func (c compute) CreateKeyPair(ctx context.Context, projectID, name, publicKey string) (heat.KeyPair, error) {
	made, err := c.nova.CreateKeypair(ctx, projectID, name, publicKey)
	if err != nil {
		return heat.KeyPair{}, err
	}
	return heat.KeyPair{Name: made.Name, PublicKey: made.PublicKey, PrivateKey: made.PrivateKey}, nil
}

func (c compute) DeleteKeyPair(ctx context.Context, _, name string) error {
	return c.nova.DeleteKeypair(ctx, name)
}

func (c compute) CreateServerGroup(ctx context.Context, projectID, id, name, policy string) error {
	_, err := c.nova.CreateServerGroup(ctx, projectID, id, name, policy)
	return err
}

func (c compute) DeleteServerGroup(ctx context.Context, projectID, id string) error {
	return c.nova.DeleteServerGroup(ctx, projectID, id)
}
