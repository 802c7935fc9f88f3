package agent

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/stacks"
	"github.com/burano/burano/orchestrator/task"
)

// classWindows is of the servers that Burano does not log in to.
const classWindows = "io.murano.resources.WindowsInstance"

// vaultServers is the name for the keys of servers that are no nodes of clusters; the keys of a cluster are at its id.
const vaultServers = "servers"

// NoAccess is a fault: Burano has no way to log in to a server, and waiting does not help.
type NoAccess struct{ Server, Reason, Remedy string }

// Error names the server, the reason and the remedy.
func (e *NoAccess) Error() string {
	return fmt.Sprintf("Burano cannot log in to server %s: %s. %s", e.Server, e.Reason, e.Remedy)
}

// Unwrap makes it a fault of kind Conflict.
func (e *NoAccess) Unwrap() error { return fault.New(fault.Conflict, "%s", e.Error()) }

// Settings are the server's settings for the servers of applications.
type Settings struct {
	// SSHPatience is how long a running server may take until its sshd answers, and ServerPatience until it has applied its user data.
	SSHPatience, ServerPatience time.Duration
	// Connected is called with 1 when a connection begins, and with -1 when it ends. It may be nil.
	Connected func(change int)
}

// Servers reaches the servers of applications over SSH, during one task.
type Servers struct {
	runtime   serversRuntime
	objects   task.Objects
	reports   task.Reports
	stacks    *stacks.Templates
	settings  Settings
	rehearsal bool

	mutex       sync.Mutex
	connections *access.Connections
	booted      map[string]bool // by the ids of servers that have applied their user data
	inHeat      map[string]any  // the template of the environment's stack; nil before the first question
}

// serversRuntime is the part of a task that connections to servers use.
type serversRuntime interface {
	Secret(ctx context.Context, name string) ([]byte, bool, error)
	SetSecret(ctx context.Context, name string, value []byte) error
	Fence() uint64
	Alive() error
	Ended(do func())
}

// NewServers returns the servers of a task's applications. A rehearsal connects to none.
func NewServers(runtime serversRuntime, objects task.Objects, reports task.Reports, templates *stacks.Templates, settings Settings, rehearsal bool) *Servers {
	return &Servers{runtime: runtime, objects: objects, reports: reports, stacks: templates, settings: settings, rehearsal: rehearsal}
}

// Methods are the bodies of io.murano.resources.Instance.
func (a *Servers) Methods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{"withAccess": a.withAccess}
}

// Connection is the connection to an instance's server, which the task makes once. It waits until its sshd answers, and until the server has finished its
// user data. The caller must not close it; after a reboot it comes back by itself.
func (a *Servers) Connection(ctx context.Context, instance *muranopl.Object) (*ssh.Client, error) {
	if a.rehearsal {
		return nil, errors.New("a rehearsal logs in to no server")
	}
	server, err := a.server(ctx, instance)
	if err != nil {
		return nil, err
	}
	client, err := a.all().Connect(ctx, server)
	if err != nil {
		return nil, a.wayless(server, err)
	}
	return client, a.awaitBoot(ctx, instance, server, client)
}

// wayless adds the remedy to the error that a server was not reached, where there was no floating address to reach it by.
func (a *Servers) wayless(server access.Server, err error) error {
	var unreached *ssh.UnreachableError
	if !errors.As(err, &unreached) || unreached.Down || server.Access.IsValid() || len(a.through(server)) > 0 {
		return err
	}
	return fmt.Errorf("%w; neither it nor another server that the environment has by now has a floating address: give it one (assignFloatingIp), or one "+
		"that is deployed before it, or run Burano where its own address is reached", err)
}

// all are the task's connections, which end with it.
func (a *Servers) all() *access.Connections {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.connections != nil {
		return a.connections
	}
	connections := access.New(access.Config{
		Vault: known.Vault{Runtime: a.runtime, Cluster: vaultServers}, User: access.User, Patience: a.settings.SSHPatience, Logger: a.reports.Logger,
		Fence: a.runtime.Fence(), Alive: a.runtime.Alive, Connected: a.settings.Connected,
		Through: a.through,
		Report: func(ctx context.Context, server access.Server, text string) {
			a.reports.Inform(ctx, a.objects.Find(server.Key), "%s: %s", server.Name, text)
		},
		Down: func(ctx context.Context, server access.Server) bool {
			project, err := a.project(ctx, a.objects.Find(server.Key))
			if err != nil {
				return false
			}
			state, err := project.Server(ctx, server.ID)
			return err == nil && state.Down()
		},
	})
	a.connections, a.booted = connections, map[string]bool{}
	a.runtime.Ended(func() {
		if err := connections.Close(); err != nil {
			a.reports.Logger.Debug("closing the connections to servers", "error", err)
		}
	})
	return connections
}

