package nodes

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/ssh"
)

// minionSteps make nodes take pods.
type minionSteps struct{ *deployment }

func (d minionSteps) steps() []step {
	lead, minions, registers := d.leads(), only(d.present(), Node.RunsPods), d.cluster.config.registers()
	set := only(minions, func(node Node) bool { return d.again || !node.settings().IsZero() })
	began := needs(here(stepForwarder), ifPlanned(here(stepFormerNode)), at(lead, stepAPIReady))
	return []step{
		{name: stepFormerNode, on: minions, skipIf: !d.again, after: needs(here(stepForwarder), at(lead, stepAPIReady)), run: d.formerNode},
		{name: stepRuntime, on: minions, after: here(stepFiles), run: d.runtime},
		{name: stepContainerImages, on: minions, skipIf: len(d.images) == 0, after: here(stepRuntime), run: d.podImages},
		{name: stepSettings, on: minions, skipIf: !registers, after: began, run: networkSteps(d).register},
		{name: stepSettings, on: set, skipIf: registers, after: began, run: d.applySettings},
		{name: stepKubelet, on: minions, after: needs(here(stepForwarder, stepRuntime), at(lead, stepAccess), ifPlanned(here(stepAPIForwarder, stepAPIServes, stepFormerNode, stepContainerImages, stepSettings))),
			soft: []soft{{name: stepAdmit, nodes: d.with(Gateway), limit: joinGrace}}, // pods are asked as soon as they run
			run:  d.kubelet},
		{name: stepNodeReady, on: minions, after: here(stepKubelet, stepNetwork), run: d.nodeReady},
	}
}

// formerNode deletes the Node object of a server that had the node's name before. The pods on it are made elsewhere, and the new kubelet registers itself.
// The machine id shows that the object is of another server, so that a node which is only started again keeps its object.
func (d minionSteps) formerNode(ctx context.Context, node Node) error {
	config, err := d.bootstrap(ctx)
	if err != nil {
		return err
	}
	machine := d.found(node).facts.machine
	former := false
	err = d.guarded(ctx, d.cluster.master(), []string{"kube-apiserver"}, func(ctx context.Context) error {
		return kube.Wait(ctx, config, kube.NodeRef(node.Name), func(object *unstructured.Unstructured) (bool, string, error) {
			former = false
			if object != nil {
				registered, _, _ := unstructured.NestedString(object.Object, "status", "nodeInfo", "machineID")
				former = registered != "" && machine != "" && registered != machine
			}
			return true, "", nil
		})
	})
	if err != nil || !former {
		return err
	}
	if err := kube.Delete(ctx, config, kube.NodeRef(node.Name)); err != nil {
		return err
	}
	d.report(ctx, node, "the Node object of its former server was deleted")
	return nil
}

// runtime starts the container runtime, and loads the images that came with the node image.
func (d minionSteps) runtime(ctx context.Context, node Node) error {
	out, err := d.startAnd(ctx, node, ssh.Script{Name: "import container images", Body: runtimeScript + imagesScript}, d.found(node).runtime...)
	if err != nil {
		return err
	}
	if names := strings.ReplaceAll(strings.TrimSpace(out), "imported ", ""); names != "" {
		d.report(ctx, node, "container images imported: "+strings.ReplaceAll(names, "\n", ", "))
	}
	return nil
}

// podImages is the step that gives a node the images of pods before its kubelet runs. A node without them is better than no node: missing images are
// reported, and the next deployment tries again.
func (d minionSteps) podImages(ctx context.Context, node Node) error {
	bounded, cancel := context.WithTimeout(ctx, d.cluster.config.StepPatience*3/4)
	defer cancel()
	if err := d.cluster.bringImages(bounded, node, d.images); err != nil {
		if ctx.Err() != nil {
			return err
		}
		d.report(ctx, node, fmt.Sprintf("container images of pods are missing, which do not start here until the next deployment brings them: %v", err))
	}
	return nil
}

