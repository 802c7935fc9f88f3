package api

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/internal/version"
	"github.com/burano/burano/orchestrator/doctor"
	"github.com/burano/burano/orchestrator/openstack"
)

func TestAdministratorsMarkImagesAndListProjects(t *testing.T) {
	marks := map[string]*openstack.Mark{}
	s := newServer(t, func(c *Config) {
		c.MarkImage = func(_ context.Context, caller identity.Caller, id string, mark *openstack.Mark) error {
			require.Equal(t, "u-admin", caller.UserID)
			marks[id] = mark
			return nil
		}
		c.AllProjects = func(context.Context, identity.Caller) ([]identity.Project, error) {
			return []identity.Project{{ID: "1", Name: "one", DomainID: "default"}}, nil
		}
	})
	const path = "/burano/v1/cloud/images/i1/mark"
	s.call("admin", "", "PUT", path, map[string]any{"type": "linux", "title": "Debian"}, 200)
	require.Equal(t, &openstack.Mark{Title: "Debian", Type: "linux"}, marks["i1"])
	s.call("admin", "", "PUT", path, map[string]any{"title": "Debian"}, 400)
	s.call("demo", "", "PUT", path, map[string]any{"type": "linux"}, 403)
	s.call("demo", "", "DELETE", path, nil, 403)
	s.call("admin", "", "DELETE", path, nil, 200)
	require.Nil(t, marks["i1"])

	require.Equal(t, "one", field(s.call("admin", "", "GET", "/burano/v1/projects", nil, 200), "projects", 0, "name"))
	s.call("demo", "", "GET", "/burano/v1/projects", nil, 403)
	require.Equal(t, version.Version, field(s.call("reader", "", "GET", "/burano/v1/version", nil, 200), "version"))
	newServer(t).call("admin", "", "GET", "/burano/v1/projects", nil, 404)
}

func TestAdministratorsHaveTheCloudLookedAt(t *testing.T) {
	s := newServer(t, func(c *Config) {
		c.Examine = func(context.Context) []doctor.Line {
			return []doctor.Line{{Check: "clock", State: doctor.OK, Text: "the same"}, {Check: "Heat", State: doctor.Failed, Text: "none", Remedy: "have one"}}
		}
	})
	answer := s.call("admin", "", "GET", "/burano/v1/doctor", nil, 200)
	require.Equal(t, "have one", field(answer, "lines", 1, "remedy"))
	s.call("demo", "", "GET", "/burano/v1/doctor", nil, 403)
	newServer(t).call("admin", "", "GET", "/burano/v1/doctor", nil, 404)
}
