package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/plan"
	"github.com/burano/burano/nodes/ssh"
)

// Gateways alone are a cluster without masters and minions: it has no Kubernetes and no pod network. The etcd member of each gateway is a separate store,
// so that no gateway needs another one. Burano writes the published services into each store. A lost gateway loses nothing else, because the published
// services are in the Vault.

const (
	stepEtcdStore    = "etcd store"
	stepPublished    = "published routes"
	stepCertificates = "published certificates"
)

var errAlone = errors.New("gateways without a cluster have no Kubernetes, and nothing that it would know")

// Alone is true if all nodes are gateways.
func (c Config) Alone() bool { return Alone(c.Nodes) }

// Alone is true if all these nodes are gateways.
func Alone(list []Node) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(n Node) bool { return n.Role != Gateway })
}

// membersFor are the members of etcd that a node's forwarder knows.
func (d design) membersFor(node Node) []etcd.Node {
	if d.cluster.Alone() {
		return []etcd.Node{etcdNode(node)}
	}
	return d.etcdNodes()
}

// deployAlone makes the nodes gateways that serve the published services.
func (c *Cluster) deployAlone(ctx context.Context) error {
	if c.config.Binary == "" {
		return errors.New("gateways without a cluster need the burano program, and the server has none to copy")
	}
	d := &deployment{cluster: c, installed: map[string]installed{}, again: true}
	var err error
	if d.design, err = c.designAlone(ctx); err != nil {
		return err
	}
	if d.design.binary, err = digestOf(c.config.Binary); err != nil {
		return err
	}
	d.lookAtLeaving(ctx)
	d.lead = d.present()[0]
	published, err := c.published(ctx)
	if err != nil {
		return err
	}
	started := time.Now()
	records, err := c.run(ctx, d.planAlone(published))
	c.config.Logger.Info("gateways deployed", "cluster", c.config.Name, "took", time.Since(started).Round(time.Millisecond), "failed", err != nil, "criticalPath", describePath(plan.CriticalPath(records)))
	if err != nil {
		return fmt.Errorf("deploy gateways %s: %w", c.config.Name, failures(records, err))
	}
	return nil
}

func (c *Cluster) designAlone(ctx context.Context) (design, error) {
	made := design{cluster: c.config, driver: c.driver, peers: etcd.TrustPeers}
	for _, node := range c.config.staying() {
		if !node.Address.IsValid() {
			return made, fmt.Errorf("gateway %s has no address yet: its server must exist before it can be set up", node.Name)
		}
		made.voters = append(made.voters, node.Name)
	}
	var err error
	made.authorities, err = c.authorities(ctx)
	return made, err
}

// planAlone draws the graph. Gateways wait for each other only where they share an address.
func (d *deployment) planAlone(published publications) *plan.Plan {
	return d.draw(arrivalSteps{d}, fileSteps{d}, aloneSteps{etcdSteps{d}, published}, addressSteps{d}, serviceSteps{d})
}

// aloneSteps make gateways serve publications from stores of their own.
type aloneSteps struct {
	etcdSteps
	published publications
}

func (d aloneSteps) steps() []step {
	nodes := d.present()
	return []step{
		{name: stepEtcdStore, on: nodes, after: here(stepFiles), run: d.etcdStore},
		{name: stepForwarder, on: nodes, after: here(stepEtcdStore), run: d.units(true, "etcd-forwarder")},
		// A gateway that is new serves all at once.
		{name: stepPublished, on: nodes, after: here(stepEtcdStore), run: func(ctx context.Context, node Node) error {
			_, err := d.cluster.writeRoutes(ctx, node, d.published)
			return err
		}},
		{name: stepGateway, on: nodes, after: here(stepBinary, stepForwarder, stepPublished), run: d.units(true, "burano-gateway")},
		{name: stepCertificates, on: nodes, after: here(stepGateway), run: func(ctx context.Context, node Node) error { return d.cluster.serve(ctx, node, d.published) }},
	}
}

// etcdStore runs the member of a gateway, a new one where there are no data, and has it know its users.
func (d aloneSteps) etcdStore(ctx context.Context, node Node) error {
	found, err := d.etcdData(ctx, node)
	if err != nil {
		return err
	}
	if !found.there {
		own := etcdNode(node)
		if err := d.upload(ctx, node, etcd.Join(map[string]string{own.Name: own.PeerURL()}, "new", 0)); err != nil {
			return err
		}
	}
	if err := d.start(ctx, node, true, "etcd"); err != nil {
		return err
	}
	return d.cluster.withStore(ctx, node, func(client *clientv3.Client) error {
		return d.guarded(ctx, node, []string{"etcd"}, func(ctx context.Context) error { return etcd.Authorize(ctx, client) })
	})
}

