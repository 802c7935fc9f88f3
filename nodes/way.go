package nodes

import (
	"context"
	"strings"

	"github.com/burano/burano/nodes/kube"
)

// way makes a master the minions' route to registries.
func (d *deployment) way(ctx context.Context, master Node) error {
	return d.start(ctx, master, false, kube.WayUnit)
}

// endWay ends a master's proxy for minions, where there is one.
func (d *deployment) endWay(ctx context.Context, master Node) error {
	out, err := d.script(ctx, master, "end "+kube.WayUnit, endUnitScript, map[string]string{"UNIT": kube.WayUnit})
	if err == nil && strings.TrimSpace(out) == "ended" {
		d.report(ctx, master, "minions reach no registries through it any more")
	}
	return err
}
