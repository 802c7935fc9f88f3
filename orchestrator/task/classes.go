package task

import (
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/desired"
)

// Classes that bodies look for, with their methods and properties.
const (
	ClassEnvironment      = "io.murano.Environment"
	ClassInstance         = "io.murano.resources.Instance"
	ClassNodeServer       = "io.murano.resources.LinuxMuranoInstance"
	ClassUser             = "io.murano.User"
	ClassProject          = "io.murano.Project"
	ClassNeutronNetwork   = "io.murano.resources.NeutronNetwork"
	ClassCustomNetwork    = "io.murano.resources.CustomNeutronNetwork"
	ClassExistingNetwork  = "io.murano.resources.ExistingNeutronNetwork"
	ClassAgent            = "io.murano.system.Agent"
	ClassHeatStack        = "io.murano.system.HeatStack"
	ClassNetworkExplorer  = "io.murano.system.NetworkExplorer"
	ClassInstanceNotifier = "io.murano.system.InstanceNotifier"
	ClassMetadefBrowser   = "io.murano.system.MetadefBrowser"
	ClassApplication      = "com.mirantis.docker.DockerApplication"
	ClassContainerHost    = "com.mirantis.docker.DockerContainerHost"
	ClassCluster          = "com.mirantis.docker.kubernetes.KubernetesCluster"
	ClassMinionGroup      = "com.mirantis.docker.kubernetes.KubernetesMinionGroup"
	ClassNode             = "com.mirantis.docker.kubernetes.KubernetesNode"
	ClassPod              = "com.mirantis.docker.kubernetes.KubernetesPod"
	ClassStandaloneHost   = "com.mirantis.docker.DockerStandaloneHost"
	ClassPersistentVolume = "com.mirantis.docker.DockerPersistentVolume"
	ClassAnyImage         = "com.example.docker.DockerApp"
	ClassRoute            = "io.burano.Route"
	ClassGateways         = "io.burano.Gateways"
	ClassPrometheus       = "io.burano.Prometheus"
	MethodDeploy          = "deploy"
	MethodBeginDeploy     = "beginDeploy"
	MethodEndDeploy       = "endDeploy"
	MethodDestroy         = ".destroy"
	MethodGetContainer    = "getContainer"
	MethodHostContainer   = "hostContainer"
	MethodDropContainer   = "deleteContainer"
	ArgumentContainer     = "name"
	PropertyApplications  = "applications"
	PropertyNode          = "node" // of ClassNodeServer: the node of a cluster that the server is for
)

// Desired reads a cluster of the model.
func Desired(cluster *muranopl.Object) *desired.Cluster {
	return desired.Read(cluster, OnlyGateways(cluster))
}