// server is an instance's server in the form for a connection.
func (a *Servers) server(ctx context.Context, instance *muranopl.Object) (access.Server, error) {
	made := access.Server{Key: instance.ID(), Name: instance.Text("name"), ID: instance.Text("openstackId")}
	if made.ID == "" {
		return made, fault.New(fault.Conflict, "server %s is not deployed, so that nothing can be run on it: let the application deploy it first", made.Name)
	}
	if err := a.reachable(ctx, instance); err != nil {
		return made, err
	}
	made.Access, _ = netip.ParseAddr(instance.Text("floatingIpAddress"))
	for _, text := range instance.List("ipAddresses") {
		if address, err := netip.ParseAddr(fmt.Sprint(text)); err == nil && address != made.Access {
			made.Addresses = append(made.Addresses, address)
		}
	}
	project, err := a.project(ctx, instance)
	if err != nil {
		return made, err
	}
	state, err := project.Server(ctx, made.ID)
	if err != nil {
		return made, err
	}
	made.Launched = state.Launched
	return made, nil
}

// project is that of an instance's region.
func (a *Servers) project(ctx context.Context, instance *muranopl.Object) (*openstack.Project, error) {
	return a.stacks.Regions.Project(ctx, a.stacks.Regions.Of(instance))
}

// stack is the environment's stack in an instance's region.
func (a *Servers) stack(instance *muranopl.Object) *stacks.Stack {
	return a.stacks.OwnIn(a.stacks.Regions.Of(instance))
}

// reachable is the reason why Burano cannot log in to an instance's server; nil when it can.
func (a *Servers) reachable(ctx context.Context, instance *muranopl.Object) error {
	name := instance.Text("name")
	if instance.Class().IsEmbedded(classWindows) {
		return &NoAccess{name, "it runs Windows, which Murano set up through an agent in the image and a message queue, and Burano has neither",
			"Burano sets up servers with Linux, over SSH: use an image and a package for Linux, or have user data (cloudbase-init) do the work"}
	}
	data, there, err := a.userData(ctx, instance)
	if err != nil || access.Marked(data) {
		return err
	}
	switch {
	case instance.Class().IsEmbedded(task.ClassNodeServer) && len(instance.Map(task.PropertyNode)) > 0:
		return &NoAccess{name, "it is a node of a Kubernetes cluster, which its cluster sets up", "Run what you need as a container in the cluster"}
	case !there || !access.Foreign(data):
		return &NoAccess{name, "it was made without Burano's SSH key, by a former version or from outside, and what runs is not replaced",
			"To have it made anew, with an empty disk, delete it in Nova and deploy again; or add another server and move to it what runs here"}
	}
	return &NoAccess{name, "its user data is nothing that cloud-init takes (such as a script with its first line #!, or #cloud-config), so that Burano's SSH key cannot be put beside it",
		"Have the package give user data that cloud-init takes"}
}

// userData are the user data of an instance's server in the environment's stack.
func (a *Servers) userData(ctx context.Context, instance *muranopl.Object) (data string, there bool, err error) {
	template, err := a.stacks.Template(ctx, a.stack(instance))
	if err != nil {
		return "", false, err
	}
	if data, there = known.UserDataIn(template, instance.ID()); there {
		return data, true, nil
	}
	if a.stacks.Regions.Of(instance) != "" {
		return "", false, nil
	}
	// A former version stored only Heat's copy.
	if template, err = a.templateInHeat(ctx); err != nil {
		return "", false, err
	}
	data, there = known.UserDataIn(template, instance.ID())
	return data, there, nil
}

// templateInHeat is Heat's template of the environment's stack when the task first asked; empty when there was none.
func (a *Servers) templateInHeat(ctx context.Context) (map[string]any, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.inHeat != nil {
		return a.inHeat, nil
	}
	project, err := a.stacks.Regions.Project(ctx, "")
	if err != nil {
		return nil, err
	}
	_, content, err := project.FindStack(ctx, a.stacks.Own().Name)
	if err != nil {
		return nil, err
	}
	a.inHeat = map[string]any{}
	maps.Copy(a.inHeat, content.Template)
	return a.inHeat, nil
}

