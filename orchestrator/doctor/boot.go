package doctor

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/orchestrator/openstack"
)

// Boot describes the server that checks whether servers can be reached.
type Boot struct {
	Image  string // name or id
	Flavor string // name or id; "" is the smallest that the image fits
	// Networks is where its network's subnet is chosen from.
	Networks netip.Prefix
	// Patience is how long the server may take to be made, and then to answer.
	Patience time.Duration
}

const checkServer = "a server"

// server makes one in a network of its own with a floating IP, by a stack as a deployment does, logs in, and deletes all of it.
func (e *examination) server(ctx context.Context) {
	flavor, ok := e.flavorOf(ctx)
	if !ok {
		return
	}
	roles := e.trusted()
	if len(roles) == 0 {
		roles = e.caller.Roles
	}
	trust, _, err := e.service.CreateTrust(ctx, e.caller, roles, time.Now().Add(3*e.Boot.Patience))
	if err != nil {
		return // the check of trusts has reported it
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		if err := e.service.DeleteTrust(ending, trust); err != nil {
			e.add(checkServer, Warning, "openstack trust delete "+trust, "the trust that it was made with cannot be revoked: %s", err)
		}
	}()
	project, err := e.service.Project(ctx, trust)
	if err != nil {
		e.add(checkServer, Failed, "mend what else is failed here, then look again", "nothing can be made of it: %s", err)
		return
	}
	name := "burano-doctor-" + uuid.NewString()[:8]
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.Boot.Patience) // also when this look is interrupted
		defer cancel()
		if err := project.DeleteStack(ending, name); err != nil {
			e.add(checkServer, Failed, "openstack stack delete "+name, "what was made to try it is still there: %s", err)
		}
	}()
	e.reach(ctx, project, name, flavor)
}

// flavorOf chooses a flavor that fits the image.
func (e *examination) flavorOf(ctx context.Context) (string, bool) {
	images, ok := choices[openstack.ImageChoice](ctx, e, checkServer, "images")
	if !ok {
		return "", false
	}
	at := slices.IndexFunc(images, func(one openstack.ImageChoice) bool { return one.ID == e.Boot.Image || one.Name == e.Boot.Image })
	if at < 0 {
		e.add(checkServer, Failed, "name one by --boot: openstack image list", "project %s sees no image %s", e.caller.ProjectName, e.Boot.Image)
		return "", false
	}
	if e.Boot.Flavor != "" {
		return e.Boot.Flavor, true
	}
	flavors, ok := choices[openstack.FlavorChoice](ctx, e, checkServer, "flavors")
	if !ok {
		return "", false
	}
	flavors = slices.DeleteFunc(flavors, func(one openstack.FlavorChoice) bool {
		return one.Disk < max(images[at].MinDisk, 1) || one.RAM < images[at].MinRAM
	})
	if len(flavors) == 0 {
		e.add(checkServer, Failed, "name one by --boot-flavor, or have one made", "no flavor has the disk (%d GiB) and the memory (%d MiB) that image %s takes", images[at].MinDisk, images[at].MinRAM, e.Boot.Image)
		return "", false
	}
	return slices.MinFunc(flavors, func(a, b openstack.FlavorChoice) int {
		return cmp.Or(cmp.Compare(a.RAM, b.RAM), cmp.Compare(a.CPUs, b.CPUs), cmp.Compare(a.Disk, b.Disk))
	}).ID, true
}