// withStore gives a client of the store of a gateway alone to do.
func (c *store) withStore(ctx context.Context, node Node, do func(client *clientv3.Client) error) error {
	authorities, err := c.authorities(ctx)
	if err != nil {
		return err
	}
	client, err := c.etcdAt(ctx, authorities, etcd.Root, node)
	if err != nil {
		return err
	}
	defer client.Close()
	return do(client)
}

// removeAlone removes some of the gateways alone: they end the connections that they carry, and the others share no address with them.
func (c removal) removeAlone(ctx context.Context, leaving []Node) error {
	var names []string
	for _, node := range leaving {
		names = append(names, node.Name)
	}
	config := c.config
	config.Nodes = slices.DeleteFunc(slices.Clone(config.Nodes), func(node Node) bool { return slices.Contains(names, node.Name) })
	p := &plan.Plan{}
	for _, node := range leaving {
		c.addStep(p, plan.Step{Name: stepCloseGateway}, node, farewellLimit*2, func(ctx context.Context, _ plan.Progress) error {
			c.polite(ctx, node, "close its connections", ssh.Script{Name: "close gateway", Body: closeGatewayScript})
			return nil
		})
	}
	if _, err := c.run(ctx, p); err != nil {
		return fmt.Errorf("remove %s from gateways %s: %w", strings.Join(names, ", "), c.config.Name, err)
	}
	if config.Virtual.Address.IsValid() && len(config.gateways()) > 0 {
		staying, err := NewCluster(config)
		if err != nil {
			return err
		}
		defer staying.Close()
		if err := staying.Deploy(ctx); err != nil {
			return fmt.Errorf("remove %s: %w", strings.Join(names, ", "), err)
		}
	}
	for _, node := range leaving {
		if err := c.connections.Unconfirm(ctx, node.Name); err != nil {
			return err
		}
		c.config.Report(ctx, node.Name, "has left the gateways")
	}
	return nil
}

// stores reads the stores of gateways alone, each for itself, and the routes that they must serve.
func (a *asking) stores(ctx context.Context) error {
	gateways := a.cluster.config.gateways()
	a.status.Members = make([]MemberStatus, len(gateways))
	var all sync.WaitGroup
	for i, node := range gateways {
		found := &a.status.Members[i]
		found.Name = node.Name
		all.Go(func() {
			err := a.cluster.withStore(ctx, node, func(client *clientv3.Client) error {
				members, err := etcd.Members(ctx, client)
				if err != nil {
					return err
				}
				found.Space, err = etcd.SpaceOf(ctx, client, members[0])
				return err
			})
			if found.Answers = err == nil; !found.Answers {
				a.note("etcd of gateway "+node.Name, err)
			}
		})
	}
	all.Wait()
	published, err := a.cluster.published(ctx)
	if err != nil {
		return err
	}
	a.status.Routes = published.tcp()
	return nil
}

// serve gives a gateway alone the certificates of the published services, and waits until it serves them all.
func (c *gateways) serve(ctx context.Context, node Node, published publications) error {
	wanted, err := c.writeRoutes(ctx, node, published)
	if err != nil {
		return err
	}
	if wanted.Certificates, err = c.writeCertificates(ctx, node, published); err != nil {
		return err
	}
	return c.awaitServed(ctx, node, published, wanted)
}

// defragmentAlone is Defragment of gateways alone.
func (c *store) defragmentAlone(ctx context.Context) error {
	for _, node := range c.config.gateways() {
		err := c.config.Step(ctx, node.Name, "etcd defragmentation", func(ctx context.Context) error {
			return c.withStore(ctx, node, func(client *clientv3.Client) error { return etcd.Defragment(ctx, client) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ordersAlone are the certificates that a gateway alone needs.
func (d design) ordersAlone(node Node) map[string]pki.Order {
	return map[string]pki.Order{
		memberPair:  {Authority: d.authorities.Etcd, Request: etcdNode(node).CertificateRequest()},
		peerPair:    {Authority: d.authorities.EtcdPeers, Request: etcdNode(node).PeerRequest()},
		gatewayPair: {Authority: d.authorities.Etcd, Request: etcd.ClientRequest(etcd.Gateway)},
	}
}

// refusedPort is the reason why gateways alone cannot serve a port; "" when they can.
func refusedPort(port uint16) string {
	if purpose, reserved := route.Reserved(port); reserved {
		return fmt.Sprintf("port %d of gateways is reserved for %s", port, purpose)
	}
	return ""
}
