package native

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/openstack"
)

const (
	// attributeCIDR keeps the subnet that was chosen for the environment's network.
	attributeCIDR = "subnetCidr"
	// attributeStack says that the environment has, or may have, a stack.
	attributeStack = "stack"
	// ownNetwork is the resource of the environment's own network.
	ownNetwork = "network"
)

// networkResources are the resources of the environment's own network, as io.murano.resources.NeutronNetwork calls them.
var networkResources = []string{ownNetwork, "subnet", "router", "uplink"}

// stack is the environment's Heat stack as this task knows it.
type stack struct {
	mutex   sync.Mutex
	applied *openstack.Content
	state   openstack.Stack
	// launched says of the servers that were looked at when Nova set them up last.
	launched map[string]string
}

// stackName is the name of an environment's stack: always the same, so that a stack whose creation was not heard of is found again.
func stackName(environment string) string { return "burano-" + environment }

// servers brings the stack to what the model wants, with all servers of the change in one update, and returns what it tells. The
// stack holds what code in MuranoPL wants and the servers of clusters. The addresses of these are written to their objects.
func (t *task) servers(ctx context.Context, interpreter *muranopl.Interpreter) (openstack.Stack, error) {
	members := t.clusterServers()
	own := t.stackNamed(stackName(t.EnvironmentID()))
	var network *muranopl.Object
	var cidr netip.Prefix
	if len(members) > 0 {
		var err error
		if network, cidr, err = t.joinNetwork(ctx, interpreter); err != nil {
			return openstack.Stack{}, err
		}
	}
	state, err := t.apply(ctx, own, members, cidr)
	if err == nil && network != nil {
		_, err = interpreter.Invoke(ctx, network, "endDeploy", nil)
	}
	return state, err
}

// apply makes the stack what code and these servers of clusters want.
func (t *task) apply(ctx context.Context, own *heatStack, members []clusterServer, cidr netip.Prefix) (openstack.Stack, error) {
	t.stack.mutex.Lock()
	defer t.stack.mutex.Unlock()
	project, err := t.Project(ctx)
	if err != nil {
		return openstack.Stack{}, err
	}
	// Servers that are not in the template any more go with the update.
	err = each(t.all(classCluster), func(cluster *muranopl.Object) error { return t.shrink(ctx, cluster, cidr) })
	if err != nil {
		return openstack.Stack{}, err
	}
	template, instances, err := t.template(ctx, project, own, members, cidr)
	if err != nil {
		return openstack.Stack{}, err
	}
	if t.stack.applied != nil && reflect.DeepEqual(*t.stack.applied, template) {
		return t.stack.state, nil
	}
	root := t.Model()
	err = t.Step(ctx, root, "servers", func(ctx context.Context) error {
		if len(instances) > 0 {
			t.inform(ctx, root, "Making servers: stack %s with %d servers", own.name, len(instances))
		}
		limited, cancel := t.patient(ctx)
		defer cancel()
		// Noted first: what may be there is looked for when it is to be deleted.
		if err := t.SetAttribute(ctx, root, attributeStack, true); err != nil {
			return err
		}
		if t.stack.state, err = project.ApplyStack(limited, own.name, template); err != nil {
			return err
		}
		return t.mend(limited, project, template, instances)
	})
	if err != nil {
		return openstack.Stack{}, err
	}
	own.tell(t.stack.state.Outputs)
	for _, member := range members {
		addresses, ok := t.stack.state.Addresses(member.instance.ID())
		if !ok {
			return openstack.Stack{}, fmt.Errorf("the stack tells no address of server %s", member.instance.Text("name"))
		}
		if err := noteAddresses(member.instance, addresses); err != nil {
			return openstack.Stack{}, err
		}
	}
	for _, cluster := range t.all(classCluster) {
		for _, p := range []pool{minions, gateways} {
			for _, node := range cluster.Objects(p.list)[len(p.active(cluster)):] {
				if err := forgetAddresses(node.Object("instance")); err != nil {
					return openstack.Stack{}, err
				}
			}
		}
	}
	t.stack.applied = &template
	return t.stack.state, nil
}

// launched says when Nova set a server up last, if that is known.
func (t *task) launched(serverID string) string {
	t.stack.mutex.Lock()
	defer t.stack.mutex.Unlock()
	return t.stack.launched[serverID]
}

