package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"
	"github.com/gophercloud/gophercloud/v2/openstack/utils"
	"github.com/gophercloud/gophercloud/v2/pagination"

	driver "github.com/burano/burano/orchestrator/openstack"
)

// service is one of the cloud's that Burano uses.
type service struct {
	name   string
	open   func(*gophercloud.ProviderClient, gophercloud.EndpointOpts) (*gophercloud.ServiceClient, error)
	list   func(*gophercloud.ServiceClient) pagination.Pager // a small request that every user may send
	absent func(driver.Orchestration) (State, string)        // the meaning of a catalog without it
}

func needed(driver.Orchestration) (State, string) {
	return Failed, "without it nothing can be deployed"
}

func usedServices() []service {
	return []service{
		{"Nova", openstack.NewComputeV2, func(c *gophercloud.ServiceClient) pagination.Pager {
			return flavors.ListDetail(c, flavors.ListOpts{Limit: 1})
		}, needed},
		{"Neutron", openstack.NewNetworkV2, func(c *gophercloud.ServiceClient) pagination.Pager {
			return networks.List(c, networks.ListOpts{Limit: 1})
		}, needed},
		{"Glance", openstack.NewImageV2, func(c *gophercloud.ServiceClient) pagination.Pager { return images.List(c, images.ListOpts{Limit: 1}) }, needed},
		{"Heat", openstack.NewOrchestrationV1, func(c *gophercloud.ServiceClient) pagination.Pager { return stacks.List(c, stacks.ListOpts{Limit: 1}) },
			func(wanted driver.Orchestration) (State, string) {
				if wanted == driver.Heat {
					return Failed, "the setting orchestration demands it"
				}
				return OK, "Burano makes stacks itself"
			}},
		{"Cinder", openstack.NewBlockStorageV3, func(c *gophercloud.ServiceClient) pagination.Pager {
			return volumes.List(c, volumes.ListOpts{Limit: 1})
		},
			func(driver.Orchestration) (State, string) { return Warning, "servers and clusters get no volumes" }},
	}
}

func isMissing(err error) bool {
	var missing *gophercloud.ErrEndpointNotFound
	return errors.As(err, &missing)
}

// services asks each service for something. Without Nova, Neutron or Glance there is nothing more to be looked at.
func (e *examination) services(ctx context.Context) bool {
	goOn := true
	for _, one := range usedServices() {
		client, err := one.open(e.provider, e.endpoint)
		if isMissing(err) {
			state, meaning := one.absent(e.Orchestration)
			remedy := ""
			if state != OK {
				remedy = fmt.Sprintf("have %s in the service catalog of region %q, or name another region (region_name, OS_REGION_NAME)", one.name, e.endpoint.Region)
			}
			e.add(one.name, state, remedy, "the service catalog has none: %s", meaning)
			goOn = goOn && state != Failed
			continue
		}
		if err == nil {
			err = one.list(client).EachPage(ctx, func(context.Context, pagination.Page) (bool, error) { return false, nil })
		}
		if err != nil {
			e.add(one.name, Failed, "see the log of the service; the address in the service catalog must be one that this machine reaches", "it does not answer as it should: %s", err)
			goOn = false
			continue
		}
		e.add(one.name, OK, "", "%s%s", strings.TrimSuffix(client.Endpoint, "/"), versionOf(ctx, client))
	}
	return goOn
}

// versionOf is the highest version of a service; "" where it names none.
func versionOf(ctx context.Context, client *gophercloud.ServiceClient) string {
	base, err := utils.BaseEndpoint(client.Endpoint)
	if err != nil {
		return ""
	}
	known, err := utils.GetServiceVersions(ctx, client.ProviderClient, base, true)
	if err != nil || len(known) == 0 {
		return ""
	}
	newest := known[0]
	if newest.MaxMajor > 0 {
		return fmt.Sprintf(", API to %d.%d", newest.MaxMajor, newest.MaxMinor)
	}
	return fmt.Sprintf(", API %d.%d", newest.Major, newest.Minor)
}

// catalog looks whether clients find Burano.
func (e *examination) catalog(context.Context) bool {
	endpoint := e.endpoint
	endpoint.ApplyDefaults("application-catalog")
	if url, err := e.provider.EndpointLocator(endpoint); err != nil || url == "" {
		e.add("service catalog", Warning, "`burano setup --url ADDRESS`, run as an administrator", "it has no application-catalog, so clients do not find this server by themselves")
	} else {
		e.add("service catalog", OK, "", "clients find Burano at %s", url)
	}
	return true
}
