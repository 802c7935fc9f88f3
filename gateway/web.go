package gateway

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/burano/burano/gateway/haproxy"
	"github.com/burano/burano/gateway/route"
)

// certificate is a Secret's certificate with its key.
type certificate struct {
	namespace, secret string
	pem               []byte
}

// unseal reads a certificate that is sealed for this gateway.
func (g *gateway) unseal(key string, value []byte) (certificate, error) {
	sealed, err := route.DecodeSealed(key, value)
	if err != nil {
		return certificate{}, err
	}
	content, err := g.key.Open(sealed.Box)
	if err != nil {
		return certificate{}, fmt.Errorf("open the certificate %s: %w", key, err)
	}
	return certificate{namespace: sealed.Namespace, secret: sealed.Secret, pem: content}, nil
}

// wanted returns the hosts and paths in etcd; known is false as long as it was never read.
func (g *gateway) wanted() (web haproxy.Web, known bool) {
	parts, known := g.web.Values()
	certificates, opened := g.sealed.Values()
	if !known || !opened {
		return web, false
	}
	web.HTTP = route.Assemble(parts).For(g.config.Name)
	type name struct{ namespace, secret string }
	hosts, shown := make(map[name][]string), make(map[string]bool)
	taken := make(map[string]bool)
	for _, site := range web.Sites {
		maps.Copy(shown, site.Secrets())
		for _, one := range site.Certificates {
			if !taken[one.Host] {
				taken[one.Host] = true
				of := name{cmp.Or(one.Namespace, site.Namespace), one.Secret}
				hosts[of] = append(hosts[of], one.Host)
			}
		}
	}
	byDefault := slices.IndexFunc(web.Sites, func(site route.Site) bool { return site.Default != "" })
	for _, one := range certificates {
		if secret := one.namespace + "/" + one.secret; shown[secret] {
			web.Shown = append(web.Shown, haproxy.Certificate{Name: secret, PEM: one.pem})
		}
		if byDefault >= 0 && one.namespace == web.Sites[byDefault].Namespace && one.secret == web.Sites[byDefault].Default {
			web.Default = &haproxy.Certificate{Name: one.namespace + "/" + one.secret, PEM: one.pem}
		}
		if mine := hosts[name{one.namespace, one.secret}]; len(mine) > 0 {
			slices.Sort(mine)
			web.Certificates = append(web.Certificates, haproxy.Certificate{Name: one.namespace + "/" + one.secret, Hosts: mine, PEM: one.pem})
		}
	}
	return web, true
}

// tellPatience is the limit of one try; serving does not wait for etcd.
const tellPatience = 2 * time.Second

// tellKey says in etcd to what certificates for this gateway are sealed.
func (g *gateway) tellKey(ctx context.Context) {
	if g.config.Name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tellPatience)
	defer cancel()
	key := route.KeyOf(g.config.Name)
	value, err := route.EncodeKey(route.PublicKey{Gateway: g.config.Name, Public: g.key.Public()})
	var present *clientv3.GetResponse
	if err == nil {
		present, err = g.config.Etcd.Get(ctx, key)
	}
	if err == nil && (len(present.Kvs) == 0 || !bytes.Equal(present.Kvs[0].Value, value)) {
		_, err = g.config.Etcd.Put(ctx, key, string(value))
	}
	if err != nil {
		g.config.Logger.Warn("certificates are not sealed for this gateway: etcd does not take its key; trying again", "error", err)
	}
}