// through are the servers of the environment's other instances in the same region that Burano can log in to. If an object lacks its data, because its own
// endDeploy comes later, the stack may have them already.
func (a *Servers) through(to access.Server) []access.Server {
	ctx := context.Background() // this waits for nothing: the data are in memory
	region := a.stacks.Regions.Of(a.objects.Find(to.Key))
	outputs := a.stacks.OwnIn(region).KnownOutputs()
	var jumps []access.Server
	for _, instance := range a.objects.All(task.ClassInstance) {
		jump := access.Server{Key: instance.ID(), Name: instance.Text("name"), ID: instance.Text("openstackId")}
		floating := instance.Text("floatingIpAddress")
		if jump.ID == "" {
			jump.ID, _ = outputs[openstack.ServerResource(instance.ID())].(string)
			floating, _ = outputs[instance.ID()+"-floating"].(string)
		}
		var err error
		if jump.Access, err = netip.ParseAddr(floating); err != nil || jump.Key == to.Key || jump.ID == "" || a.stacks.Regions.Of(instance) != region || a.reachable(ctx, instance) != nil {
			continue
		}
		jumps = append(jumps, jump)
	}
	return jumps
}

//go:embed scripts/await-boot.sh
var awaitBootScript string

// awaitBoot waits until a server has applied its user data: packages are installed by one at a time.
func (a *Servers) awaitBoot(ctx context.Context, instance *muranopl.Object, server access.Server, client *ssh.Client) error {
	a.mutex.Lock()
	done := a.booted[server.ID]
	a.mutex.Unlock()
	if done {
		return nil
	}
	limit := strconv.Itoa(max(1, int(a.settings.ServerPatience.Seconds())))
	said, err := client.Run(ctx, ssh.Script{Name: "wait for the end of the boot", Body: awaitBootScript, Env: map[string]string{"LIMIT": limit}})
	if err != nil {
		return fmt.Errorf("wait until %s has applied its user data: %w", server.Name, err)
	}
	if said = strings.TrimSpace(said); said != "" {
		first, details, _ := strings.Cut(said, "\n")
		a.reports.Write(ctx, instance, engine.LevelInfo, server.Name+": "+first, details)
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.booted[server.ID] = true
	return nil
}

// withAccess adds Burano's key to an instance's user data. An existing server does not change.
func (a *Servers) withAccess(ctx context.Context, call muranopl.Call) (any, error) {
	prepared := task.MapArgument(call, "userData")
	other, isText := prepared["data"].(string)
	if !isText && prepared["data"] != nil {
		return prepared, nil // Heat makes it
	}
	config, _ := prepared["cloudConfig"].(map[string]any)
	other, err := access.Configured(other, config)
	if err != nil {
		return nil, fmt.Errorf("server %s has a cloudConfig beside its user data: %w", call.Object.Text("name"), err)
	}
	given := func(data string) map[string]any { return map[string]any{"data": data, "format": "RAW"} }
	kept, there, err := a.userData(ctx, call.Object)
	if err != nil {
		return nil, err
	}
	if access.MadeOf(kept, other) {
		return given(kept), nil
	}
	former := kept == other // made before servers had the key
	if there && !former && !access.Marked(kept) {
		if former, err = a.stacks.Adopted(ctx); err != nil { // Murano has made it
			return nil, err
		}
	}
	if there && former {
		if gone, err := a.gone(ctx, call.Object); err != nil || !gone {
			return given(kept), err
		}
	}
	data, err := a.all().UserData(ctx, call.Object.ID(), other)
	if errors.Is(err, access.ErrForeign) {
		return prepared, nil // a later login reports it
	}
	if err != nil {
		return nil, err
	}
	return given(data), nil
}

// gone is true if Nova does not know an instance's server any more.
func (a *Servers) gone(ctx context.Context, instance *muranopl.Object) (bool, error) {
	id := instance.Text("openstackId")
	if id == "" {
		return false, nil
	}
	project, err := a.stacks.Regions.Project(ctx, a.stacks.Regions.Of(instance))
	if err != nil {
		return false, err
	}
	state, err := project.Server(ctx, id)
	return state.Status == openstack.Gone, err
}
