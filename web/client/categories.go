package client

import (
	"context"
	"fmt"
	"net/http"
)

// Category is a category of packages; lists hold no packages.
type Category struct {
	ID       string `json:"id" yaml:"id"`
	Name     string `json:"name" yaml:"name"`
	Count    int    `json:"package_count" yaml:"package_count"`
	Created  string `json:"created" yaml:"created"`
	Updated  string `json:"updated" yaml:"updated"`
	Packages []struct {
		ID       string `json:"id" yaml:"id"`
		Name     string `json:"name" yaml:"name"`
		FullName string `json:"fully_qualified_name" yaml:"fully_qualified_name"`
	} `json:"packages,omitempty" yaml:"packages,omitempty"`
}

// Categories are the calls about categories of packages.
type Categories struct{ client *Client }

// Categories returns the calls about categories of packages.
func (c *Client) Categories() Categories { return Categories{c} }

// List lists all categories.
func (c Categories) List(ctx context.Context) ([]Category, error) {
	var list struct {
		Categories []Category `json:"categories"`
	}
	err := c.client.Call(ctx, http.MethodGet, "/v1/catalog/categories", nil, &list)
	return list.Categories, err
}

// Get finds a category with its packages, by its name or id.
func (c Categories) Get(ctx context.Context, name string) (Category, error) {
	rows, err := c.List(ctx)
	if err != nil {
		return Category{}, err
	}
	for _, row := range rows {
		if row.Name == name || row.ID == name {
			return row, c.client.Call(ctx, http.MethodGet, "/v1/catalog/categories/"+row.ID, nil, &row)
		}
	}
	return Category{}, fmt.Errorf("there is no category %q; `burano category list` lists those there are", name)
}

// Create makes a category; only administrators may.
func (c Categories) Create(ctx context.Context, name string) (Category, error) {
	var made Category
	return made, c.client.Call(ctx, http.MethodPost, "/v1/catalog/categories", map[string]any{"name": name}, &made)
}

// Delete deletes a category without packages; only administrators may.
func (c Categories) Delete(ctx context.Context, id string) error {
	return c.client.Call(ctx, http.MethodDelete, "/v1/catalog/categories/"+id, nil, nil)
}
