package operations

import (
	"context"
	"slices"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/known"
)

const (
	argumentWhat        = "what"
	argumentRestartPods = "restartPods"
)

// The words of rotate that are no parts of a cluster's trust.
const (
	wordCertificates = "certificates"
	wordKeys         = "keys"
	wordRegistry     = "registry"
)

// rotated are the parts of a cluster's trust that words of rotate name, in the order of a rotation, and whether the registry's passwords are among them.
func rotated(words []string) (parts []pki.Part, registry bool) {
	for _, part := range slices.Concat(pki.AuthorityParts(), pki.KeyParts()) {
		all := wordCertificates
		if slices.Contains(pki.KeyParts(), part) {
			all = wordKeys
		}
		if slices.Contains(words, all) || slices.Contains(words, string(part)) {
			parts = append(parts, part)
		}
	}
	return parts, slices.Contains(words, wordRegistry)
}

// rotate is the action that exchanges authorities, keys and passwords of the cluster.
func (c Operations) rotate(ctx context.Context, call muranopl.Call, known *known.Facts) error {
	parts, registry := rotated(texts(call.Args[argumentWhat]))
	if registry && known.Registry == "" {
		return fault.New(fault.Invalid, "cluster %s has no registry of its own: set enableRegistry to true, and deploy", call.Object.Text("name"))
	}
	if len(parts) > 0 {
		if err := c.rotateTrust(ctx, call, known, parts); err != nil {
			return err
		}
	}
	if !registry {
		return nil
	}
	return c.rotateRegistry(ctx, call, known)
}

func (c Operations) rotateTrust(ctx context.Context, call muranopl.Call, known *known.Facts, parts []pki.Part) error {
	restart, given := call.Args[argumentRestartPods].(bool)
	order := nodes.Rotation{Run: c.Runtime.TaskID(), Parts: parts, KeepPods: given && !restart}
	c.UseFacts(call.Object, known)
	live, err := clusters.ConnectionsOf(c.Clusters).Connect(ctx, call.Object, known.Nodes)
	if err != nil {
		return err
	}
	defer clusters.StatesOf(c.Clusters).SaveBefore(ctx, call.Object, live, "a rotation")()
	if err := live.Rotate(ctx, order); err != nil {
		return err
	}
	c.Reports.Inform(ctx, call.Object, "Rotated in cluster %s: nothing accepts the former ones any more", call.Object.Text("name"))
	return nil
}

// rotateRegistry gives the cluster's registry other passwords.
func (c Operations) rotateRegistry(ctx context.Context, call muranopl.Call, known *known.Facts) error {
	c.UseFacts(call.Object, known)
	live, err := clusters.ConnectionsOf(c.Clusters).Connect(ctx, call.Object, known.Nodes)
	if err != nil {
		return err
	}
	if err := live.RotateRegistry(ctx); err != nil {
		return err
	}
	c.Reports.Inform(ctx, call.Object, "The registry %s accepts the former passwords no more; nodes have others, and so has who pushes, in the Secret %s/%s", known.Registry, kube.RegistryNamespace, kube.RegistryLogin)
	return nil
}
