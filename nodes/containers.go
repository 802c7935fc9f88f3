package nodes

import (
	"context"
	_ "embed"
	"strings"

	"github.com/burano/burano/nodes/ssh"
)

//go:embed scripts/end-containers.sh
var endContainersScript string

// EndContainers ends containers of pods on a node, by their ids in what runs them, each as it would be at a pod's end: it is asked to
// go and killed after half a minute. Its kubelet starts it again.
func (c *Cluster) EndContainers(ctx context.Context, node string, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := c.script(ctx, node, ssh.Script{Name: "end containers", Body: runtimeScript + endContainersScript, Env: map[string]string{"IDS": strings.Join(ids, "\n")}})
	return err
}
