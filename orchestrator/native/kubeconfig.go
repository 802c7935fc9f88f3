package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/orchestrator/backup"
	"github.com/burano/burano/orchestrator/desired"
)

// factsName is the secret with the data of a running cluster for a kubeconfig.
const factsName = "facts"

// facts are a cluster's data for use without its model.
type facts struct {
	Name  string       `json:"name"`
	API   string       `json:"api"` // URL at which users reach the API server
	Nodes []nodes.Node `json:"nodes"`
	// Network is where the nodes' addresses are; former versions did not note it.
	Network netip.Prefix `json:"network,omitzero"`
	// Further are further networks of nodes.
	Further []netip.Prefix `json:"further,omitempty"`
	// Addressing has the ranges of pods and Services; former versions had no choice, and did not store it.
	Addressing network.Addressing `json:"addressing,omitzero"`
	// Datastore is where the pod network keeps its data; former versions had no choice, and did not store it.
	Datastore network.Datastore `json:"datastore,omitempty"`
	// Encapsulation is of packets between its pods, and goes into its snapshots; former versions did not store it.
	Encapsulation network.Encapsulation `json:"encapsulation,omitempty"`
	// Virtual is the address that the gateways share; the zero value for none.
	Virtual nodes.VirtualAddress `json:"virtual,omitzero"`
	// SnapshotContainer is the address of the container for the cluster's snapshots, "" where there is none.
	SnapshotContainer string `json:"snapshot_container,omitempty"`
	// Groups are the groups of minions of the last deployment.
	Groups []groupFact `json:"groups,omitempty"`
	// Gateways are the limits by which the number of gateways follows connections; nil where it does not.
	Gateways *desired.GatewayLimits `json:"gateways,omitempty"`
	// Registry is the name of the cluster's own registry, "" for none.
	Registry string `json:"registry,omitempty"`
}

// clone is a copy whose lists may be changed.
func (f *facts) clone() *facts {
	if f == nil {
		return nil
	}
	copied := *f
	copied.Nodes, copied.Groups = slices.Clone(f.Nodes), slices.Clone(f.Groups)
	return &copied
}

// Secrets keeps the sealed values of environments.
type Secrets interface {
	Secret(ctx context.Context, environmentID, name string) ([]byte, bool, error)
	SetSecret(ctx context.Context, environmentID, name string, value []byte) error
}

// Kubeconfig makes a kubeconfig for the cluster that this object of the environment is. A cluster that was never up is a fault of
// kind NotFound.
func Kubeconfig(ctx context.Context, secrets Secrets, environmentID, objectID string, config Reach, person Person) (text []byte, err error) {
	return text, withCluster(ctx, secrets, environmentID, objectID, config, func(known facts, cluster *nodes.Cluster) error {
		text, err = cluster.Kubeconfig(ctx, known.API, person)
		return err
	})
}

// Person is a user of a cluster.
type Person = nodes.Person

// Groups of Kubernetes that every cluster knows: all rights, and Kubernetes' roles edit and view.
const (
	GroupAdmins  = kube.AdminsGroup
	GroupEditors = kube.EditorsGroup
	GroupReaders = kube.ReadersGroup
)

// Admin is the user with all rights, for 24 hours.
func Admin() Person { return nodes.Admin(0) }

// Credential is a person's credential for the API server.
type Credential struct {
	User        string    `json:"user"`
	Groups      []string  `json:"groups"`
	Certificate string    `json:"certificate"` // PEM
	Key         string    `json:"key"`         // PEM
	Expires     time.Time `json:"expires"`
}

// IssueCredential issues a certificate for a cluster to a person.
func IssueCredential(ctx context.Context, secrets Secrets, environmentID, objectID string, config Reach, person Person) (Credential, error) {
	made := Credential{User: person.User, Groups: person.Groups}
	err := withCluster(ctx, secrets, environmentID, objectID, config, func(_ facts, cluster *nodes.Cluster) error {
		pair, ends, err := cluster.Credential(ctx, person)
		made.Certificate, made.Key, made.Expires = string(pair.Certificate), string(pair.Key), ends.UTC().Truncate(time.Second)
		return err
	})
	return made, err
}

// SSHKey is the line of authorized_keys by which a machine lets a cluster's Burano in.
func SSHKey(ctx context.Context, secrets Secrets, environmentID, objectID string) (string, error) {
	return access.NewKeys(environmentVault{secrets, environmentID, objectID}).Public(ctx)
}

// GiveSSHKey keeps the private key with which Burano logs in to an external node of a cluster in place of its own, sealed, and returns its
// public half; nothing for its own again.
func GiveSSHKey(ctx context.Context, secrets Secrets, environmentID, objectID, node, private string) (string, error) {
	if !desired.HostName.MatchString(node) {
		return "", fault.New(fault.Invalid, "%q is no name of a node", node)
	}
	public, err := access.NewKeys(environmentVault{secrets, environmentID, objectID}).GiveKey(ctx, node, []byte(private))
	var unreadable *access.UnreadableKey
	if errors.As(err, &unreadable) {
		return "", fault.New(fault.Invalid, "The private key for %s: %w", node, err)
	}
	return public, err
}

// Reach is what reaching and saving clusters needs to know of the server.
type Reach struct {
	// Connected is called for each SSH connection to a node, with 1 when it begins and with -1 when it ends. May be nil.
	Connected func(change int)
	// MachineNetworks are the ranges in which clusters may have nodes on machines that no cloud made: users name the addresses to which Burano connects.
	// None: there are no such machines.
	MachineNetworks []netip.Prefix
	// Snapshots keeps snapshots of clusters; nil: none are taken.
	Snapshots Snapshots
	// SnapshotContainer is the name of the container for snapshots in each environment's project, "" for the database.
	SnapshotContainer string
	// Backups keeps backups of environments; nil: none are made.
	Backups *backup.Backups
	Logger  *slog.Logger
}

// withCluster does something with a cluster, outside of tasks.
func withCluster(ctx context.Context, secrets Secrets, environmentID, objectID string, config Reach, do func(known facts, cluster *nodes.Cluster) error) error {
	known, cluster, err := openCluster(ctx, secrets, environmentID, objectID, nodes.Config{Logger: config.Logger, Connected: config.Connected})
	if err != nil {
		return err
	}
	defer cluster.Close()
	return do(known, cluster)
}

// openCluster makes a cluster from its stored data, outside of tasks.
func openCluster(ctx context.Context, secrets Secrets, environmentID, objectID string, config nodes.Config) (facts, *nodes.Cluster, error) {
	keep := environmentVault{secrets, environmentID, objectID}
	known, err := factsOf(ctx, keep)
	if err != nil {
		return known, nil, err
	}
	config.Name, config.Nodes, config.Vault = known.Name, known.Nodes, keep
	config.Addressing, config.Datastore, config.Encapsulation = known.Addressing, known.Datastore, known.Encapsulation
	cluster, err := nodes.NewCluster(config)
	return known, cluster, err
}

// factsOf has the stored data of a cluster, outside of tasks.
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

// secretName is the name of a cluster's secret among the secrets of its environment.
func secretName(cluster, name string) string { return "cluster/" + cluster + "/" + name }
