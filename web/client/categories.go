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

// Categories lists all categories.
func (c *Client) Categories(ctx context.Context) ([]Category, error) {
	var list struct {
		Categories []Category `json:"categories"`
	}
	err := c.Call(ctx, http.MethodGet, "/v1/catalog/categories", nil, &list)
	return list.Categories, err
}

// Category finds a category with its packages, by its name or id.
func (c *Client) Category(ctx context.Context, name string) (Category, error) {
	rows, err := c.Categories(ctx)
	if err != nil {
		return Category{}, err
	}
	for _, row := range rows {
		if row.Name == name || row.ID == name {
			return row, c.Call(ctx, http.MethodGet, "/v1/catalog/categories/"+row.ID, nil, &row)
		}
	}
	return Category{}, fmt.Errorf("there is no category %q; `burano category list` lists those there are", name)
}

// CreateCategory makes a category; only administrators may.
func (c *Client) CreateCategory(ctx context.Context, name string) (Category, error) {
	var made Category
	return made, c.Call(ctx, http.MethodPost, "/v1/catalog/categories", map[string]any{"name": name}, &made)
}

// DeleteCategory deletes a category without packages; only administrators may.
func (c *Client) DeleteCategory(ctx context.Context, id string) error {
	return c.Call(ctx, http.MethodDelete, "/v1/catalog/categories/"+id, nil, nil)
}