// reach makes the server and logs in to it.
func (e *examination) reach(ctx context.Context, project *openstack.Project, name, flavor string) {
	limited, cancel := context.WithTimeout(ctx, e.Boot.Patience)
	defer cancel()
	vault := &access.Memory{}
	connections := access.New(access.Config{Vault: vault, User: access.User, Patience: e.Boot.Patience})
	defer func() { _ = connections.Close() }()
	template, err := e.template(limited, project, connections, name, flavor)
	if err != nil {
		e.add(checkServer, Failed, "mend what else is failed here, then look again", "nothing can be made of it: %s", err)
		return
	}
	began := e.Now()
	stack, err := project.ApplyStack(limited, name, openstack.Content{Template: template})
	if err != nil {
		e.add(checkServer, Failed, "see what Nova, Neutron and Heat say of it; quotas and flavors are listed above", "none of image %s and flavor %s is made in %s: %s", e.Boot.Image, flavor,
			e.Boot.Patience, err)
		return
	}
	made := e.Now()
	floating, _ := stack.Outputs["floating"].(string)
	address, err := netip.ParseAddr(floating)
	if err != nil {
		e.add(checkServer, Failed, "see what Neutron says of the stack's floating IP", "it has no floating IP but %q", floating)
		return
	}
	again, cancel := context.WithTimeout(ctx, e.Boot.Patience)
	defer cancel()
	client, err := connections.Connect(again, access.Server{Key: name, Name: name, Access: address})
	if err == nil {
		_, err = client.Run(again, ssh.Script{Name: "look who is there", Body: "test \"$(id -u)\" = 0\n"})
	}
	if err != nil {
		e.add(checkServer, Failed, "open the way from this machine to floating IPs (routes, firewalls), or let Burano run where one is; the image must have cloud-init and sshd",
			"it was made in %s and cannot be logged in to at %s: %s%s", made.Sub(began).Round(time.Second), address, err, e.console(ctx, project, stack))
		return
	}
	e.add(checkServer, OK, "", "made in %s, and logged in to at %s after %s more", made.Sub(began).Round(time.Second), address, e.Now().Sub(made).Round(time.Second))
}

// console is the end of the server's console, "" when Nova does not show it.
func (e *examination) console(ctx context.Context, project *openstack.Project, stack openstack.Stack) string {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	id, _ := stack.Outputs["server"].(string)
	text, err := project.Console(limited, id, 5)
	if text = strings.TrimSpace(text); err != nil || text == "" {
		return ""
	}
	return "; the end of its console: " + text
}

// template is the template of a server with a floating IP.
func (e *examination) template(ctx context.Context, project *openstack.Project, keys *access.Connections, name, flavor string) (map[string]any, error) {
	external, err := project.ExternalNetwork(ctx, e.ExternalNetwork)
	if err != nil {
		return nil, err
	}
	subnet, err := project.FreeNetwork(ctx, e.Boot.Networks, 24)
	if err != nil {
		return nil, err
	}
	data, err := keys.UserData(ctx, name, "")
	if err != nil {
		return nil, fmt.Errorf("write the user data: %w", err)
	}
	ref := func(resource string) map[string]any { return map[string]any{"get_resource": resource} }
	resource := func(kind string, properties map[string]any, after ...any) map[string]any {
		one := map[string]any{"type": kind, "properties": properties}
		if len(after) > 0 {
			one["depends_on"] = after
		}
		return one
	}
	return map[string]any{
		"heat_template_version": "2018-08-31",
		"resources": map[string]any{
			"network":   resource("OS::Neutron::Net", map[string]any{"name": name}),
			"subnet":    resource("OS::Neutron::Subnet", map[string]any{"network": ref("network"), "cidr": subnet.String(), "ip_version": 4}),
			"router":    resource("OS::Neutron::Router", map[string]any{"name": name, "external_gateway_info": map[string]any{"network": external.ID}}),
			"interface": resource("OS::Neutron::RouterInterface", map[string]any{"router": ref("router"), "subnet": ref("subnet")}),
			"group": resource("OS::Neutron::SecurityGroup", map[string]any{"name": name, "rules": []any{
				map[string]any{"protocol": "tcp", "port_range_min": 22, "port_range_max": 22, "remote_ip_prefix": "0.0.0.0/0"},
			}}),
			"port": resource("OS::Neutron::Port", map[string]any{"network": ref("network"), "security_groups": []any{ref("group")}}, "subnet"),
			"server": resource("OS::Nova::Server", map[string]any{"name": name, "image": e.Boot.Image, "flavor": flavor, "networks": []any{map[string]any{"port": ref("port")}},
				"config_drive": true, "user_data": data, "user_data_format": "RAW"}),
			"floating": resource("OS::Neutron::FloatingIP", map[string]any{"floating_network": external.ID, "port_id": ref("port")}, "interface"),
		},
		"outputs": map[string]any{
			"server":   map[string]any{"value": ref("server")},
			"floating": map[string]any{"value": map[string]any{"get_attr": []any{"floating", "floating_ip_address"}}},
		},
	}, nil
}
