package native

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
)

// kubeconfigLifetime is how long the certificate in a downloaded kubeconfig is good.
const kubeconfigLifetime = 24 * time.Hour

// factsName is the secret that keeps what a kubeconfig needs to know of a cluster that is up.
const factsName = "facts"

// facts are what is known of a cluster without its model.
type facts struct {
	Name  string       `json:"name"`
	API   string       `json:"api"` // URL at which users reach the API server
	Nodes []nodes.Node `json:"nodes"`
	// Network is where the nodes' addresses are; former versions did not note it.
	Network netip.Prefix `json:"network,omitzero"`
	// Further are networks in which nodes stand beside it.
	Further []netip.Prefix `json:"further,omitempty"`
	// SnapshotContainer is the address of the container for the cluster's snapshots, "" where there is none.
	SnapshotContainer string `json:"snapshot_container,omitempty"`
	// Groups are those of minions, as they were deployed last.
	Groups []groupFact `json:"groups,omitempty"`
}

// Secrets keeps the sealed values of environments.
type Secrets interface {
	Secret(ctx context.Context, environmentID, name string) ([]byte, bool, error)
	SetSecret(ctx context.Context, environmentID, name string, value []byte) error
}

// Kubeconfig makes a kubeconfig for the cluster that this object of the environment is. A cluster that was never up is a fault of
// kind NotFound.
func Kubeconfig(ctx context.Context, secrets Secrets, environmentID, objectID string, config Config) ([]byte, error) {
	known, cluster, err := openCluster(ctx, secrets, environmentID, objectID, nodes.Config{Logger: config.Logger, Connected: config.Connected})
	if err != nil {
		return nil, err
	}
	defer cluster.Close()
	return cluster.Kubeconfig(ctx, known.API, kubeconfigLifetime)
}

// openCluster makes a cluster, outside of tasks, of what is known of it.
func openCluster(ctx context.Context, secrets Secrets, environmentID, objectID string, config nodes.Config) (facts, *nodes.Cluster, error) {
	keep := environmentVault{secrets, environmentID, objectID}
	known, err := factsOf(ctx, keep)
	if err != nil {
		return known, nil, err
	}
	config.Name, config.Nodes, config.Vault = known.Name, known.Nodes, keep
	cluster, err := nodes.NewCluster(config)
	return known, cluster, err
}

// factsOf is what is known of a cluster, outside of tasks.
func factsOf(ctx context.Context, keep environmentVault) (known facts, err error) {
	text, found, err := keep.Load(ctx, factsName)
	if err != nil {
		return known, err
	}
	if !found {
		return known, fault.New(fault.NotFound, "Object %s is no Kubernetes cluster that was ever up: deploy the environment first", keep.cluster)
	}
	if err := json.Unmarshal(text, &known); err != nil {
		return known, fmt.Errorf("read the facts of cluster %s: %w", keep.cluster, err)
	}
	return known, nil
}

// environmentVault is the vault of a cluster outside of tasks.
type environmentVault struct {
	secrets              Secrets
	environment, cluster string
}

func (v environmentVault) Load(ctx context.Context, name string) ([]byte, bool, error) {
	return v.secrets.Secret(ctx, v.environment, secretName(v.cluster, name))
}

func (v environmentVault) Store(ctx context.Context, name string, value []byte) error {
	return v.secrets.SetSecret(ctx, v.environment, secretName(v.cluster, name), value)
}

// secretName is where a cluster's secrets lie among those of its environment.
func secretName(cluster, name string) string { return "cluster/" + cluster + "/" + name }
