package client

import (
	"context"
	"fmt"
	"net/http"
)

// Template is an environment to be; lists hold no applications (Services).
type Template struct {
	ID          string           `json:"id" yaml:"id"`
	Name        string           `json:"name" yaml:"name"`
	Project     string           `json:"tenant_id" yaml:"tenant_id"`
	Public      bool             `json:"is_public" yaml:"is_public"`
	Description string           `json:"description_text" yaml:"description_text"`
	Created     string           `json:"created" yaml:"created"`
	Updated     string           `json:"updated" yaml:"updated"`
	Services    []map[string]any `json:"services,omitempty" yaml:"services,omitempty"`
}

// Templates are the calls about templates of environments.
type Templates struct{ client *Client }

// Templates returns the calls about templates of environments.
func (c *Client) Templates() Templates { return Templates{c} }

// List lists the project's and public ones.
func (c Templates) List(ctx context.Context) ([]Template, error) {
	var answer struct {
		Templates []Template `json:"templates"`
	}
	err := c.client.Call(ctx, http.MethodGet, "/v1/templates", nil, &answer)
	return answer.Templates, err
}

// Get finds a template by its name or id.
func (c Templates) Get(ctx context.Context, name string) (Template, error) {
	rows, err := c.List(ctx)
	if err != nil {
		return Template{}, err
	}
	for _, row := range rows {
		if row.Name == name || row.ID == name {
			err := c.client.Call(ctx, http.MethodGet, "/v1/templates/"+row.ID, nil, &row)
			return row, err
		}
	}
	return Template{}, fmt.Errorf("there is no template %q; `burano template list` lists those there are", name)
}

// TemplateOptions describe a new template. Only the name is needed.
type TemplateOptions struct {
	Name         string `json:"name"`
	Public       bool   `json:"is_public"`
	Description  string `json:"description_text"`
	Applications []any  `json:"services,omitempty"`
}

// Create makes a template.
func (c Templates) Create(ctx context.Context, options TemplateOptions) (Template, error) {
	var made Template
	return made, c.client.Call(ctx, http.MethodPost, "/v1/templates", options, &made)
}

// Rename gives a template another name.
func (c Templates) Rename(ctx context.Context, id, name string) error {
	return c.client.Call(ctx, http.MethodPut, "/v1/templates/"+id, map[string]any{"name": name}, nil)
}

// Delete deletes a template; environments that were made of it stay.
func (c Templates) Delete(ctx context.Context, id string) error {
	return c.client.Call(ctx, http.MethodDelete, "/v1/templates/"+id, nil, nil)
}

// Add adds applications to a template.
func (c Templates) Add(ctx context.Context, id string, applications []any) error {
	return c.client.Call(ctx, http.MethodPost, "/v1/templates/"+id+"/services", applications, nil)
}

// Remove removes an application from a template, by the application's id.
func (c Templates) Remove(ctx context.Context, id, application string) error {
	return c.client.Call(ctx, http.MethodDelete, "/v1/templates/"+id+"/services/"+application, nil, nil)
}

// Clone copies a public template into the project.
func (c Templates) Clone(ctx context.Context, id, name string) (Template, error) {
	var made Template
	return made, c.client.Call(ctx, http.MethodPost, "/v1/templates/"+id+"/clone", map[string]any{"name": name}, &made)
}

// Environment makes an environment with a session whose draft has the template's applications. region may be "".
func (c Templates) Environment(ctx context.Context, id, name, region string) (environment, session string, err error) {
	body := map[string]any{"name": name}
	if region != "" {
		body["region"] = region
	}
	var made struct {
		Environment string `json:"environment_id"`
		Session     string `json:"session_id"`
	}
	err = c.client.Call(ctx, http.MethodPost, "/v1/templates/"+id+"/create-environment", body, &made)
	return made.Environment, made.Session, err
}
