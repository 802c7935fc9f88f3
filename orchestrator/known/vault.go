package known

import (
	"context"
	"errors"
	"strings"

	"github.com/burano/burano/nodes"
)

// Vault keeps a cluster's secrets among the secrets of its environment.
type Vault struct {
	Runtime interface {
		Secret(ctx context.Context, name string) ([]byte, bool, error)
		SetSecret(ctx context.Context, name string, value []byte) error
	}
	Cluster string
}

// Load implements nodes.Vault.
func (v Vault) Load(ctx context.Context, name string) ([]byte, bool, error) {
	return v.Runtime.Secret(ctx, SecretName(v.Cluster, name))
}

// Store implements nodes.Vault.
func (v Vault) Store(ctx context.Context, name string, value []byte) error {
	return v.Runtime.SetSecret(ctx, SecretName(v.Cluster, name), value)
}

// ClusterIDs are the ids of the objects of an environment's clusters that were ever up.
func ClusterIDs(ctx context.Context, rows interface {
	Names(ctx context.Context, environmentID, prefix, suffix string) ([]string, error)
}, environmentID string) ([]string, error) {
	prefix, suffix := SecretName("", ""), "/"+FactsName
	prefix = strings.TrimSuffix(prefix, "/")
	names, err := rows.Names(ctx, environmentID, prefix, suffix)
	var ids []string
	for _, name := range names {
		if id := strings.TrimSuffix(strings.TrimPrefix(name, prefix), suffix); id != "" && !strings.Contains(id, "/") {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// ForgetClusters has the clusters of an environment that was deleted begin anew: their servers are gone.
func ForgetClusters(ctx context.Context, rows interface {
	Names(ctx context.Context, environmentID, prefix, suffix string) ([]string, error)
}, secrets Secrets, environmentID string) error {
	ids, err := ClusterIDs(ctx, rows, environmentID)
	for _, id := range ids {
		err = errors.Join(err, nodes.Forget(ctx, EnvironmentVault{secrets, environmentID, id}))
	}
	return err
}

// Secrets keeps the sealed values of environments.
type Secrets interface {
	Secret(ctx context.Context, environmentID, name string) ([]byte, bool, error)
	SetSecret(ctx context.Context, environmentID, name string, value []byte) error
}

// EnvironmentVault is the vault of a cluster outside of tasks.
type EnvironmentVault struct {
	Secrets              Secrets
	Environment, Cluster string
}

// Load implements nodes.Vault.
func (v EnvironmentVault) Load(ctx context.Context, name string) ([]byte, bool, error) {
	return v.Secrets.Secret(ctx, v.Environment, SecretName(v.Cluster, name))
}

// Store implements nodes.Vault.
func (v EnvironmentVault) Store(ctx context.Context, name string, value []byte) error {
	return v.Secrets.SetSecret(ctx, v.Environment, SecretName(v.Cluster, name), value)
}

// SecretName is the name of a cluster's secret among the secrets of its environment.
func SecretName(cluster, name string) string { return "cluster/" + cluster + "/" + name }