// settleStack takes out of the stack what nobody wants any more; one in which nothing stands but the environment's network and the security
// groups of servers is deleted. These are still wanted, and made again with the next server.
func (t *task) settleStack(ctx context.Context, interpreter *muranopl.Interpreter, environment *muranopl.Object) error {
	if len(t.clusterServers()) > 0 {
		_, err := t.servers(ctx, interpreter)
		return err
	}
	own := t.stackNamed(stackName(t.EnvironmentID()))
	template, err := t.wantedTemplate(ctx, own)
	if err != nil {
		return err
	}
	resources, _ := template["resources"].(map[string]any)
	for name := range resources {
		if !slices.Contains(networkResources, name) && !isGroup(name) {
			_, err := t.servers(ctx, interpreter)
			return err
		}
	}
	if err := t.deleteStack(ctx, environment); err != nil || len(resources) == 0 {
		return err
	}
	own.tell(map[string]any{})
	if network := t.environmentNetwork(); network != nil && network.Class().Is(classNeutronNetwork) {
		_, err = interpreter.Invoke(ctx, network, "endDeploy", nil) // it is not there any more
	}
	return err
}

// isGroup tells whether a resource is a security group of servers, as io.murano.system.NeutronSecurityGroupManager calls them.
func isGroup(resource string) bool {
	return resource == "servers" || strings.HasPrefix(resource, "group-")
}

// withoutIdleGroups leaves the security groups of servers out of a template that none of its servers is in.
func withoutIdleGroups(template map[string]any) map[string]any {
	used := map[string]bool{}
	var look func(value any)
	look = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			if name, ok := v["get_resource"].(string); ok {
				used[name] = true
			}
			for _, item := range v {
				look(item)
			}
		case []any:
			for _, item := range v {
				look(item)
			}
		}
	}
	look(template)
	resources, _ := template["resources"].(map[string]any)
	kept := maps.Clone(resources)
	maps.DeleteFunc(kept, func(name string, _ any) bool { return isGroup(name) && !used[name] })
	made := maps.Clone(template)
	made["resources"] = kept
	return made
}

// wantedTemplate is what code in MuranoPL wants of the environment's own stack.
func (t *task) wantedTemplate(ctx context.Context, own *heatStack) (map[string]any, error) {
	own.mutex.Lock()
	defer own.mutex.Unlock()
	err := t.learn(ctx, own)
	return own.content.Template, err
}

// deleteStack deletes the stack, with every server, port and address of the environment, where one was ever made.
func (t *task) deleteStack(ctx context.Context, environment *muranopl.Object) error {
	if made, _, err := t.Attribute(ctx, environment, attributeStack); err != nil || made == nil {
		return err
	}
	return t.Step(ctx, environment, "delete stack", func(ctx context.Context) error {
		project, err := t.Project(ctx)
		if err != nil {
			return err
		}
		if err := project.DeleteStack(ctx, stackName(t.EnvironmentID())); err != nil {
			return err
		}
		return t.SetAttribute(ctx, environment, attributeStack, nil)
	})
}

// noteAddresses writes what the cloud gave a server to its object.
func noteAddresses(instance *muranopl.Object, addresses openstack.Addresses) error {
	all := []any{addresses.Fixed.String()}
	var floating any
	if addresses.Floating.IsValid() {
		floating = addresses.Floating.String()
		all = append(all, floating)
	}
	for name, value := range map[string]any{"openstackId": addresses.ServerID, "ipAddresses": all, "floatingIpAddress": floating} {
		if err := instance.Set(name, value); err != nil {
			return err
		}
	}
	return nil
}

// forgetAddresses takes from an object what it says of a server that is gone.
func forgetAddresses(instance *muranopl.Object) error {
	if instance.Text("openstackId") == "" {
		return nil
	}
	for name, value := range map[string]any{"openstackId": nil, "ipAddresses": []any{}, "floatingIpAddress": nil} {
		if err := instance.Set(name, value); err != nil {
			return err
		}
	}
	return nil
}

// clusterServer is an instance that is to run in a cluster.
type clusterServer struct {
	instance *muranopl.Object
	cluster  *muranopl.Object
	role     nodes.Role
}

// clusterServers lists the instances of clusters that are to run.
func (t *task) clusterServers() []clusterServer {
	var found []clusterServer
	for _, object := range t.all(classCluster) {
		for _, node := range activeNodes(object) {
			found = append(found, clusterServer{instance: node.object.Object("instance"), cluster: object, role: node.role})
		}
	}
	return found
}

