package clusters

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/stacks"
	"github.com/burano/burano/orchestrator/task"
)

// The gateways of a cluster may share an address: an io.murano.SharedIp, whose port the stack has, and which the ports of the gateways may use.

const (
	propertyVirtual   = "virtualAddress" // of a cluster
	methodSharedIPRef = "getSharedIpRef"
)

// virtualAddresses are the virtual addresses of gateways.
type virtualAddresses struct{ *Clusters }

func virtualAddressesOf(c *Clusters) virtualAddresses { return virtualAddresses{c} }

// prepareVirtual puts the shared address of a cluster into the template, and returns the further addresses that the ports of its gateways may use.
func (c virtualAddresses) prepareVirtual(ctx context.Context, interpreter *muranopl.Interpreter, cluster *muranopl.Object) ([]any, error) {
	shared := cluster.Object(propertyVirtual)
	if shared == nil {
		return nil, nil
	}
	if _, err := interpreter.Invoke(ctx, shared, task.MethodBeginDeploy, nil); err != nil {
		return nil, err
	}
	reference, err := interpreter.Invoke(ctx, shared, methodSharedIPRef, nil)
	return []any{reference}, err
}

// keepVirtual adapts the port of a node that else stays in the template as it is to the shared address: a gateway that stays may use it, and addresses
// that the template no longer has are removed.
func (c virtualAddresses) keepVirtual(ctx context.Context, node Member, virtual []any) error {
	own := c.Templates.Own()
	template, err := c.Templates.Template(ctx, own)
	if err != nil {
		return err
	}
	resources, _ := template["resources"].(map[string]any)
	name := node.Server.Prefix() + "port"
	port, _ := resources[name].(map[string]any)
	properties, _ := port["properties"].(map[string]any)
	pairs, guarded := properties["allowed_address_pairs"].([]any)
	if !guarded {
		return nil
	}
	wanted := map[string]any{} // addresses by the ports that have them
	if node.Role == nodes.Gateway && !node.Leaving {
		for _, reference := range virtual {
			wanted[referredPort(reference)] = reference
		}
	}
	var kept []any
	for _, one := range pairs {
		pair, _ := one.(map[string]any)
		of := referredPort(pair["ip_address"])
		if of == "" || resources[of] != nil {
			kept = append(kept, one)
			delete(wanted, of)
		}
	}
	if len(kept) == len(pairs) && len(wanted) == 0 {
		return nil
	}
	for _, reference := range wanted {
		kept = append(kept, map[string]any{"ip_address": reference})
	}
	port, properties = maps.Clone(port), maps.Clone(properties)
	properties["allowed_address_pairs"] = kept
	port["properties"] = properties
	c.Templates.Restore(own, name, port)
	return nil
}

// referredPort is the port whose address a template refers to; "" for a literal address.
func referredPort(address any) string {
	reference, _ := address.(map[string]any)
	path, _ := reference["get_attr"].([]any)
	if len(path) == 0 {
		return ""
	}
	return fmt.Sprint(path[0])
}

// checkVirtual finds the obstacles to a shared address of a cluster's gateways.
func (c virtualAddresses) checkVirtual(ctx context.Context, cluster *muranopl.Object) (problems []error, err error) {
	shared := cluster.Object(propertyVirtual)
	if shared == nil {
		return nil, nil
	}
	name := cluster.Text("name")
	for _, other := range c.Objects.Clusters() {
		if other != cluster && other.Object(propertyVirtual) == shared {
			problems = append(problems, fmt.Errorf("clusters %s and %s have the same virtualAddress: give each an io.murano.SharedIp of its own", name, other.Text("name")))
		}
	}
	if network := shared.Object("network"); network != nil && network != stacks.EnvironmentNetwork(c.Objects.Model(), "") {
		problems = append(problems, fmt.Errorf("the virtualAddress of cluster %s is in another network than its gateways: leave its network out, for that of the environment", name))
	}
	members, err := c.Clusters.Members(ctx, cluster)
	if err != nil {
		return nil, err
	}
	project, err := c.Runtime.Project(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range members {
		if one.Role != nodes.Gateway || one.Leaving {
			continue
		}
		if network, asked := nodePlacesOf(c.Clusters).wishedNetwork(one.Instance()); network != nil || one.place.Subnet != "" {
			problems = append(problems, fmt.Errorf("gateway %s of cluster %s stands in a network of its own (%s), and gateways with a virtualAddress all stand in that of the environment",
				one.Server.ModelName(), name, asked))
		}
	}
	err = eachImage(ctx, project, members, func(role nodes.Role) bool { return role == nodes.Gateway }, func(image openstack.NodeImage, of Member) {
		if image.Keepalived == "" {
			problems = append(problems, fmt.Errorf("image %s of gateway %s does not say that it has keepalived, which a virtualAddress needs: build a node image with this "+
				"release and upload it, or, where keepalived is in this one, say so (openstack image set --property %s=VERSION %s)",
				of.Instance().Text("image"), of.Server.ModelName(), openstack.KeepalivedProperty, image.ID))
		}
	})
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return problems, nil
	}
	lacking, err := c.withoutKeepalived(ctx, cluster)
	if err == nil && len(lacking) > 0 {
		problems = append(problems, fmt.Errorf("%s: made from an older image, without keepalived, which a virtualAddress needs: upgrade the cluster to the present image, or replace these "+
			"gateways, before", strings.Join(lacking, ", ")))
	}
	return problems, err
}

// withoutKeepalived are the gateways of a cluster that run and cannot share an address, where they do not share one already.
func (c virtualAddresses) withoutKeepalived(ctx context.Context, cluster *muranopl.Object) ([]string, error) {
	live, known, err := c.Clusters.Former(ctx, cluster)
	if err != nil || live == nil {
		return nil, err
	}
	defer live.Close()
	if known.Virtual.Address.IsValid() {
		return nil, nil
	}
	return live.WithoutKeepalived(ctx), nil
}