// applySettings is the step that gives a node its labels, taints and state before its kubelet runs.
func (d minionSteps) applySettings(ctx context.Context, node Node) error {
	config, err := d.bootstrap(ctx)
	if err != nil {
		return err
	}
	return kube.ApplySettings(ctx, config, node.Name, node.settings())
}

// kubelet starts a node's kubelet and kube-proxy. A master that had a Node object without a kubelet renews its lease by the kubelet from now on.
func (d minionSteps) kubelet(ctx context.Context, node Node) error {
	if node.Role == Master && d.cluster.config.registers() {
		if _, err := d.script(ctx, node, "end "+kube.LeaseUnit, endUnitScript, map[string]string{"UNIT": kube.LeaseUnit}); err != nil {
			return err
		}
	}
	return d.start(ctx, node, false, "kubelet", "kube-proxy")
}

// nodeReady watches the node's object until it takes pods.
func (d minionSteps) nodeReady(ctx context.Context, node Node) error {
	config, err := d.bootstrap(ctx)
	if err != nil {
		return err
	}
	if d.again {
		if err := d.registerAgain(ctx, node, config); err != nil {
			return err
		}
	}
	waited := false
	var found *unstructured.Unstructured
	units := slices.Concat([]string{"kubelet"}, d.found(node).runtime, d.design.driver.Units().Daemons)
	err = d.guarded(ctx, node, units, func(ctx context.Context) error {
		return kube.Wait(ctx, config, kube.NodeRef(node.Name), func(object *unstructured.Unstructured) (bool, string, error) {
			done, missing, err := kube.NodeReady(object)
			waited, found = waited || !done, object
			return done, missing, err
		})
	})
	if err != nil {
		return err
	}
	if waited {
		d.report(ctx, node, "ready for pods")
	}
	if err := kube.InService(ctx, config, found); err != nil { // its server may have been off
		return err
	}
	if !kube.Leaving(found) {
		return nil
	}
	return kube.Uncordon(ctx, config, node.Name) // its removal was given up
}

//go:embed scripts/register-again.sh
var registerAgainScript string

// isRegistered is true if a kubelet has registered a node. An object of another maker, such as Burano's for a node's labels, lacks the fields that only
// the kubelet fills in.
func isRegistered(object *unstructured.Unstructured) bool {
	return object != nil && object.GetLabels()[corev1.LabelHostname] != ""
}

const (
	// registrationPause is how often a young kubelet is asked again, and registrationPatience how long: longer than the age at which the script starts it anew.
	registrationPause    = 2 * time.Second
	registrationPatience = time.Minute
)

// registerAgain has a node be registered whose Node object is gone, as after `kubectl delete node`: a kubelet registers its node when it starts, and not
// again, however long it is waited for. One that has just started may be about to, so it gets some time. Calico's controllers forget such a node, too, so
// its daemons there start anew.
func (d minionSteps) registerAgain(ctx context.Context, node Node, config *rest.Config) error {
	return wait.Every(registrationPause).For(registrationPatience).Until(ctx, func(ctx context.Context) error {
		var found *unstructured.Unstructured
		err := d.guarded(ctx, d.cluster.master(), []string{"kube-apiserver"}, func(ctx context.Context) error {
			return kube.Wait(ctx, config, kube.NodeRef(node.Name), func(object *unstructured.Unstructured) (bool, string, error) {
				found = object
				return true, "", nil
			})
		})
		if err != nil || isRegistered(found) {
			return err
		}
		out, err := d.script(ctx, node, "register again", registerAgainScript, map[string]string{"DAEMONS": strings.Join(d.design.driver.Units().Daemons, "\n")})
		switch {
		case err != nil:
			return err
		case strings.TrimSpace(out) == "young":
			return wait.Again(errors.New("its kubelet has just started, and has not registered it yet"))
		}
		d.report(ctx, node, "Kubernetes did not know it any more: its kubelet was started anew, and registers it")
		return nil
	})
}
