package main

import (
	"context"
	"fmt"
	"os"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/external"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/provider"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"
)

func seedCloud(ctx context.Context, client *gophercloud.ProviderClient) error {
	for _, step := range []func(context.Context, *gophercloud.ProviderClient) error{externalNetwork, flavor, guest, volumeTypes, shareTypes} {
		if err := step(ctx, client); err != nil {
			return err
		}
	}
	return nil
}

// externalNetwork makes the network of floating IPs; the box has its first address.
func externalNetwork(ctx context.Context, p *gophercloud.ProviderClient) error {
	client, err := openstack.NewNetworkV2(p, gophercloud.EndpointOpts{Region: region})
	if err != nil {
		return fmt.Errorf("find Neutron: %w", err)
	}
	known, err := named(ctx, networks.List(client, networks.ListOpts{}), networks.ExtractNetworks, func(n networks.Network) (string, string) { return n.Name, n.ID })
	if err != nil {
		return err
	}
	yes := true
	id, err := findOrMake("network", "public", known, func() (string, error) {
		made, err := networks.Create(ctx, client, provider.CreateOptsExt{
			CreateOptsBuilder: external.CreateOptsExt{CreateOptsBuilder: networks.CreateOpts{Name: "public"}, External: &yes},
			Segments:          []provider.Segment{{NetworkType: "flat", PhysicalNetwork: "public"}},
		}).Extract()
		if err != nil {
			return "", err
		}
		return made.ID, nil
	})
	if err != nil {
		return err
	}
	known, err = named(ctx, subnets.List(client, subnets.ListOpts{}), subnets.ExtractSubnets, func(s subnets.Subnet) (string, string) { return s.Name, s.ID })
	if err != nil {
		return err
	}
	no, gateway := false, "172.24.4.1"
	_, err = findOrMake("subnet", "public", known, func() (string, error) {
		made, err := subnets.Create(ctx, client, subnets.CreateOpts{
			NetworkID: id, Name: "public", IPVersion: gophercloud.IPv4, CIDR: "172.24.4.0/24", GatewayIP: &gateway, EnableDHCP: &no,
			AllocationPools: []subnets.AllocationPool{{Start: "172.24.4.10", End: "172.24.4.250"}},
		}).Extract()
		if err != nil {
			return "", err
		}
		return made.ID, nil
	})
	return err
}

func flavor(ctx context.Context, p *gophercloud.ProviderClient) error {
	client, err := openstack.NewComputeV2(p, gophercloud.EndpointOpts{Region: region})
	if err != nil {
		return fmt.Errorf("find Nova: %w", err)
	}
	known, err := named(ctx, flavors.ListDetail(client, nil), flavors.ExtractFlavors, func(f flavors.Flavor) (string, string) { return f.Name, f.ID })
	if err != nil {
		return err
	}
	disk := 1
	_, err = findOrMake("flavor", "m1.small", known, func() (string, error) {
		made, err := flavors.Create(ctx, client, flavors.CreateOpts{Name: "m1.small", RAM: 192, VCPUs: 1, Disk: &disk}).Extract()
		if err != nil {
			return "", err
		}
		return made.ID, nil
	})
	return err
}

// guest uploads the tiny guest: a kernel, its initial file system, and a disk that boots both.
func guest(ctx context.Context, p *gophercloud.ProviderClient) error {
	client, err := openstack.NewImageV2(p, gophercloud.EndpointOpts{Region: region})
	if err != nil {
		return fmt.Errorf("find Glance: %w", err)
	}
	known, err := named(ctx, images.List(client, images.ListOpts{}), images.ExtractImages, func(i images.Image) (string, string) { return i.Name, i.ID })
	if err != nil {
		return err
	}
	image := func(name, format, file string, properties map[string]string) (string, error) {
		return findOrMake("image", name, known, func() (string, error) { return upload(ctx, client, name, format, file, properties) })
	}
	kernel, err := image("tiny-kernel", "aki", "vmlinuz", nil)
	if err != nil {
		return err
	}
	initrd, err := image("tiny-initrd", "ari", "initrd", nil)
	if err != nil {
		return err
	}
	_, err = image("tiny", "raw", "disk", map[string]string{
		"kernel_id": kernel, "ramdisk_id": initrd, "hw_rng_model": "virtio", "os_command_line": "console=ttyS0 rdinit=/init",
	})
	return err
}

func upload(ctx context.Context, client *gophercloud.ServiceClient, name, format, file string, properties map[string]string) (string, error) {
	content, err := os.Open(state + "/guest/" + file)
	if err != nil {
		return "", err
	}
	defer func() { _ = content.Close() }()
	public, container := images.ImageVisibilityPublic, format
	if format == "raw" {
		container = "bare"
	}
	made, err := images.Create(ctx, client, images.CreateOpts{
		Name: name, DiskFormat: format, ContainerFormat: container, Visibility: &public, Properties: properties,
	}).Extract()
	if err != nil {
		return "", err
	}
	return made.ID, imagedata.Upload(ctx, client, made.ID, content).ExtractErr()
}