// template is what the stack is to be made of: what code in MuranoPL wants, which is kept before it is asked for, and the servers of
// clusters. With it are returned the objects of all servers in it.
func (t *task) template(ctx context.Context, project *openstack.Project, own *heatStack, members []clusterServer, cidr netip.Prefix) (openstack.Content, []*muranopl.Object, error) {
	own.mutex.Lock()
	defer own.mutex.Unlock()
	content := openstack.Content{}
	if err := t.learn(ctx, own); err != nil {
		return content, nil, err
	}
	if err := t.keep(ctx, own); err != nil {
		return content, nil, err
	}
	content = own.content
	added := openstack.NewTemplate()
	var instances []*muranopl.Object
	if len(members) > 0 {
		external, err := project.ExternalNetwork(ctx)
		if err != nil {
			return content, nil, err
		}
		for _, member := range members {
			if err := t.addServer(ctx, added, member, external, cidr); err != nil {
				return content, nil, err
			}
			instances = append(instances, member.instance)
			content.Nodes = append(content.Nodes, openstack.ServerResource(member.instance.ID()))
		}
	}
	part, err := added.Map()
	if err != nil {
		return content, nil, err
	}
	content.Template = withoutIdleGroups(mergeTemplates(content.Template, part))
	resources, _ := content.Template["resources"].(map[string]any)
	for _, instance := range t.all(classInstance) {
		if resources[openstack.ServerResource(instance.ID())] != nil && !slices.Contains(instances, instance) {
			instances = append(instances, instance)
		}
	}
	return content, instances, nil
}

// addServer adds a cluster's server to the template.
func (t *task) addServer(ctx context.Context, template openstack.Template, member clusterServer, external string, cidr netip.Prefix) error {
	cluster, err := t.cluster(member.cluster)
	if err != nil {
		return err
	}
	name := member.instance.Text("name")
	data, err := cluster.names.UserData(ctx, name)
	if err != nil {
		return err
	}
	group := member.cluster.ID() + "-" + string(member.role)
	template.AddSecurityGroup(group, member.cluster.Text("name")+"-"+string(member.role), clusterRules(member, cidr))
	template.AddServer(openstack.Server{
		ID:               member.instance.ID(),
		Name:             name,
		Flavor:           member.instance.Text("flavor"),
		Image:            member.instance.Text("image"),
		KeyName:          member.instance.Text("keyname"),
		AvailabilityZone: member.instance.Text("availabilityZone"),
		FloatingIP:       member.instance.Bool("assignFloatingIp"),
		External:         external,
		SecurityGroup:    group,
		UserData:         string(data),
		AlsoFrom:         []netip.Prefix{podNetwork},
	})
	return nil
}

func inside(network netip.Prefix) openstack.Rule { return openstack.Rule{From: network.String()} }

func ssh() openstack.Rule {
	return openstack.Rule{Protocol: "tcp", Ports: [2]int{22, 22}, From: "0.0.0.0/0"}
}

// clusterRules says what a node lets in: everything from the cluster's own networks, SSH, and what its role offers to publicCidr.
// On gateways the daemon closes again what is not published.
func clusterRules(server clusterServer, network netip.Prefix) []openstack.Rule {
	rules := []openstack.Rule{inside(network), inside(podNetwork), ssh()}
	public := server.cluster.Text("publicCidr")
	switch server.role {
	case nodes.Master:
		rules = append(rules, openstack.Rule{Protocol: "tcp", Ports: [2]int{6443, 6443}, From: public})
	case nodes.Gateway:
		rules = append(rules, openstack.Rule{Protocol: "tcp", Ports: [2]int{1, 65535}, From: public})
	}
	return rules
}

// environmentNetwork returns the network that the environment has in its region, or nil.
func (t *task) environmentNetwork() *muranopl.Object {
	region, _ := t.Model().Map("regions")[t.Model().Text("region")].(*muranopl.Object)
	if region == nil {
		return nil
	}
	network, _ := region.Map("defaultNetworks")["environment"].(*muranopl.Object)
	return network
}

// joinNetwork puts the environment's network into the stack for the servers of clusters, and returns it with its subnet.
func (t *task) joinNetwork(ctx context.Context, interpreter *muranopl.Interpreter) (*muranopl.Object, netip.Prefix, error) {
	network := t.environmentNetwork()
	if network == nil {
		return nil, netip.Prefix{}, errors.New("the environment has no network for its servers: give its model one in defaultNetworks.environment")
	}
	if !network.Class().Is(classNeutronNetwork) {
		return nil, netip.Prefix{}, fmt.Errorf("the environment's network is a %s: so far clusters stand only in a %s", network.Class().Name, classNeutronNetwork)
	}
	if _, err := interpreter.Invoke(ctx, network, "beginDeploy", nil); err != nil {
		return nil, netip.Prefix{}, err
	}
	cidr, err := netip.ParsePrefix(network.Text("subnetCidr"))
	if err != nil {
		return nil, cidr, fmt.Errorf("subnetCidr of the environment's network is %q, which is no network: write it like 10.20.0.0/24", network.Text("subnetCidr"))
	}
	return network, cidr, nil
}
