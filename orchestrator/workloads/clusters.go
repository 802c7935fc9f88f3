// Package workloads holds the Go bodies of the classes that run in clusters or use their gateways: pods, rollouts, Helm releases, routes, standalone hosts.
package workloads

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/openstack"
)

// Clusters are the clusters of the model that workloads run in.
type Clusters interface {
	// EnsureOpen connects to a cluster as it is; Close ends all connections.
	EnsureOpen(ctx context.Context, cluster *muranopl.Object) error
	Close()
	Live(cluster *muranopl.Object) (*nodes.Cluster, error)
	Kubernetes(ctx context.Context, cluster *muranopl.Object) (*rest.Config, error)
	PodNetwork(ctx context.Context, cluster *muranopl.Object) (desired.PodNetwork, error)
	GatewayAddresses(cluster *muranopl.Object) []string
	// Await makes the end of the deployment wait until gateways answer at these ports.
	Await(cluster *muranopl.Object, ports ...uint16)
	// Remaining is the cluster of a destroyed object, and StillThere the cluster itself; nil if it is destroyed, too.
	Remaining(ctx context.Context, call muranopl.Call) (*muranopl.Object, error)
	StillThere(ctx context.Context, interpreter *muranopl.Interpreter, was *muranopl.Object) (*muranopl.Object, error)
}

// Regions are the regions of servers.
type Regions interface {
	Of(object *muranopl.Object) string
	Project(ctx context.Context, region string) (*openstack.Project, error)
}

// Template is the template of the environment's own stack.
type Template interface {
	Amend(ctx context.Context, interpreter *muranopl.Interpreter, change func(resources map[string]any) (changed bool)) error
}

// vaultSecrets are the secrets of the environment.
type vaultSecrets interface {
	Secret(ctx context.Context, name string) ([]byte, bool, error)
	SetSecret(ctx context.Context, name string, value []byte) error
}
