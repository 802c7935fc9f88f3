package access

import (
	"context"
	"errors"
	"time"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/known"
)

// Kubeconfig makes a kubeconfig for the cluster that this object of the environment is. A cluster that was never up is a fault of
// kind NotFound.
func (c Clusters) Kubeconfig(ctx context.Context, environmentID, objectID string, person Person) (text []byte, err error) {
	return text, known.With(ctx, c.Secrets, environmentID, objectID, c.Config, func(known known.Facts, cluster *nodes.Cluster) error {
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

// Credential issues a certificate for a cluster to a person.
func (c Clusters) Credential(ctx context.Context, environmentID, objectID string, person Person) (Credential, error) {
	made := Credential{User: person.User, Groups: person.Groups}
	err := known.With(ctx, c.Secrets, environmentID, objectID, c.Config, func(_ known.Facts, cluster *nodes.Cluster) error {
		pair, ends, err := cluster.Credential(ctx, person)
		made.Certificate, made.Key, made.Expires = string(pair.Certificate), string(pair.Key), ends.UTC().Truncate(time.Second)
		return err
	})
	return made, err
}

// SSHKey is the line of authorized_keys by which a machine lets a cluster's Burano in.
func (c Clusters) SSHKey(ctx context.Context, environmentID, objectID string) (string, error) {
	return access.NewKeys(c.vault(environmentID, objectID)).Public(ctx)
}

// GiveSSHKey keeps the private key with which Burano logs in to an external node of a cluster in place of its own, sealed, and returns its
// public half; nothing for its own again.
func (c Clusters) GiveSSHKey(ctx context.Context, environmentID, objectID, node, private string) (string, error) {
	if !desired.HostName.MatchString(node) {
		return "", fault.New(fault.Invalid, "%q is no name of a node", node)
	}
	public, err := access.NewKeys(c.vault(environmentID, objectID)).GiveKey(ctx, node, []byte(private))
	var unreadable *access.UnreadableKey
	if errors.As(err, &unreadable) {
		return "", fault.New(fault.Invalid, "The private key for %s: %w", node, err)
	}
	return public, err
}
