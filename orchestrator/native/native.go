// Package native has the table of all Go bodies of the embedded packages' classes, and the classes of environments and clusters.
package native

import (
	"maps"
	"net/netip"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/agent"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/definitions"
	"github.com/burano/burano/orchestrator/nodesteps"
	"github.com/burano/burano/orchestrator/routes"
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
	clusters.Settings
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
	// Region is the name of the region of environments that name none.
	Region string
}

// Methods binds the bodies to one task. With a nil runtime the table serves only to compare its names with the classes.
func Methods(runtime task.Runtime, config Config) muranopl.Natives {
	return assemble(runtime, config, false).natives
}

// bodies are the bodies of all classes, with the parts that rehearsals and questions use.
type bodies struct {
	natives  muranopl.Natives
	stacks   *stacks.OwnStacks
	clusters *clusters.Clusters
}

// assemble makes the bodies of all classes, each with its parts.
func assemble(runtime task.Runtime, config Config, rehearsal bool) bodies {
	objects := task.Objects{Model: func() *muranopl.Object { return runtime.Model() }}
	reports := task.Reports{Runtime: runtime, Logger: config.Logger}
	own := stacks.New(runtime, objects, reports, stacks.Settings{Region: config.Region, Networks: config.Networks, DNSServers: config.DNSServers, ExternalNetwork: config.ExternalNetwork,
		Patience: config.ServerPatience}, rehearsal)
	once := &task.Once{}
	images := workloads.Images{Runtime: runtime, Logger: config.Logger, Folder: config.Images, Applications: config.Applications}
	kubernetes := clusters.New(runtime, objects, reports, once, own, images, config.Settings)
	reached := agent.NewServers(runtime, objects, reports, own.Templates, agent.Settings{SSHPatience: config.SSHPatience, ServerPatience: config.ServerPatience, Connected: config.Connected}, rehearsal)

	hosting := &workloads.Hosting{Runtime: runtime, Objects: objects, Reports: reports}
	pods := workloads.Pods{Runtime: runtime, Reports: reports, Once: once, Hosting: hosting, Clusters: kubernetes, Images: images}
	hosts := workloads.StandaloneHosts{Runtime: runtime, Regions: own.Regions, Objects: objects, Reports: reports, Once: once, Hosting: hosting, Servers: reached, Images: images}
	defined := definitions.New(kubernetes)
	cluster := clusterClass{kubernetes, defined}
	ofClusters := nodesteps.New(kubernetes).Methods()
	maps.Copy(ofClusters[nodesteps.ClassMinion], defined.MinionMethods())
	maps.Copy(ofClusters, map[string]map[string]muranopl.NativeMethod{task.ClassCluster: cluster.methods(), task.ClassMinionGroup: kubernetes.Groups.Methods()})

	language := own.Methods()
	maps.Copy(language, map[string]map[string]muranopl.NativeMethod{
		task.ClassEnvironment: environment{own, kubernetes, defined, runtime, sleeper{kubernetes, runtime, reports}}.methods(),
		task.ClassInstance:    reached.Methods(),
		task.ClassAgent:       agent.New(runtime, reports, reached, rehearsal).Methods(),
	})
	natives := muranopl.Natives{
		packageCore:                  language,
		packageInterfaces:            {task.ClassApplication: workloads.Applications{Runtime: runtime, Objects: objects, Pods: pods, Alone: hosts}.Methods()},
		packageCluster:               ofClusters,
		packagePod:                   {task.ClassPod: pods.Methods()},
		packageStandaloneHost:        {task.ClassStandaloneHost: hosts.Methods()},
		packageAnyImage:              {task.ClassAnyImage: workloads.AnyImage{}.Methods()},
		packageGateways:              {task.ClassGateways: cluster.gatewayMethods()},
		packageRoute:                 {task.ClassRoute: routes.Routes{Runtime: runtime, Objects: objects, Own: own.First, Regions: own.Regions, Reports: reports, Clusters: kubernetes}.Methods()},
		packagePrometheus:            {task.ClassPrometheus: workloads.Prometheus{Runtime: runtime, Pods: pods}.Methods()},
		workloads.PackageHelmRelease: {workloads.ClassHelmRelease: workloads.Releases{Runtime: runtime, Reports: reports, Pods: pods}.Methods()},
	}
	return bodies{natives, own, kubernetes}
}
