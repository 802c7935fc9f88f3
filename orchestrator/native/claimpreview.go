package native

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/engine"
)

// previewClaims adds to what is foreseen which claims pods would use no more, and which volumes would begin empty beside them. Of a cluster that was
// never up nothing is known.
func (c *clusters) previewClaims(ctx context.Context, interpreter *muranopl.Interpreter, foreseen *engine.Foreseen) {
	for _, cluster := range c.objects.all(classCluster) {
		pods := slices.DeleteFunc(c.objects.all(classPod), func(pod *muranopl.Object) bool { return pod.Object("kubernetesCluster") != cluster })
		if len(pods) == 0 {
			continue
		}
		live, _, err := c.former(ctx, cluster)
		if live == nil && err == nil {
			continue
		}
		var api *rest.Config
		if err == nil {
			api, err = live.Kubernetes(ctx)
		}
		for _, pod := range pods {
			if err == nil {
				err = c.previewClaimsOf(ctx, interpreter, api, pod, foreseen)
			}
		}
		if err != nil {
			foreseen.Means = append(foreseen.Means, fmt.Sprintf("whether pods of cluster %s go on with their claims is not known: %v", cluster.Text("name"), err))
		}
		if live != nil {
			_ = live.Close() // nothing was changed through it
		}
	}
}

func (c *clusters) previewClaimsOf(ctx context.Context, interpreter *muranopl.Interpreter, api *rest.Config, pod *muranopl.Object, foreseen *engine.Foreseen) error {
	all, err := (&hosting{objects: c.objects, reports: c.reports}).all(ctx, interpreter, pod)
	if err != nil {
		return nil // an application that cannot be described before its deployment
	}
	spec, err := podSpecOf(pod)
	if err != nil {
		foreseen.Refused = append(foreseen.Refused, engine.Refusal{ObjectID: pod.ID(), Text: err.Error()})
		return nil
	}
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return err
	}
	former, err := spec.formerID(ctx, client, c.objects.has)
	if err != nil {
		return err
	}
	present := spec
	present.id = cmp.Or(former, spec.id)
	there, err := present.workloads(ctx, client)
	if err != nil {
		return err
	}
	use := spec.claimUse(containersIn(all), there)
	if len(use.unused) == 0 {
		return nil
	}
	var unused []string
	for _, claim := range use.unused {
		unused = append(unused, describeClaim(claim))
	}
	text := fmt.Sprintf("pod %s uses no more, and leaves in the cluster with its data: %s", spec.name, strings.Join(unused, ", "))
	if len(use.empty) > 0 {
		text += fmt.Sprintf("; %s begins empty", strings.Join(use.empty, ", "))
	}
	foreseen.Means = append(foreseen.Means, text)
	foreseen.Consents = append(foreseen.Consents, engine.Refusal{ObjectID: pod.ID(), Text: text})
	return nil
}
