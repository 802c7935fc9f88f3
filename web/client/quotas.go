package client

import (
	"context"
	"net/http"
	"net/url"
)

// Quotas are how much a project may have and has, by resource.
type Quotas struct {
	ProjectID string           `json:"project_id" yaml:"project_id"`
	Quotas    map[string]Quota `json:"quotas" yaml:"quotas"`
}

// Quota is how much of one resource a project may have and has.
type Quota struct {
	Limit   int64 `json:"limit" yaml:"limit"` // -1 for none
	Used    int64 `json:"used" yaml:"used"`
	Default bool  `json:"default" yaml:"default"` // it is the server's setting
}

func quotasOf(projectID string) string { return "/burano/v1/quotas/" + url.PathEscape(projectID) }

// Quotas returns the limits and the use of a project; members ask for their own project, administrators for any.
func (c Projects) Quotas(ctx context.Context, projectID string) (Quotas, error) {
	var quotas Quotas
	return quotas, c.client.Call(ctx, http.MethodGet, quotasOf(projectID), nil, &quotas)
}

// OwnQuotas returns the limits and the use of the caller's project.
func (c Projects) OwnQuotas(ctx context.Context) (Quotas, error) {
	project, err := c.own(ctx)
	if err != nil {
		return Quotas{}, err
	}
	return c.Quotas(ctx, project)
}

// own is the id of the caller's project.
func (c Projects) own(ctx context.Context) (id string, err error) {
	var caller struct {
		Project struct {
			ID string `json:"id"`
		} `json:"project"`
	}
	err = c.client.Call(ctx, http.MethodGet, "/burano/v1/session", nil, &caller)
	return caller.Project.ID, err
}

// SetQuotas gives a project limits of its own, by resource; -1 is no limit, and others stay. Only administrators may.
func (c Projects) SetQuotas(ctx context.Context, projectID string, limits map[string]int64) (Quotas, error) {
	var quotas Quotas
	return quotas, c.client.Call(ctx, http.MethodPut, quotasOf(projectID), limits, &quotas)
}

// ResetQuotas makes the server's settings hold for a project again. Only administrators may.
func (c Projects) ResetQuotas(ctx context.Context, projectID string) (Quotas, error) {
	var quotas Quotas
	return quotas, c.client.Call(ctx, http.MethodDelete, quotasOf(projectID), nil, &quotas)
}
