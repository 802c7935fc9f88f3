package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// ProjectRole is whether a project lets Burano work in it with a role of its own.
type ProjectRole struct {
	ProjectID string      `json:"project_id" yaml:"project_id"`
	Enabled   bool        `json:"enabled" yaml:"enabled"`
	User      ServiceUser `json:"user" yaml:"user"`
	Roles     []string    `json:"roles" yaml:"roles"`
	EnabledBy string      `json:"enabled_by" yaml:"enabled_by"`
	Since     *time.Time  `json:"since" yaml:"since"`
	Problem   string      `json:"problem" yaml:"problem"` // why tasks fail though it is enabled
}

// ServiceUser is Burano's user in Keystone.
type ServiceUser struct {
	ID     string `json:"id" yaml:"id"`
	Name   string `json:"name" yaml:"name"`
	Domain string `json:"domain" yaml:"domain"`
}

// ProjectRole shows how Burano works in a project, "" for the caller's own.
func (c *Client) ProjectRole(ctx context.Context, projectID string) (ProjectRole, error) {
	return c.projectRole(ctx, http.MethodGet, projectID)
}

// EnableProject lets Burano work in a project, "" for the caller's own, with a role that the caller gives to the service user.
func (c *Client) EnableProject(ctx context.Context, projectID string) (ProjectRole, error) {
	return c.projectRole(ctx, http.MethodPut, projectID)
}

// DisableProject revokes the role of EnableProject.
func (c *Client) DisableProject(ctx context.Context, projectID string) (ProjectRole, error) {
	return c.projectRole(ctx, http.MethodDelete, projectID)
}

func (c *Client) projectRole(ctx context.Context, method, projectID string) (role ProjectRole, err error) {
	if projectID == "" {
		if projectID, err = c.ownProject(ctx); err != nil {
			return role, err
		}
	}
	return role, c.Call(ctx, method, "/burano/v1/projects/"+url.PathEscape(projectID)+"/role", nil, &role)
}
