package pki

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Authorities are the cluster's authorities, by their purpose.
func (c *Cluster) Authorities() map[string]*Authority {
	return map[string]*Authority{"etcd authority": c.Etcd, "etcd peers authority": c.EtcdPeers, "kubernetes authority": c.Kubernetes, "front-proxy authority": c.FrontProxy}
}

// NotAfter is when the authority ends.
func (a *Authority) NotAfter() time.Time { return a.certificate.NotAfter }

// Expiries are the ends of the certificates of a bundle, by their names; none when the Vault has no such bundle.
func Expiries(ctx context.Context, vault Vault, name string) (map[string]time.Time, error) {
	text, found, err := vault.Load(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("load certificates %s: %w", name, err)
	}
	ends := map[string]time.Time{}
	if !found {
		return ends, nil
	}
	var pairs map[string]Pair
	if err := json.Unmarshal(text, &pairs); err != nil {
		return nil, fmt.Errorf("read certificates %s: %w", name, err)
	}
	for name, pair := range pairs {
		certificate, err := parseCertificate(pair.Certificate)
		if err != nil {
			return nil, fmt.Errorf("read the certificate %s: %w", name, err)
		}
		ends[name] = certificate.NotAfter
	}
	return ends, nil
}
