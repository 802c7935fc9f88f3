package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
)

// Package is a package of the catalog.
type Package struct {
	ID          string         `json:"id" yaml:"id"`
	FullName    string         `json:"fully_qualified_name" yaml:"fully_qualified_name"`
	Name        string         `json:"name" yaml:"name"`
	Type        string         `json:"type" yaml:"type"`
	Author      string         `json:"author" yaml:"author"`
	Description string         `json:"description" yaml:"description"`
	Supplier    map[string]any `json:"supplier" yaml:"supplier"`
	Tags        []string       `json:"tags" yaml:"tags"`
	Categories  []string       `json:"categories" yaml:"categories"`
	Classes     []string       `json:"class_definitions" yaml:"class_definitions"`
	Public      bool           `json:"is_public" yaml:"is_public"`
	Enabled     bool           `json:"enabled" yaml:"enabled"`
	OwnerID     string         `json:"owner_id" yaml:"owner_id"`
	Created     string         `json:"created" yaml:"created"`
	Updated     string         `json:"updated" yaml:"updated"`
	Version     string         `json:"version" yaml:"version"`
	Embedded    bool           `json:"embedded" yaml:"embedded"` // it comes with Burano
	// Facts of its files; nil when the package cannot be read.
	HasUI           *bool `json:"has_ui" yaml:"has_ui"`
	HasLogo         *bool `json:"has_logo" yaml:"has_logo"`
	HasSupplierLogo *bool `json:"has_supplier_logo" yaml:"has_supplier_logo"`
}

// Packages are the calls about packages of the catalog.
type Packages struct{ client *Client }

// Packages returns the calls about packages of the catalog.
func (c *Client) Packages() Packages { return Packages{c} }

// List lists all packages that fit the query (docs/api.md names its parameters), page by page.
func (c Packages) List(ctx context.Context, query url.Values) ([]Package, error) {
	all := []Package{}
	for {
		var page struct {
			Packages []Package `json:"packages"`
			Next     string    `json:"next_marker"`
		}
		if err := c.client.Call(ctx, http.MethodGet, "/burano/v1/packages?"+query.Encode(), nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Packages...)
		if page.Next == "" {
			return all, nil
		}
		query.Set("marker", page.Next)
	}
}

// Get finds a package by its id or its full name. Of several packages of a name that can be seen it is the project's own.
func (c Packages) Get(ctx context.Context, name string) (Package, error) {
	var row Package
	if idForm.MatchString(name) {
		return row, c.client.Call(ctx, http.MethodGet, "/burano/v1/packages/"+name, nil, &row)
	}
	query := url.Values{"fqn": {name}, "include_disabled": {"true"}, "owned": {"true"}}
	rows, err := c.List(ctx, query)
	if err == nil && len(rows) == 0 {
		query = url.Values{"fqn": {name}, "include_disabled": {"true"}}
		rows, err = c.List(ctx, query)
	}
	switch {
	case err != nil:
		return row, err
	case len(rows) == 0:
		return row, fmt.Errorf("there is no package %q; `burano package list --all` lists those there are", name)
	case len(rows) > 1:
		ids := make([]string, 0, len(rows))
		for _, row := range rows {
			ids = append(ids, row.ID)
		}
		return row, fmt.Errorf("there are %d packages %q: name one by its id, of %s", len(rows), name, strings.Join(ids, ", "))
	}
	// Lists have all fields, except additions of a later server.
	return rows[0], nil
}

// Has reports whether the catalog has a package of this name that the project can use.
func (c Packages) Has(ctx context.Context, name string) (bool, error) {
	rows, err := c.List(ctx, url.Values{"fqn": {name}, "catalog": {"true"}})
	return len(rows) > 0, err
}

// PackageChange changes a field of a package in the catalog, by the name of the API ("name", "is_public", "tags", ...).
type PackageChange struct {
	Field string
	Value any
}

// Update changes fields of a package in the catalog.
func (c Packages) Update(ctx context.Context, id string, changes ...PackageChange) (Package, error) {
	patch := make([]map[string]any, len(changes))
	for i, one := range changes {
		patch[i] = map[string]any{"op": "replace", "path": "/" + one.Field, "value": one.Value}
	}
	var changed Package
	return changed, c.client.Call(ctx, http.MethodPatch, "/v1/catalog/packages/"+id, patch, &changed, "Content-Type", "application/murano-packages-json-patch")
}

// Delete deletes a package.
func (c Packages) Delete(ctx context.Context, id string) error {
	return c.client.Call(ctx, http.MethodDelete, "/v1/catalog/packages/"+id, nil, nil)
}

// Download gives the zip of a package.
func (c Packages) Download(ctx context.Context, id string) ([]byte, error) {
	return c.client.Send(ctx, http.MethodGet, "/v1/catalog/packages/"+id+"/download", nil, "Accept", "application/octet-stream")
}

// UploadOptions are the catalog's fields of an uploaded package besides its manifest.
type UploadOptions struct {
	Public     bool     `json:"is_public"`
	Categories []string `json:"categories,omitempty"`
	Tags       []string `json:"tags,omitempty"`
}

// Upload puts a package into the catalog, whose full name is name. A package that is there already is a Refusal with the status 409.
func (c Packages) Upload(ctx context.Context, name string, zip []byte, options UploadOptions) error {
	return c.put(ctx, http.MethodPost, "/v1/catalog/packages", name, zip, options)
}

// put sends a package.
func (c Packages) put(ctx context.Context, method, path, name string, zip []byte, options UploadOptions) error {
	text, err := json.Marshal(options)
	if err != nil {
		return err
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	file, fileErr := form.CreateFormFile(name, name+".zip")
	if fileErr == nil {
		_, fileErr = file.Write(zip)
	}
	if err := errors.Join(form.WriteField("__metadata__", string(text)), fileErr, form.Close()); err != nil {
		return err
	}
	_, err = c.client.Send(ctx, method, path, &body, "Content-Type", form.FormDataContentType())
	return withRule(err)
}

// withRule adds the rule of full names to an error about one, whose text is Murano's.
func withRule(err error) error {
	if err == nil || !strings.Contains(err.Error(), "Invalid FullName") {
		return err
	}
	return fmt.Errorf("%w: a full name is made of letters, digits, _ and single dots between them, such as org.example.App", err)
}

// Replace replaces the project's own package of a name. After a refusal the former one stays.
func (c Packages) Replace(ctx context.Context, name string, zip []byte, options UploadOptions) error {
	own, err := c.List(ctx, url.Values{"owned": {"true"}, "include_disabled": {"true"}, "fqn": {name}})
	if err != nil {
		return err
	}
	if len(own) == 0 {
		return fmt.Errorf("the project has no package %s that could be replaced", name)
	}
	return c.put(ctx, http.MethodPut, "/burano/v1/packages/"+url.PathEscape(own[0].ID), name, zip, options)
}
