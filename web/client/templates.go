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

// Templates lists the project's and public ones.
func (c *Client) Templates(ctx context.Context) ([]Template, error) {
	var answer struct {
		Templates []Template `json:"templates"`
	}
	err := c.Call(ctx, http.MethodGet, "/v1/templates", nil, &answer)
	return answer.Templates, err
}

// Template finds a template by its name or id.
func (c *Client) Template(ctx context.Context, name string) (Template, error) {
	rows, err := c.Templates(ctx)
	if err != nil {
		return Template{}, err
	}
	for _, row := range rows {
		if row.Name == name || row.ID == name {
			err := c.Call(ctx, http.MethodGet, "/v1/templates/"+row.ID, nil, &row)
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

// CreateTemplate makes a template.
func (c *Client) CreateTemplate(ctx context.Context, options TemplateOptions) (Template, error) {
	var made Template
	return made, c.Call(ctx, http.MethodPost, "/v1/templates", options, &made)
}

// RenameTemplate gives a template another name.
func (c *Client) RenameTemplate(ctx context.Context, id, name string) error {
	return c.Call(ctx, http.MethodPut, "/v1/templates/"+id, map[string]any{"name": name}, nil)
}

// DeleteTemplate deletes a template; environments that were made of it stay.
func (c *Client) DeleteTemplate(ctx context.Context, id string) error {
	return c.Call(ctx, http.MethodDelete, "/v1/templates/"+id, nil, nil)
}

// AddToTemplate adds applications to a template.
func (c *Client) AddToTemplate(ctx context.Context, id string, applications []any) error {
	return c.Call(ctx, http.MethodPost, "/v1/templates/"+id+"/services", applications, nil)
}

// RemoveFromTemplate removes an application from a template, by the application's id.
func (c *Client) RemoveFromTemplate(ctx context.Context, id, application string) error {
	return c.Call(ctx, http.MethodDelete, "/v1/templates/"+id+"/services/"+application, nil, nil)
}

// CloneTemplate copies a public template into the project.
func (c *Client) CloneTemplate(ctx context.Context, id, name string) (Template, error) {
	var made Template
	return made, c.Call(ctx, http.MethodPost, "/v1/templates/"+id+"/clone", map[string]any{"name": name}, &made)
}

// EnvironmentOfTemplate makes an environment with a session whose draft has the template's applications. region may be "".
func (c *Client) EnvironmentOfTemplate(ctx context.Context, id, name, region string) (environment, session string, err error) {
	body := map[string]any{"name": name}
	if region != "" {
		body["region"] = region
	}
	var made struct {
		Environment string `json:"environment_id"`
		Session     string `json:"session_id"`
	}
	err = c.Call(ctx, http.MethodPost, "/v1/templates/"+id+"/create-environment", body, &made)
	return made.Environment, made.Session, err
}
