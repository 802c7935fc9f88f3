package nodes

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes/kube"
)

// Masters can run pods, too: they have a kubelet then, with the label and the taint that masters have in other distributions, so that pods run there which
// tolerate it. When a master runs no pods any more, its pods leave, and its Node object goes. The master itself notices nothing of it.

const (
	vaultKubelets = "kubelets" // kubeletRecord as JSON
	// controlPlane is the label and the taint of masters that run pods.
	controlPlane = "node-role.kubernetes.io/control-plane"
	// leftPatience is how long pods of DaemonSets may take to leave a master.
	leftPatience = time.Minute
)

//go:embed scripts/end-pods.sh
var endPodsScript string

// masterKubelets are the kubelets of masters.
type masterKubelets struct{ *servers }

// kubeletRecord has the masters that have, or may have, a kubelet.
type kubeletRecord struct {
	Masters []string `json:"masters"`
	// Ever stays true once a master has run pods: CoreDNS keeps the form that it got then, so that it is not replaced another time.
	Ever bool `json:"ever,omitempty"`
}

// settings are all settings of a node's Node object: of users, and those of a master that runs pods.
func (n Node) settings() kube.Settings {
	settings := n.Settings
	if n.Role != Master {
		return settings
	}
	labels := map[string]string{controlPlane: "", corev1.LabelNodeExcludeBalancers: ""}
	maps.Copy(labels, settings.Labels)
	settings.Labels = labels
	settings.Taints = append(slices.Clone(settings.Taints), kube.Taint{Key: controlPlane, Effect: string(corev1.TaintEffectNoSchedule)})
	return settings
}

func (c masterKubelets) load(ctx context.Context) (record kubeletRecord, err error) {
	text, found, err := c.config.Vault.Load(ctx, vaultKubelets)
	if err == nil && found {
		err = json.Unmarshal(text, &record)
	}
	if err != nil {
		return record, fmt.Errorf("read which masters run pods: %w", err)
	}
	return record, nil
}

func (c masterKubelets) save(ctx context.Context, record kubeletRecord) error {
	text, err := json.Marshal(record)
	if err == nil {
		err = c.config.Vault.Store(ctx, vaultKubelets, text)
	}
	if err != nil {
		return fmt.Errorf("store which masters run pods: %w", err)
	}
	return nil
}

// choose records the masters that are about to run pods, and returns those that ran pods and are to run none, and whether any master has ever run pods.
func (c masterKubelets) choose(ctx context.Context) (former []Node, ever bool, err error) {
	record, err := c.load(ctx)
	if err != nil {
		return nil, false, err
	}
	changed := false
	for _, node := range c.config.staying() {
		switch has := slices.Contains(record.Masters, node.Name); {
		case node.Role != Master:
		case node.Pods && !has:
			record.Masters, record.Ever, changed = append(record.Masters, node.Name), true, true
		case !node.Pods && has:
			former = append(former, node)
		}
	}
	if changed {
		err = c.save(ctx, record)
	}
	return former, record.Ever, err
}

// mark marks the masters of a list that may have a kubelet, whatever is wanted of them.
func (c masterKubelets) mark(ctx context.Context, list []Node) error {
	record, err := c.load(ctx)
	for i, node := range list {
		list[i].Pods = node.Pods || slices.Contains(record.Masters, node.Name)
	}
	return err
}

// podsEndSteps have masters run no pods any more.
type podsEndSteps struct{ *deployment }

func (d podsEndSteps) steps() []step {
	former := only(d.present(), func(node Node) bool {
		return slices.ContainsFunc(d.podsEnd, func(other Node) bool { return other.Name == node.Name })
	})
	return []step{
		{name: stepDrain, on: former, after: needs(here(stepFiles), at(d.leads(), stepAPIReady, stepAccess)), limit: d.cluster.config.DrainPatience + farewellLimit, run: d.drain},
		{name: stepPodsEnd, on: former, after: here(stepDrain), limit: d.cluster.config.StepPatience, run: d.end},
	}
}

// drain moves the pods of a master to other nodes. When they do not go in time, the master takes pods again, and runs what it ran.
func (d podsEndSteps) drain(ctx context.Context, node Node) error {
	config, err := d.bootstrap(ctx)
	if err != nil {
		return err
	}
	volumes, err := kube.Volumes(ctx, config, kube.Local)
	if err != nil {
		return err
	}
	volumes = slices.DeleteFunc(volumes, func(volume kube.Volume) bool { return volume.Node != node.Name })
	if len(volumes) > 0 && !d.cluster.config.LoseVolumes {
		return &VolumesLost{volumes}
	}
	if err := kube.Cordon(ctx, config, node.Name); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, d.cluster.config.DrainPatience)
	defer cancel()
	if err := (removal{d.cluster}).drain(limited, config, node); err != nil {
		node.Pods = true // so that it takes pods again
		return removal{d.cluster}.stay(ctx, config, []Node{node}, err)
	}
	if attached, err := HasStorage(ctx, d.cluster.config.Vault, kube.Cinder, kube.Manila); err != nil || !attached {
		return err
	}
	return d.cluster.awaitDetached(ctx, config, node)
}

// end has pods of DaemonSets leave as they do from a locked node, ends the programs that ran pods, and deletes the Node object.
func (d podsEndSteps) end(ctx context.Context, node Node) error {
	config, err := d.bootstrap(ctx)
	if err != nil {
		return err
	}
	locked := node.settings()
	locked.Locked = true
	if err := kube.ApplySettings(ctx, config, node.Name, locked); err != nil {
		return err
	}
	if err := d.left(ctx, config, node); err != nil {
		return err
	}
	if _, err := d.script(ctx, node, "end pods", endPodsScript, nil); err != nil {
		return err
	}
	if err := kube.Delete(ctx, config, kube.NodeRef(node.Name)); err != nil {
		return err
	}
	d.report(ctx, node, "it runs no pods any more")
	return d.forgotten(ctx, node)
}

// left waits until no pods are left that the taint of a locked node ends. Others end with their kubelet.
func (d podsEndSteps) left(ctx context.Context, config *rest.Config, node Node) error {
	var left []string
	err := wait.Every(pollEvery).For(leftPatience).Until(ctx, func(ctx context.Context) (err error) {
		if left, err = kube.EndedByLock(ctx, config, node.Name); err != nil || len(left) > 0 {
			return wait.Again(err)
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		d.report(ctx, node, fmt.Sprintf("some of its pods did not end in time, and end with its kubelet: %s", some(left)))
		return nil
	}
	return err
}

// forgotten notes that a master has no kubelet any more.
func (d podsEndSteps) forgotten(ctx context.Context, node Node) error {
	d.mu.Lock() // masters end side by side
	defer d.mu.Unlock()
	kubelets := masterKubelets{d.cluster.servers}
	record, err := kubelets.load(ctx)
	if err != nil {
		return err
	}
	record.Masters = slices.DeleteFunc(record.Masters, func(name string) bool { return name == node.Name })
	return kubelets.save(ctx, record)
}
