// Package native holds the Go bodies of the embedded packages' classes that use the cloud, servers and Kubernetes.
package native

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/burano/burano/catalog/core"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/workloads"
)

// The classes that bodies look for.
const (
	packageCore           = "io.murano"
	packageInterfaces     = "com.mirantis.docker.Interfaces"
	packageCluster        = "com.mirantis.docker.kubernetes.KubernetesCluster"
	packagePod            = "com.mirantis.docker.kubernetes.KubernetesPod"
	packageStandaloneHost = "com.mirantis.docker.DockerStandaloneHost"
	packageAnyImage       = "com.example.docker.DockerApp"
	packageRoute          = "io.burano.Route"
	packageGateways       = "io.burano.Gateways"
	packagePrometheus     = "io.burano.Prometheus"
)

// Config has the server's settings for the bodies.
type Config struct {
	known.Reach
	// Binary is the burano program that is copied onto masters and gateways.
	Binary string
	// Images keeps container images on their way from Glance to nodes; nil where none are brought.
	Images *workloads.ImageFolder
	// Applications are the names of the container images that `burano image build-from` knows; errors name them.
	Applications []string
	// Networks is the range from which environments get a /24 of their own; it must not overlap the cluster's own networks.
	Networks netip.Prefix
	// ExternalNetwork is the name or id of the external network of environments that name none; "" for the first of the cloud.
	ExternalNetwork string
	// DNSServers are the name servers of new networks that name none.
	DNSServers []string
	// SSHFrom are the ranges from which servers of clusters let SSH in; nil for everywhere.
	SSHFrom []string
	// Region is the name of the region of environments that name none.
	Region string
	// ServerPatience is how long a change of servers may take until all of them run.
	ServerPatience time.Duration
	// SSHPatience is how long a server that runs may take until its sshd answers.
	SSHPatience time.Duration
	// StepPatience is how long one step of a node may take, and DrainPatience how long the pods of a node that is removed.
	StepPatience, DrainPatience time.Duration
	// Issued is nodes.Config.Issued.
	Issued func() time.Time
	// TokenGrace is nodes.Config.TokenGrace.
	TokenGrace time.Duration
	// ShareContainer shares the container of a project for snapshots with the server (openstack.Service).
	ShareContainer func(ctx context.Context, project *openstack.Project, name string) (address string, err error)
}

// Methods binds the bodies to one task. With a nil runtime the table serves only to compare its names with the classes.
func Methods(runtime task.Runtime, config Config) muranopl.Natives {
	natives, _ := assemble(runtime, config, false)
	return natives
}

// assemble makes the bodies of all classes, each with its parts.
func assemble(runtime task.Runtime, config Config, rehearsal bool) (muranopl.Natives, *ownStacks) {
	objects := task.Objects{Model: func() *muranopl.Object { return runtime.Model() }}
	reports := task.Reports{Runtime: runtime, Logger: config.Logger}
	settings := nodeSettings{runtime}
	servers := servers{runtime, reports, settings}
	regions := regions{runtime, config.Region}
	stacks := &heatStacks{runtime: runtime, regions: regions, adopts: func(ctx context.Context) (bool, error) {
		root := runtime.Model()
		if root == nil {
			return false, nil
		}
		_, adopted, err := runtime.Attribute(ctx, root, engine.AttributeAdopted)
		return adopted, err
	}}
	once := &task.Once{}
	images := workloads.Images{Runtime: runtime, Logger: config.Logger, Folder: config.Images, Applications: config.Applications}
	clusters := &clusters{runtime: runtime, objects: objects, reports: reports, once: once, servers: servers, stacks: stacks, successions: successions{runtime}, settings: settings, groups: groups{runtime},
		masters: furtherMasters{runtime}, images: images, server: config}
	first := &ownStack{runtime: runtime, objects: objects, reports: reports, stacks: stacks, servers: servers, nodes: clusters, patience: config.ServerPatience,
		rehearsal: rehearsal, refused: &refusals{}, deploying: &atomic.Bool{}}
	own := &ownStacks{first: first, regions: regions}
	first.all = own
	reached := &applicationServers{runtime: runtime, objects: objects, reports: reports, stacks: stacks, config: config, rehearsal: rehearsal}

	hosting := &workloads.Hosting{Runtime: runtime, Objects: objects, Reports: reports}
	pods := workloads.Pods{Runtime: runtime, Reports: reports, Once: once, Hosting: hosting, Clusters: clusters, Images: images}
	hosts := workloads.StandaloneHosts{Runtime: runtime, Regions: regions, Objects: objects, Reports: reports, Once: once, Hosting: hosting, Servers: reached, Images: images}
	cluster := clusterClass{runtime, objects, reports, once, first, clusters}

	language := core.Methods(host{runtime, regions}, config.Logger)
	maps.Copy(language, map[string]map[string]muranopl.NativeMethod{
		task.ClassEnvironment:      environment{own, clusters}.methods(),
		task.ClassHeatStack:        heatStackClass{runtime, stacks, own, config.ServerPatience}.methods(),
		task.ClassNetworkExplorer:  (&explorer{runtime: runtime, regions: regions, objects: objects, reports: reports, stacks: stacks, networks: config.Networks, dns: config.DNSServers, external: config.ExternalNetwork}).methods(),
		task.ClassInstanceNotifier: notifier{runtime}.methods(),
		task.ClassMetadefBrowser:   (&definitions{regions: regions}).methods(),
		task.ClassInstance:         reached.methods(),
		task.ClassUser:             {"describeCurrent": identities{runtime}.user},
		task.ClassProject:          {"describeCurrent": identities{runtime}.project},
		task.ClassAgent:            newAgentClass(runtime, reports, reached, rehearsal).methods(),
	})
	return muranopl.Natives{
		packageCore:       language,
		packageInterfaces: {task.ClassApplication: workloads.Applications{Runtime: runtime, Objects: objects, Pods: pods, Alone: hosts}.Methods()},
		packageCluster: {
			task.ClassCluster:     cluster.methods(),
			task.ClassMinionGroup: groups{runtime}.methods(),
		},
		packagePod:                   {task.ClassPod: pods.Methods()},
		packageStandaloneHost:        {task.ClassStandaloneHost: hosts.Methods()},
		packageAnyImage:              {task.ClassAnyImage: workloads.AnyImage{}.Methods()},
		packageGateways:              {task.ClassGateways: cluster.gatewayMethods()},
		packageRoute:                 {task.ClassRoute: workloads.Routes{Runtime: runtime, Objects: objects, Own: first, Regions: regions, Reports: reports, Clusters: clusters}.Methods()},
		packagePrometheus:            {task.ClassPrometheus: workloads.Prometheus{Runtime: runtime, Pods: pods}.Methods()},
		workloads.PackageHelmRelease: {workloads.ClassHelmRelease: workloads.Releases{Runtime: runtime, Reports: reports, Pods: pods}.Methods()},
	}, own
}

// host lets the language's own classes keep attributes, report, and know where they are.
type host struct {
	task.Runtime
	regions regions
}

// Home is the region of environments that name none.
func (h host) Home() string { return cmp.Or(h.regions.burano, core.DefaultRegion) }

// StackIn is the name of the environment's stack in a region, which is an object of it.
func (h host) StackIn(region *muranopl.Object) string {
	return h.regions.stackName(h.regions.Of(region))
}

// Attribute returns a value that code stored.
func (h host) Attribute(ctx context.Context, object *muranopl.Object, class, name string) (any, bool, error) {
	return h.CodeAttribute(ctx, object, class, name)
}

// SetAttribute stores a value of code.
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
