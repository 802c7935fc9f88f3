package nodes

import (
	"context"
	"fmt"
	"time"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/network"
)

// networkSteps connect pods. In some clusters the network keeps its data in Kubernetes, and not in etcd: each node has a Node object there then.
type networkSteps struct{ *deployment }

func (d networkSteps) steps() []step {
	lead, masters, units, registers := d.leads(), d.with(Master), d.design.driver.Units(), d.cluster.config.registers()
	var store, own []need
	if registers {
		store = at(lead, stepAccess, stepNetworkDefinitions)
		own = needs(store, ifPlanned(here(stepRegister, stepSettings, stepAPIServes, stepAPIForwarder)))
	}
	podless := only(d.with(Master, Gateway), d.cluster.config.podless)
	daemons := d.units(true, units.Daemons...)
	_, configures := d.design.driver.Configure()
	return []step{
		{name: stepNetworkDefinitions, on: lead, skipIf: !registers, after: here(stepAPIServes), run: d.networkDefinitions},
		{name: stepRegister, on: podless, after: needs(here(stepFiles), at(lead, stepAPIReady), ifPlanned(here(stepPodsEnd))), run: d.register},
		{name: stepLease, on: podless, after: needs(here(stepRegister), ifPlanned(here(stepAPIServes, stepAPIForwarder))), run: d.units(false, kube.LeaseUnit)},
		{name: stepForgetDead, on: lead, skipIf: len(d.dead) == 0, after: here(stepForwarder, stepAPIReady), run: d.forgetDead},
		// No step waits for the masters' routes to pods: they come when the busiest seconds are over.
		{name: stepNetwork, on: masters, after: needs(here(stepForwarder), at(lead, stepAPIReady), ifPlanned(here(stepForgetDead, stepPodsEnd)), own), run: daemons},
		{name: stepNetwork, on: d.with(Minion, Gateway), after: needs(here(stepForwarder), ifPlanned(here(stepFormerNode)), own), run: daemons},
		{name: stepNetworkControllers, on: serving(d.deployment, Master), skipIf: len(units.Controllers) == 0,
			after: needs(here(stepForwarder, stepAPIServes), at(lead, stepAPIServes, stepAccess), at(d.formerControllers(), stepFormerControllers), store), run: d.units(false, units.Controllers...)},
		{name: stepConfigureNetwork, on: lead, skipIf: !configures, after: here(stepNetwork), run: d.configureNetwork},
	}
}

// networkDefinitions makes the cluster know the pod network's kinds of objects, as the master's image has them.
func (d networkSteps) networkDefinitions(ctx context.Context, node Node) error {
	definitions, err := controlSteps(d).readDefinitions(ctx, node, "the kinds of Calico", network.CalicoDefinitions)
	if err != nil {
		return err
	}
	if definitions == nil {
		return fmt.Errorf("the image of %s has no definitions of Calico's kinds (%s), which calicoDatastore: %s needs: use one that is built with this release", node.Name,
			network.CalicoDefinitions, network.InKubernetes)
	}
	config, err := d.bootstrap(ctx)
	if err != nil {
		return err
	}
	return d.guarded(ctx, node, []string{"kube-apiserver"}, func(ctx context.Context) error {
		return wait.Every(pollEvery).For(time.Minute).Until(ctx, func(ctx context.Context) error {
			if err := kube.Define(ctx, config, definitions); err != nil {
				return wait.Again(err)
			}
			return nil
		})
	})
}

// register gives a node its Node object, in which the pod network keeps its data about the node.
func (d networkSteps) register(ctx context.Context, node Node) error {
	config, err := d.bootstrap(ctx)
	if err != nil {
		return err
	}
	if d.cluster.config.podless(node) {
		return kube.RegisterPodless(ctx, config, kubeNode(node), string(node.Role))
	}
	return kube.Register(ctx, config, node.Name, node.settings())
}

// forgetDead has the network forget nodes that leave and are gone: a new one may have the address of one of them.
func (d networkSteps) forgetDead(ctx context.Context, _ Node) error {
	config, err := d.bootstrap(ctx)
	if err != nil {
		return err
	}
	for _, node := range d.dead {
		if err := d.cluster.forgetNetwork(ctx, config, node); err != nil {
			return err
		}
	}
	return nil
}

// configureNetwork writes the settings of the network's store that nodes do not write.
func (d networkSteps) configureNetwork(ctx context.Context, node Node) error {
	script, _ := d.design.driver.Configure()
	_, err := d.script(ctx, node, script.Name, script.Body, script.Env)
	return err
}
