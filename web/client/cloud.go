package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// ImageMark is the mark by which forms find an image.
type ImageMark struct {
	Type  string `json:"type"`
	Title string `json:"title,omitempty"`
}

// MarkImage marks an image of the cloud, by its id, so that forms offer it; nil takes the mark away.
func (c *Client) MarkImage(ctx context.Context, id string, mark *ImageMark) error {
	path := "/burano/v1/cloud/images/" + url.PathEscape(id) + "/mark"
	if mark == nil {
		return c.Call(ctx, http.MethodDelete, path, nil, nil)
	}
	return c.Call(ctx, http.MethodPut, path, mark, nil)
}

// Project is a project of the cloud.
type Project struct {
	ID       string `json:"id" yaml:"id"`
	Name     string `json:"name" yaml:"name"`
	DomainID string `json:"domain_id" yaml:"domain_id"`
}

// List lists the enabled projects of the cloud, for administrators.
func (c Projects) List(ctx context.Context) ([]Project, error) {
	var answer struct {
		Projects []Project `json:"projects"`
	}
	err := c.client.Call(ctx, http.MethodGet, "/burano/v1/projects", nil, &answer)
	return answer.Projects, err
}

// ServerVersion is the version of the server.
type ServerVersion struct {
	Version string `json:"version" yaml:"version"`
	Commit  string `json:"commit" yaml:"commit"`
}

// ServerVersion asks which Burano the server is.
func (c *Client) ServerVersion(ctx context.Context) (ServerVersion, error) {
	var found ServerVersion
	return found, c.Call(ctx, http.MethodGet, "/burano/v1/version", nil, &found)
}

// Profile takes a profile of the server's process, for go tool pprof: cpu over 1 to 30 seconds, or the present heap, allocs or goroutine.
// Only administrators may, where the server's setting profiles allows it.
func (c *Client) Profile(ctx context.Context, kind string, seconds int) ([]byte, error) {
	return c.Send(ctx, http.MethodGet, "/burano/v1/profiles/"+url.PathEscape(kind)+"?seconds="+strconv.Itoa(seconds), nil)
}
