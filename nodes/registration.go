package nodes

import (
	"context"
	_ "embed"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes/kube"
)

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

// registerAgain has a minion be registered whose Node object is gone, as after `kubectl delete node`: a kubelet registers its node when it starts, and not
// again, however long it is waited for. One that has just started may be about to, so it gets some time. Calico's controllers forget such a node, too, so
// its daemons there start anew.
func (d *deployment) registerAgain(ctx context.Context, node Node, config *rest.Config) error {
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
