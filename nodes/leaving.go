package nodes

import (
	"context"
	"slices"
	"strings"

	"github.com/burano/burano/nodes/ssh"
)

// lookAtLeaving finds out whether the leaving nodes still work. A node that does not answer is not waited for: it may be the reason why another node takes
// its place.
func (d *deployment) lookAtLeaving(ctx context.Context) {
	for _, node := range d.cluster.config.Nodes {
		if !node.Leaving {
			continue
		}
		asked, cancel := context.WithTimeout(ctx, farewellLimit)
		out, err := d.cluster.script(asked, node.Name, ssh.Script{Name: "look at the API server", Body: "systemctl is-active kube-apiserver || true"})
		cancel()
		if err != nil {
			d.report(ctx, node, "leaves, and does not answer, which is not waited for")
			d.cluster.config.Logger.InfoContext(ctx, "a node that leaves does not answer", "node", node.Name, "error", err)
			d.dead = append(d.dead, node)
			continue
		}
		if slices.Contains(d.record.Members, node.Name) {
			d.former = append(d.former, node)
		}
		if node.Role == Master && strings.TrimSpace(out) == "active" {
			d.design.former = append(d.design.former, node)
		}
	}
}
