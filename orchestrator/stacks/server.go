package stacks

import (
	"cmp"
	"fmt"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/openstack"
)

// Server is a server of an instance. An instance that is no node has one.
type Server struct {
	Instance *muranopl.Object
	Number   int64
	Called   string // "" for what the model says
}

// ID begins the names of the server's resources in the stack, as io.murano.resources.LinuxMuranoInstance.resourceId says.
func (s Server) ID() string {
	if s.Number == 1 {
		return s.Instance.ID()
	}
	return fmt.Sprintf("%s_%d", s.Instance.ID(), s.Number)
}

// Prefix begins the names of the server's resources.
func (s Server) Prefix() string { return s.ID() + "-" }

// Name is the server's name. A present server keeps its name.
func (s Server) Name() string { return cmp.Or(s.Called, s.ModelName()) }

// ModelName is the server's name in the model, as io.murano.resources.LinuxMuranoInstance.serverName computes it.
func (s Server) ModelName() string {
	if s.Number == 1 {
		return s.Instance.Text("name")
	}
	return fmt.Sprintf("%s-r%d", s.Instance.Text("name"), s.Number)
}

// In reports whether a template has the server.
func (s Server) In(template map[string]any) bool {
	resources, _ := template["resources"].(map[string]any)
	return resources[openstack.ServerResource(s.ID())] != nil
}
