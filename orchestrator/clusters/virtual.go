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

// The gateways of a cluster may share an address, and its masters another one: an io.murano.SharedIp each, whose port the stack has, and which the ports of the nodes may
// use.

const (
	propertyVirtual    = "virtualAddress" // of a cluster
	propertyAPIAddress = "apiAddress"
	methodSharedIPRef  = "getSharedIpRef"
)

// sharing is an address that the nodes of a role share.
type sharing struct {
	property string
	role     nodes.Role
	shared   *muranopl.Object // io.murano.SharedIp
}

// of is the address of its role.
func (s sharing) of(gateways, masters nodes.VirtualAddress) nodes.VirtualAddress {
	if s.role == nodes.Master {
		return masters
	}
	return gateways
}

// sharings are the shared addresses that a cluster of the model has.
func sharings(cluster *muranopl.Object) (list []sharing) {
	for _, one := range []sharing{{propertyAPIAddress, nodes.Master, nil}, {propertyVirtual, nodes.Gateway, nil}} {
		if one.role == nodes.Master && task.OnlyGateways(cluster) {
			continue
		}
		if one.shared = cluster.Object(one.property); one.shared != nil {
			list = append(list, one)
		}
	}
	return list
}

// virtualAddresses are the addresses that nodes share.
type virtualAddresses struct{ *Clusters }

func virtualAddressesOf(c *Clusters) virtualAddresses { return virtualAddresses{c} }

// prepareVirtual puts the shared addresses of a cluster into the template, and returns the further addresses that the ports of its nodes may use, by role.
func (c virtualAddresses) prepareVirtual(ctx context.Context, interpreter *muranopl.Interpreter, cluster *muranopl.Object) (map[nodes.Role][]any, error) {
	allowed := map[nodes.Role][]any{}
	for _, one := range sharings(cluster) {
		if _, err := interpreter.Invoke(ctx, one.shared, task.MethodBeginDeploy, nil); err != nil {
			return nil, err
		}
		reference, err := interpreter.Invoke(ctx, one.shared, methodSharedIPRef, nil)
		if err != nil {
			return nil, err
		}
		allowed[one.role] = append(allowed[one.role], reference)
	}
	return allowed, nil
}

// readVirtual reads the shared addresses from the stack that was pushed last.
func (c virtualAddresses) readVirtual(ctx context.Context, interpreter *muranopl.Interpreter, cluster *muranopl.Object) error {
	for _, one := range sharings(cluster) {
		if _, err := interpreter.Invoke(ctx, one.shared, task.MethodEndDeploy, nil); err != nil {
			return err
		}
		if now := task.Desired(cluster); !one.of(now.Virtual, now.APIAddress).Address.IsValid() {
			return fmt.Errorf("the stack does not say which address the %ss of cluster %s share", one.role, cluster.Text("name"))
		}
	}
	return nil
}

// keepVirtual adapts the port of a node that else stays in the template as it is to the shared address: a node that stays may use it, and addresses
// that the template no longer has are removed.
func (c virtualAddresses) keepVirtual(ctx context.Context, node Member, virtual map[nodes.Role][]any) error {
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
	if !node.Leaving {
		for _, reference := range virtual[node.Role] {
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

// checkVirtual finds the obstacles to the shared addresses of a cluster.
func (c virtualAddresses) checkVirtual(ctx context.Context, cluster *muranopl.Object) (problems []error, err error) {
	all := sharings(cluster)
	if len(all) == 0 {
		return nil, nil
	}
	members, err := c.Clusters.Members(ctx, cluster)
	if err != nil {
		return nil, err
	}
	project, err := c.Runtime.Project(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		problems = append(problems, c.checkSharing(cluster, one, members)...)
		err = eachImage(ctx, project, members, func(role nodes.Role) bool { return role == one.role }, func(image openstack.NodeImage, of Member) {
			if image.Keepalived == "" {
				problems = append(problems, fmt.Errorf("image %s of %s %s does not say that it has keepalived, which %s needs: build a node image with this "+
					"release and upload it, or, where keepalived is in this one, say so (openstack image set --property %s=VERSION %s)",
					of.Instance().Text("image"), of.Role, of.Server.ModelName(), withArticle(one.property), openstack.KeepalivedProperty, image.ID))
			}
		})
		if err != nil {
			return nil, err
		}
	}
	if len(problems) > 0 {
		return problems, nil
	}
	for _, one := range all {
		lacking, err := c.withoutKeepalived(ctx, cluster, one)
		if err != nil {
			return problems, err
		}
		if len(lacking) > 0 {
			problems = append(problems, fmt.Errorf("%s: made from an older image, without keepalived, which %s needs: upgrade the cluster to the present image, or replace these "+
				"%ss, before", strings.Join(lacking, ", "), withArticle(one.property), one.role))
		}
	}
	return problems, nil
}

// withArticle is a property as a noun.
func withArticle(property string) string {
	if strings.HasPrefix(property, "a") {
		return "an " + property
	}
	return "a " + property
}

// checkSharing finds the mistakes in the model about one shared address.
func (c virtualAddresses) checkSharing(cluster *muranopl.Object, one sharing, members []Member) (problems []error) {
	name := cluster.Text("name")
	for _, other := range c.Objects.Clusters() {
		for _, another := range sharings(other) {
			switch {
			case another.shared != one.shared:
			case other != cluster:
				problems = append(problems, fmt.Errorf("clusters %s and %s have the same %s: give each an io.murano.SharedIp of its own", name, other.Text("name"), one.property))
			case another.property != one.property && one.role == nodes.Master:
				problems = append(problems, fmt.Errorf("%s and %s of cluster %s are the same address: give each an io.murano.SharedIp of its own", one.property, another.property, name))
			}
		}
	}
	if network := one.shared.Object("network"); network != nil && network != stacks.EnvironmentNetwork(c.Objects.Model(), "") {
		problems = append(problems, fmt.Errorf("the %s of cluster %s is in another network than its %ss: leave its network out, for that of the environment", one.property, name, one.role))
	}
	for _, member := range members {
		if member.Role != one.role || member.Leaving {
			continue
		}
		if network, asked := nodePlacesOf(c.Clusters).wishedNetwork(member.Instance()); network != nil || member.place.Subnet != "" {
			problems = append(problems, fmt.Errorf("%s %s of cluster %s stands in a network of its own (%s), and %ss with %s all stand in that of the environment",
				one.role, member.Server.ModelName(), name, asked, one.role, withArticle(one.property)))
		}
	}
	return problems
}

// withoutKeepalived are the nodes that run and cannot share their address, where they do not share one already.
func (c virtualAddresses) withoutKeepalived(ctx context.Context, cluster *muranopl.Object, one sharing) ([]string, error) {
	live, known, err := c.Clusters.Former(ctx, cluster)
	if err != nil || live == nil {
		return nil, err
	}
	defer live.Close()
	if one.of(known.Virtual, known.APIAddress).Address.IsValid() {
		return nil, nil
	}
	return live.WithoutKeepalived(ctx, one.role), nil
}
