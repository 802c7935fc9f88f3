package nodes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/burano/burano/nodes/pki"
)

// Certificate is a certificate of a cluster.
type Certificate struct {
	Node    string // "" for an authority
	Name    string
	Expires time.Time
}

// Due is true if nodes get a new certificate at the next deployment.
func (c Certificate) Due(now time.Time) bool { return c.Expires.Sub(now) <= pki.RenewBefore }

// Certificates are the cluster's authorities and the certificates of its nodes, the earliest end first. Nodes are not asked: they have the certificates of
// the last deployment.
func (c *Cluster) Certificates(ctx context.Context) ([]Certificate, error) {
	authorities, err := c.authorities(ctx)
	if err != nil {
		return nil, err
	}
	var list []Certificate
	for name, authority := range authorities.Authorities() {
		list = append(list, Certificate{Name: name, Expires: authority.NotAfter()})
	}
	for _, node := range c.config.Nodes {
		ends, err := pki.Expiries(ctx, c.config.Vault, vaultNode+node.Name)
		if err != nil {
			return nil, fmt.Errorf("certificates of %s: %w", node.Name, err)
		}
		for name, end := range ends {
			list = append(list, Certificate{Node: node.Name, Name: name, Expires: end})
		}
	}
	slices.SortFunc(list, func(a, b Certificate) int {
		return cmp.Or(a.Expires.Compare(b.Expires), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}
