// Package native holds the Go bodies of the embedded packages' classes: those that reach into the cloud, into servers and into
// Kubernetes.
package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/burano/burano/catalog/core"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/panics"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/openstack"
)

// The classes that bodies look for.
const (
	classEnvironment      = "io.murano.Environment"
	classInstance         = "io.murano.resources.Instance"
	classNeutronNetwork   = "io.murano.resources.NeutronNetwork"
	classHeatStack        = "io.murano.system.HeatStack"
	classNetworkExplorer  = "io.murano.system.NetworkExplorer"
	classInstanceNotifier = "io.murano.system.InstanceNotifier"
	classApplication      = "com.mirantis.docker.DockerApplication"
	classContainerHost    = "com.mirantis.docker.DockerContainerHost"
	classCluster          = "com.mirantis.docker.kubernetes.KubernetesCluster"
	classNode             = "com.mirantis.docker.kubernetes.KubernetesNode"
	classPod              = "com.mirantis.docker.kubernetes.KubernetesPod"
	classAnyImage         = "com.example.docker.DockerApp"
	packageCore           = "io.murano"
	packageInterfaces     = "com.mirantis.docker.Interfaces"
	packageCluster        = "com.mirantis.docker.kubernetes.KubernetesCluster"
	packagePod            = "com.mirantis.docker.kubernetes.KubernetesPod"
	packageAnyImage       = "com.example.docker.DockerApp"
	methodDeploy          = "deploy"
	methodDestroy         = ".destroy"
	methodGetContainer    = "getContainer"
	methodHostContainer   = "hostContainer"
	methodDropContainer   = "deleteContainer"
	argumentContainer     = "name"
	propertyApplications  = "applications"
)

// Runtime is what a body may use of the engine during one task.
type Runtime interface {
	EnvironmentID() string
	TaskID() string
	// Model is the environment as it is to be; nil when it is being deleted.
	Model() *muranopl.Object
	Report(ctx context.Context, object *muranopl.Object, level engine.Level, text, details string) error
	Attribute(ctx context.Context, object *muranopl.Object, name string) (any, bool, error)
	SetAttribute(ctx context.Context, object *muranopl.Object, name string, value any) error
	CodeAttribute(ctx context.Context, object *muranopl.Object, class, name string) (any, bool, error)
	SetCodeAttribute(ctx context.Context, object *muranopl.Object, class, name string, value any) error
	Secret(ctx context.Context, name string) ([]byte, bool, error)
	SetSecret(ctx context.Context, name string, value []byte) error
	// Deploys tells whether the task deploys the environment, and does not only run an action in it or delete it.
	Deploys() bool
	// TrackApplication, TrackServer and Untrack keep the statistics of instances.
	TrackApplication(ctx context.Context, object *muranopl.Object, title string, units int64) error
	TrackServer(ctx context.Context, object *muranopl.Object, title string, units int64) error
	Untrack(ctx context.Context, object *muranopl.Object) error
	Project(ctx context.Context) (*openstack.Project, error)
	Step(ctx context.Context, object *muranopl.Object, name string, run func(context.Context) error) error
	// AtEnd has something done after the task's action, and what that left to be destroyed, went well.
	AtEnd(do func(context.Context) error)
	// Fence is the number that grows each time a task of the environment is taken.
	Fence() uint64
	// Alive returns an error once this process may no longer act for the task.
	Alive() error
}

// Config is what the bodies need to know of the server.
type Config struct {
	// Binary is the burano program that is copied onto masters and gateways.
	Binary string
	// Networks is the range from which environments get a /24 of their own; it must not overlap the cluster's own networks.
	Networks netip.Prefix
	// Region is the name of the region that servers stand in.
	Region string
	// ServerPatience is how long a change of servers may take until all of them run.
	ServerPatience time.Duration
	// SSHPatience is how long a server that runs may take until its sshd answers.
	SSHPatience time.Duration
	// StepPatience is how long one step of a node may take, and DrainPatience how long the pods of a node that is removed.
	StepPatience, DrainPatience time.Duration
	Logger                      *slog.Logger
}

