package nodes

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/burano/burano/nodes/kube"
)

// formerNode deletes the Node object of a server that had the node's name before. The pods on it are made elsewhere, and the new kubelet registers itself.
// The machine id shows that the object is of another server, so that a node which is only started again keeps its object.
func (d *deployment) formerNode(ctx context.Context, node Node) error {
	config, err := d.bootstrap(ctx)
	if err != nil {
		return err
	}
	d.mu.Lock()
	machine := d.installed[node.Name].facts.machine
	d.mu.Unlock()
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
