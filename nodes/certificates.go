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

// Due says whether the certificate is to be renewed by now: nodes get another one at the next deployment.
func (c Certificate) Due(now time.Time) bool { return c.Expires.Sub(now) <= pki.RenewBefore }

// Certificates are the cluster's authorities and the certificates of its nodes, the one first that ends first. Nodes are not asked: they have
// what was last deployed.
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
