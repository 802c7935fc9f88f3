package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// DeletedEnvironment is an environment that was deleted and can be restored until it expires.
type DeletedEnvironment struct {
	ID        string    `json:"id" yaml:"id"`
	Name      string    `json:"name" yaml:"name"`
	Project   string    `json:"project_id" yaml:"project_id"`
	DeletedBy string    `json:"deleted_by" yaml:"deleted_by"`
	Deleted   time.Time `json:"deleted" yaml:"deleted"`
	Expires   time.Time `json:"expires" yaml:"expires"`
	Abandoned bool      `json:"abandoned" yaml:"abandoned"`
	Size      int64     `json:"size" yaml:"size"`
}

// ListDeleted lists them, the newest first. query is that of Environments.
func (c Environments) ListDeleted(ctx context.Context, query url.Values) ([]DeletedEnvironment, error) {
	var answer struct {
		Environments []DeletedEnvironment `json:"environments"`
	}
	return answer.Environments, c.client.Call(ctx, http.MethodGet, "/burano/v1/deleted-environments?"+query.Encode(), nil, &answer)
}

// GetDeleted finds one by its id, or by its name where only one had it.
func (c Environments) GetDeleted(ctx context.Context, nameOrID string) (found DeletedEnvironment, err error) {
	all, err := c.ListDeleted(ctx, nil)
	if err != nil {
		return found, err
	}
	named := 0
	for _, one := range all {
		if one.ID == nameOrID {
			return one, nil
		}
		if one.Name == nameOrID {
			found = one
			named++
		}
	}
	switch named {
	case 0:
		return found, fmt.Errorf("the project has no deleted environment %s that can be restored: burano environment list --deleted lists them", nameOrID)
	case 1:
		return found, nil
	}
	return found, fmt.Errorf("%d deleted environments had the name %s: give the id of one, which burano environment list --deleted shows", named, nameOrID)
}

// Undelete restores a deleted environment, under another name where that is not "".
func (c Environments) Undelete(ctx context.Context, id, name string) (back Environment, err error) {
	return back, c.client.Call(ctx, http.MethodPost, "/burano/v1/deleted-environments/"+id+"/undelete", map[string]any{"name": name}, &back)
}

// Purge removes a deleted environment for good.
func (c Environments) Purge(ctx context.Context, id string) error {
	return c.client.Call(ctx, http.MethodDelete, "/burano/v1/deleted-environments/"+id, nil, nil)
}