// Methods binds the bodies to one task. With a nil runtime the table serves only to compare its names with the classes.
func Methods(runtime Runtime, config Config) muranopl.Natives {
	t := &task{Runtime: runtime, config: config, clusters: map[string]*cluster{}, stacks: map[string]*heatStack{}, done: map[string]*outcome{}}
	language := core.Methods(host{runtime, config.Region}, config.Logger)
	maps.Copy(language, map[string]map[string]muranopl.NativeMethod{
		classEnvironment: {methodDeploy: t.deployEnvironment, methodDestroy: t.destroyEnvironment},
		classHeatStack: {
			"current": t.heatMethod(currentTemplate), "parameters": t.heatMethod(currentParameters), "reload": t.reloadStack,
			"setTemplate": t.heatMethod(setTemplate), "updateTemplate": t.heatMethod(updateTemplate),
			"replaceInTemplate": t.heatMethod(t.replaceInTemplate), "setParameters": t.heatMethod(setParameters),
			"setFiles": t.heatMethod(setFiles), "setHotEnvironment": t.heatMethod(setHotEnvironment),
			"push": t.pushStack, "output": t.stackOutput, "delete": t.removeStack,
		},
		classNetworkExplorer: {"getAvailableCidr": t.availableCIDR, "getExternalNetworkIdForRouter": t.externalNetwork},
		classInstanceNotifier: {
			"trackApplication": t.trackApplication, "untrackApplication": t.untrack,
			"trackCloudInstance": t.trackServer, "untrackCloudInstance": t.untrack,
		},
	})
	return muranopl.Natives{
		packageCore: language,
		packageInterfaces: {
			classApplication: {methodDeploy: t.deployApplication, methodDestroy: t.destroyApplication},
		},
		packageCluster: {
			classCluster: {
				methodDeploy: t.deployCluster, methodDestroy: t.destroyCluster,
				"scaleNodesUp": t.scaleUp(minions), "scaleNodesDown": t.scaleDown(minions),
				"scaleGatewaysUp": t.scaleUp(gateways), "scaleGatewaysDown": t.scaleDown(gateways),
			},
		},
		packagePod: {
			classPod: {
				methodDeploy: t.deployPod, methodDestroy: t.destroyPod, methodHostContainer: t.hostContainer, methodDropContainer: t.dropContainer,
				"scalePodUp": t.scalePod(1), "scalePodDown": t.scalePod(-1), "recreatePod": t.recreatePod, "restartContainers": t.restartContainers,
			},
		},
		packageAnyImage: {
			classAnyImage: {methodGetContainer: t.anyImageContainer},
		},
	}
}

// host lets the language's own classes keep attributes, report, and know where they are.
type host struct {
	Runtime
	region string
}

// Home is the region that servers stand in, and the name of the environment's stack there.
func (h host) Home() (region, stack string) {
	return cmp.Or(h.region, core.DefaultRegion), stackName(h.EnvironmentID())
}

// Attribute returns what code stored.
func (h host) Attribute(ctx context.Context, object *muranopl.Object, class, name string) (any, bool, error) {
	return h.CodeAttribute(ctx, object, class, name)
}

// SetAttribute stores what code gives.
func (h host) SetAttribute(ctx context.Context, object *muranopl.Object, class, name string, value any) error {
	return h.SetCodeAttribute(ctx, object, class, name, value)
}

// Report adds a line to the deployment's log.
func (h host) Report(ctx context.Context, object *muranopl.Object, failed bool, text string) error {
	level := engine.LevelInfo
	if failed {
		level = engine.LevelError
	}
	return h.Runtime.Report(ctx, object, level, text, "")
}

// task is what the bodies of one task share.
type task struct {
	Runtime
	config Config
	stack  stack
	// deploying is set once the environment's deploy has begun, after the destruction of what is not in the model any more.
	deploying atomic.Bool
	settling  sync.Once // at the end of the task

	mutex    sync.Mutex
	clusters map[string]*cluster   // by object id
	stacks   map[string]*heatStack // by name
	choosing sync.Mutex            // a subnet
	done     map[string]*outcome
}

// outcome is how something ended that a task does once.
type outcome struct {
	once sync.Once
	err  error
}

// once runs do the first time that it is called with this key during the task; later and concurrent calls wait for it and get the
// same error.
func (t *task) once(key string, do func() error) error {
	t.mutex.Lock()
	o := t.done[key]
	if o == nil {
		o = &outcome{}
		t.done[key] = o
	}
	t.mutex.Unlock()
	o.once.Do(func() { o.err = do() })
	return o.err
}

// inform writes a report of level info; a report that cannot be written must not end what it tells of.
func (t *task) inform(ctx context.Context, object *muranopl.Object, format string, args ...any) {
	if err := t.Report(ctx, object, engine.LevelInfo, fmt.Sprintf(format, args...), ""); err != nil {
		t.config.Logger.WarnContext(ctx, "a report was lost", "object", object.ID(), "error", err)
	}
}

// each calls do for every object at once, waits for all, and joins their errors.
func each(objects []*muranopl.Object, do func(*muranopl.Object) error) error {
	errs := make([]error, len(objects))
	var group sync.WaitGroup
	for i, object := range objects {
		group.Go(func() { errs[i] = panics.Run(func() error { return do(object) }) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// find returns the object with this id in the model as it is to be, or nil.
func (t *task) find(id string) *muranopl.Object {
	root := t.Model()
	if root == nil {
		return nil
	}
	var found *muranopl.Object
	root.Walk(func(object *muranopl.Object) bool {
		if object.ID() == id {
			found = object
		}
		return found == nil
	})
	return found
}

// all returns every object of the model as it is to be that is of the class.
func (t *task) all(class string) []*muranopl.Object {
	var found []*muranopl.Object
	if root := t.Model(); root != nil {
		root.Walk(func(object *muranopl.Object) bool {
			if object.Class().Is(class) {
				found = append(found, object)
			}
			return true
		})
	}
	return found
}
