package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/burano/burano/orchestrator/openstack"
)

// choices lists the user's choices; a failed request becomes a line.
func choices[T any](ctx context.Context, e *examination, check, kind string) ([]T, bool) {
	list, err := e.service.Choices(ctx, e.caller, kind, e.endpoint.Region)
	if err != nil {
		e.add(check, Failed, "see the log of the service", "%s", err)
		return nil, false
	}
	return list.([]T), true
}

// external looks for networks that floating IPs come from.
func (e *examination) external(ctx context.Context) bool {
	list, ok := choices[openstack.NetworkChoice](ctx, e, "external network", "networks")
	if !ok {
		return true
	}
	var names []string
	named := false
	for _, one := range list {
		if one.External {
			names = append(names, one.Name)
			named = named || e.ExternalNetwork == one.Name || e.ExternalNetwork == one.ID
		}
	}
	all := strings.Join(names, ", ")
	switch {
	case len(names) == 0:
		e.add("external network", Failed, "openstack network create --external … and a subnet of it; or have environments use a network that is there (ExistingNeutronNetwork)",
			"the project sees none, so servers get no floating IPs and networks no way out")
	case e.ExternalNetwork != "" && !named:
		e.add("external network", Failed, "name one of them in the setting external-network", "there is no %s, which the setting names: there are %s", e.ExternalNetwork, all)
	case e.ExternalNetwork == "" && len(names) > 1:
		e.add("external network", Warning, "name one of them in the setting external-network", "there are several (%s), and the cloud's first is taken", all)
	default:
		e.add("external network", OK, "", "%s", all)
	}
	return true
}

// The least size of a cluster's node, as the form of a cluster offers flavors.
const (
	nodeCPUs = 1
	nodeRAM  = 1024 // MiB
	nodeDisk = 10   // GiB
)

func (e *examination) flavors(ctx context.Context) bool {
	list, ok := choices[openstack.FlavorChoice](ctx, e, "flavors", "flavors")
	if !ok {
		return true
	}
	var fit []string
	for _, one := range list {
		if one.CPUs >= nodeCPUs && one.RAM >= nodeRAM && one.Disk >= nodeDisk {
			fit = append(fit, one.Name)
		}
	}
	least := fmt.Sprintf("%d vCPU, %d MiB of memory and %d GiB of disk", nodeCPUs, nodeRAM, nodeDisk)
	if len(fit) == 0 {
		e.add("flavors", Failed, "openstack flavor create --vcpus 2 --ram 4096 --disk 20 burano.node", "none of %d fits a node of a cluster, which takes %s", len(list), least)
		return true
	}
	e.add("flavors", OK, "", "%d of %d fit a node of a cluster: %s", len(fit), len(list), strings.Join(fit, ", "))
	return true
}

// nodeType is how the form of a cluster finds images.
const nodeType = "linux.kubernetes"

func (e *examination) images(ctx context.Context) bool {
	list, ok := choices[openstack.ImageChoice](ctx, e, "node image", "images")
	if !ok {
		return true
	}
	list = slices.DeleteFunc(list, func(one openstack.ImageChoice) bool { return one.Type != nodeType })
	if len(list) == 0 {
		e.add("node image", Failed, "build it (make image-disk) and upload it: burano image upload FILE --public, run as an administrator; or mark one that is there: burano image mark IMAGE-ID --type "+nodeType,
			"Glance has no image that is marked as a node of clusters")
		return true
	}
	for _, one := range list {
		lacks, err := e.Image(ctx, e.provider, e.endpoint, one.ID)
		if err != nil {
			e.add("node image", Failed, "burano image check "+one.ID, "%s (%s) cannot be looked at: %s", one.Name, one.ID, err)
			continue
		}
		for _, lack := range lacks {
			e.add("node image", lack.State, lack.Remedy, "%s (%s): %s", one.Name, one.ID, lack.Text)
		}
		if !slices.ContainsFunc(lacks, func(l Line) bool { return l.State == Failed }) {
			e.add("node image", OK, "", "%s (%s)", one.Name, one.ID)
		}
	}
	return true
}

// smallest is the share of the smallest cluster in a project's quotas: a master, a minion and a gateway, of the smallest flavor.
var smallest = []struct {
	resource, name string
	need           int
}{
	{"instances", "instances", 3}, {"cores", "cores", 3 * nodeCPUs}, {"ram", "memory (MiB)", 3 * nodeRAM}, {"floating_ips", "floating IPs", 1}, {"networks", "networks", 1},
	{"ports", "ports", 5}, {"security_groups", "security groups", 1},
}

// quota checks the room in the user's project. The service user's project has no deployments.
func (e *examination) quota(ctx context.Context) bool {
	if e.User == nil {
		return true
	}
	list, ok := choices[openstack.QuotaChoice](ctx, e, "quota", "quota")
	if !ok {
		return true
	}
	enough := true
	for _, part := range smallest {
		for _, quota := range list {
			if left := max(quota.Limit-quota.Used, 0); quota.Resource == part.resource && quota.Limit >= 0 && left < part.need {
				enough = false
				e.add("quota", Failed, fmt.Sprintf("delete what is not needed any more, or raise it: openstack quota set %s --%s N", e.caller.ProjectName, strings.ReplaceAll(part.resource, "_", "-")),
					"project %s has %d of %d %s left, and the smallest cluster takes %d", e.caller.ProjectName, left, quota.Limit, part.name, part.need)
			}
		}
	}
	if enough {
		e.add("quota", OK, "", "project %s has room for a cluster of three nodes", e.caller.ProjectName)
	}
	return true
}
