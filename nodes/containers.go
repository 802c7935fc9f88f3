package nodes

import (
	"context"
	_ "embed"
	"strings"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/nodes/ssh"
)

//go:embed scripts/end-containers.sh
var endContainersScript string

// EndContainers ends containers of pods on a node, by their ids in what runs them, each as it would be at a pod's end: it is asked to
// go and killed after half a minute. Its kubelet starts it again.
func (c *servers) EndContainers(ctx context.Context, node string, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := c.script(ctx, node, ssh.Script{Name: "end containers", Body: runtimeScript + endContainersScript, Env: map[string]string{"IDS": strings.Join(ids, "\n")}})
	return err
}

// mostWritten is how many bytes a command in a container may write.
const mostWritten = 128 << 10

// RunInContainer runs a command in a container of a pod on a node, by its id in what runs it, as the container's own user, and returns what it wrote.
func (c *servers) RunInContainer(ctx context.Context, node, id string, command []string) (string, error) {
	said := &door.Buffer{Limit: mostWritten, What: "what the command writes"}
	err := c.Stream(ctx, node, ssh.Job{Name: "run a command in a container", Script: runtimeScript + `container_run "$@"`, Args: append([]string{id}, command...), Stdout: said})
	return said.String(), err
}
