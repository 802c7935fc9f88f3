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

// Projects are the calls about projects: their roles and quotas.
type Projects struct{ client *Client }

// Projects returns the calls about projects.
func (c *Client) Projects() Projects { return Projects{c} }

// Role shows how Burano works in a project, "" for the caller's own.
func (c Projects) Role(ctx context.Context, projectID string) (ProjectRole, error) {
	return c.askRole(ctx, http.MethodGet, projectID)
}

// Enable lets Burano work in a project, "" for the caller's own, with a role that the caller gives to the service user.
func (c Projects) Enable(ctx context.Context, projectID string) (ProjectRole, error) {
	return c.askRole(ctx, http.MethodPut, projectID)
}

// Disable revokes the role of Enable.
func (c Projects) Disable(ctx context.Context, projectID string) (ProjectRole, error) {
	return c.askRole(ctx, http.MethodDelete, projectID)
}

func (c Projects) askRole(ctx context.Context, method, projectID string) (role ProjectRole, err error) {
	if projectID == "" {
		if projectID, err = c.own(ctx); err != nil {
			return role, err
		}
	}
	return role, c.client.Call(ctx, method, "/burano/v1/projects/"+url.PathEscape(projectID)+"/role", nil, &role)
}
