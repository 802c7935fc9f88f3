package native

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"sync"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/openstack"
)

const (
	// attributeWanted marks an instance outside of clusters that was deployed.
	attributeWanted = "deployed"
	// attributeCIDR keeps the subnet that was chosen for the environment's network.
	attributeCIDR = "subnetCidr"
	// attributeStack says that the environment has, or may have, a stack.
	attributeStack = "stack"
	// instanceGroup is the security group of servers that belong to no cluster.
	instanceGroup = "instances"
)

// stack is the environment's Heat stack as this task knows it.
type stack struct {
	mutex   sync.Mutex
	applied *openstack.Template
	state   openstack.Stack
	// launched says of the servers that were looked at when Nova set them up last.
	launched map[string]string
}

// stackName is the name of an environment's stack: always the same, so that a stack whose creation was not heard of is found again.
func stackName(environment string) string { return "burano-" + environment }

// servers brings the stack to what the model wants, with all servers of the change in one update, and returns what it tells.
// The addresses of every server are written to its object.
func (t *task) servers(ctx context.Context) (openstack.Stack, error) {
	t.stack.mutex.Lock()
	defer t.stack.mutex.Unlock()
	project, err := t.Project(ctx)
	if err != nil {
		return openstack.Stack{}, err
	}
	network, err := t.network(ctx, project)
	if err != nil {
		return openstack.Stack{}, err
	}
	// Servers that are not in the template any more go with the update.
	err = each(t.all(classCluster), func(cluster *muranopl.Object) error { return t.shrink(ctx, cluster, network.CIDR) })
	if err != nil {
		return openstack.Stack{}, err
	}
	template, instances, err := t.template(ctx, network)
	if err != nil {
		return openstack.Stack{}, err
	}
	if t.stack.applied != nil && reflect.DeepEqual(*t.stack.applied, template) {
		return t.stack.state, nil
	}
	root := t.Model()
	err = t.Step(ctx, root, "servers", func(ctx context.Context) error {
		if len(instances) > 0 {
			t.inform(ctx, root, "Making servers: stack %s with %d servers", stackName(t.EnvironmentID()), len(instances))
		}
		limited, cancel := context.WithTimeoutCause(ctx, t.config.ServerPatience, fmt.Errorf("the servers were not ready within %s (burano serve --server-patience)", t.config.ServerPatience))
		defer cancel()
		// Noted first: what may be there is looked for when it is to be deleted.
		if err := t.SetAttribute(ctx, root, attributeStack, true); err != nil {
			return err
		}
		if t.stack.state, err = project.ApplyStack(limited, stackName(t.EnvironmentID()), template); err != nil {
			return err
		}
		return t.mend(limited, project, template, instances)
	})
	if err != nil {
		return openstack.Stack{}, err
	}
	for _, instance := range instances {
		addresses, ok := t.stack.state.Addresses(instance.ID())
		if !ok {
			return openstack.Stack{}, fmt.Errorf("the stack tells no address of server %s", instance.Text("name"))
		}
		if err := noteAddresses(instance, addresses); err != nil {
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

// settleStack takes out of the stack what the model does not want any more; a stack without servers is deleted.
func (t *task) settleStack(ctx context.Context, environment *muranopl.Object) error {
	wanted, err := t.wanted(ctx)
	if err != nil {
		return err
	}
	if len(wanted) > 0 {
		_, err := t.servers(ctx)
		return err
	}
	return t.deleteStack(ctx, environment)
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

// wanted lists the instances that are to run, with the role that each has in a cluster.
func (t *task) wanted(ctx context.Context) ([]wantedServer, error) {
	var found []wantedServer
	for _, object := range t.all(classCluster) {
		for _, node := range activeNodes(object) {
			found = append(found, wantedServer{instance: node.object.Object("instance"), cluster: object, role: node.role})
		}
	}
	for _, instance := range t.all(classInstance) {
		if instance.Find(classNode) != nil {
			continue
		}
		deployed, ok, err := t.Attribute(ctx, instance, attributeWanted)
		if err != nil {
			return nil, err
		}
		if ok && deployed == true {
			found = append(found, wantedServer{instance: instance})
		}
	}
	return found, nil
}

// wantedServer is an instance that is to run.
type wantedServer struct {
	instance *muranopl.Object
	cluster  *muranopl.Object // nil for one that belongs to no cluster
	role     nodes.Role
}

// template writes the stack's template from the model.
func (t *task) template(ctx context.Context, network openstack.Network) (openstack.Template, []*muranopl.Object, error) {
	template := openstack.NewTemplate()
	wanted, err := t.wanted(ctx)
	if err != nil {
		return template, nil, err
	}
	template.AddNetwork(network)
	var instances []*muranopl.Object
	for _, server := range wanted {
		spec := openstack.Server{
			ID:               server.instance.ID(),
			Name:             server.instance.Text("name"),
			Flavor:           server.instance.Text("flavor"),
			Image:            server.instance.Text("image"),
			KeyName:          server.instance.Text("keyname"),
			AvailabilityZone: server.instance.Text("availabilityZone"),
			FloatingIP:       server.instance.Bool("assignFloatingIp"),
			External:         network.External,
			SecurityGroup:    instanceGroup,
		}
		if server.cluster == nil {
			template.AddSecurityGroup(instanceGroup, t.EnvironmentID()+"-instances", []openstack.Rule{inside(network.CIDR), ssh()})
		} else {
			cluster, err := t.cluster(server.cluster)
			if err != nil {
				return template, nil, err
			}
			data, err := cluster.names.UserData(ctx, spec.Name)
			if err != nil {
				return template, nil, err
			}
			spec.UserData = string(data)
			spec.AlsoFrom = []netip.Prefix{podNetwork}
			spec.SecurityGroup = server.cluster.ID() + "-" + string(server.role)
			template.AddSecurityGroup(spec.SecurityGroup, server.cluster.Text("name")+"-"+string(server.role), clusterRules(server, network.CIDR))
		}
		template.AddServer(spec)
		instances = append(instances, server.instance)
	}
	return template, instances, nil
}

func inside(network netip.Prefix) openstack.Rule { return openstack.Rule{From: network.String()} }

func ssh() openstack.Rule {
	return openstack.Rule{Protocol: "tcp", Ports: [2]int{22, 22}, From: "0.0.0.0/0"}
}

// clusterRules says what a node lets in: everything from the cluster's own networks, SSH, and what its role offers to publicCidr.
// On gateways the daemon closes again what is not published.
func clusterRules(server wantedServer, network netip.Prefix) []openstack.Rule {
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

// network describes the environment's network. Its subnet is chosen once and kept.
func (t *task) network(ctx context.Context, project *openstack.Project) (openstack.Network, error) {
	root := t.Model()
	network := openstack.Network{Name: root.Text("name") + "-network"}
	var err error
	if network.External, err = project.ExternalNetwork(ctx); err != nil {
		return network, err
	}
	cidr := ""
	if object := environmentNetwork(root); object != nil {
		if !object.Class().Is(classNeutronNetwork) {
			return network, fmt.Errorf("the environment's network is a %s: so far only %s can be deployed", object.Class().Name, classNeutronNetwork)
		}
		if name := object.Text("name"); name != "" {
			network.Name = name
		}
		network.DNS = object.Texts("dnsNameservers")
		cidr = object.Text("subnetCidr")
	}
	if cidr == "" {
		kept, ok, err := t.Attribute(ctx, root, attributeCIDR)
		if err != nil {
			return network, err
		}
		if cidr, _ = kept.(string); !ok || cidr == "" {
			free, err := project.FreeNetwork(ctx, t.config.Networks, 24)
			if err != nil {
				return network, err
			}
			cidr = free.String()
			if err := t.SetAttribute(ctx, root, attributeCIDR, cidr); err != nil {
				return network, err
			}
		}
	}
	if network.CIDR, err = netip.ParsePrefix(cidr); err != nil {
		return network, fmt.Errorf("subnetCidr of the environment's network is %q, which is no network: write it like 10.20.0.0/24", cidr)
	}
	return network, nil
}

// environmentNetwork returns the object of defaultNetworks.environment, or nil.
func environmentNetwork(root *muranopl.Object) *muranopl.Object {
	object, _ := root.Map("defaultNetworks")["environment"].(*muranopl.Object)
	return object
}
