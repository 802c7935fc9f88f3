// Package native holds the Go bodies of the embedded packages' classes that use the cloud, servers and Kubernetes.
package native

import (
	"context"
	"maps"
	"net/netip"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/agent"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/stacks"
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
	return assemble(runtime, config, false).natives
}

// bodies are the bodies of all classes, with the parts that rehearsals and questions use.
type bodies struct {
	natives  muranopl.Natives
	stacks   *stacks.OwnStacks
	clusters *clusters
}

// assemble makes the bodies of all classes, each with its parts.
func assemble(runtime task.Runtime, config Config, rehearsal bool) bodies {
	objects := task.Objects{Model: func() *muranopl.Object { return runtime.Model() }}
	reports := task.Reports{Runtime: runtime, Logger: config.Logger}
	settings := nodeSettings{runtime}
	servers := servers{runtime, reports}
	own := stacks.New(runtime, objects, reports, stacks.Settings{Region: config.Region, Networks: config.Networks, DNSServers: config.DNSServers, ExternalNetwork: config.ExternalNetwork,
		Patience: config.ServerPatience}, rehearsal)
	once := &task.Once{}
	images := workloads.Images{Runtime: runtime, Logger: config.Logger, Folder: config.Images, Applications: config.Applications}
	clusters := &clusters{runtime: runtime, objects: objects, reports: reports, once: once, servers: servers, stacks: own.Templates, successions: successions{runtime}, settings: settings, groups: groups{runtime},
		masters: furtherMasters{runtime}, images: images, server: config}
	own.First.Nodes = clusters
	reached := agent.NewServers(runtime, objects, reports, own.Templates, agent.Settings{SSHPatience: config.SSHPatience, ServerPatience: config.ServerPatience, Connected: config.Connected}, rehearsal)

	hosting := &workloads.Hosting{Runtime: runtime, Objects: objects, Reports: reports}
	pods := workloads.Pods{Runtime: runtime, Reports: reports, Once: once, Hosting: hosting, Clusters: clusters, Images: images}
	hosts := workloads.StandaloneHosts{Runtime: runtime, Regions: own.Regions, Objects: objects, Reports: reports, Once: once, Hosting: hosting, Servers: reached, Images: images}
	cluster := clusterClass{runtime, objects, reports, once, own.First, clusters}

	language := own.Methods()
	maps.Copy(language, map[string]map[string]muranopl.NativeMethod{
		task.ClassEnvironment: environment{own, clusters}.methods(),
		task.ClassInstance:    reached.Methods(),
		task.ClassAgent:       agent.New(runtime, reports, reached, rehearsal).Methods(),
	})
	natives := muranopl.Natives{
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
		packageRoute:                 {task.ClassRoute: workloads.Routes{Runtime: runtime, Objects: objects, Own: own.First, Regions: own.Regions, Reports: reports, Clusters: clusters}.Methods()},
		packagePrometheus:            {task.ClassPrometheus: workloads.Prometheus{Runtime: runtime, Pods: pods}.Methods()},
		workloads.PackageHelmRelease: {workloads.ClassHelmRelease: workloads.Releases{Runtime: runtime, Reports: reports, Pods: pods}.Methods()},
	}
	return bodies{natives, own, clusters}
}
