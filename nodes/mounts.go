package nodes

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/burano/burano/nodes/ssh"
)

//go:embed scripts/volume-mounts.sh
var volumeMountsScript string

// MountsVolume asks a node over SSH whether anything on it uses the disk of a volume of Cinder, given by its id.
func MountsVolume(ctx context.Context, c *Cluster, node, volume string) (bool, error) {
	out, err := c.script(ctx, node, ssh.Script{Name: "look whether a volume is mounted", Body: volumeMountsScript, Env: map[string]string{"VOLUME": volume}})
	if err != nil {
		return false, fmt.Errorf("look whether node %s uses volume %s: %w", node, volume, err)
	}
	return strings.TrimSpace(out) != "free", nil
}
