package openstack

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/limits"
)

// MissingFor tells what the project's quota lacks for one server more of a flavor, which is named by its name or id: "0 of 10 instances
// are left". A flavor that is not found is left to Heat to complain of.
func (p *Project) MissingFor(ctx context.Context, flavor string) (missing []string, err error) {
	found, err := limits.Get(ctx, p.compute, limits.GetOpts{}).Extract()
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask Nova for the project's limits: %w", err)
	}
	need := flavors.Flavor{}
	pages, err := flavors.ListDetail(p.compute, flavors.ListOpts{AccessType: flavors.AllAccess}).AllPages(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask Nova for flavors: %w", err)
	}
	all, err := flavors.ExtractFlavors(pages)
	if err != nil {
		return nil, fmt.Errorf("ask Nova for flavors: %w", err)
	}
	for _, one := range all {
		if one.ID == flavor || one.Name == flavor {
			need = one
		}
	}
	for _, one := range []struct {
		what            string
		used, most, add int
	}{
		{"instances", found.Absolute.TotalInstancesUsed, found.Absolute.MaxTotalInstances, 1},
		{"cores", found.Absolute.TotalCoresUsed, found.Absolute.MaxTotalCores, need.VCPUs},
		{"MiB of memory", found.Absolute.TotalRAMUsed, found.Absolute.MaxTotalRAMSize, need.RAM},
	} {
		if one.most >= 0 && one.used+one.add > one.most { // -1 is no limit
			missing = append(missing, fmt.Sprintf("%d of %d %s are left", max(one.most-one.used, 0), one.most, one.what))
		}
	}
	return missing, nil
}
