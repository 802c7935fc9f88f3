package stacks

import (
	"context"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/openstack"
)

// identities are io.murano.User and io.murano.Project: the user and project of a task.
type identities struct {
	runtime interface {
		Project(ctx context.Context) (*openstack.Project, error)
	}
}

func (i identities) user(ctx context.Context, _ muranopl.Call) (any, error) {
	user, _, err := i.whose(ctx)
	return described(user), err
}

func (i identities) project(ctx context.Context, _ muranopl.Call) (any, error) {
	_, project, err := i.whose(ctx)
	return described(project), err
}

func (i identities) whose(ctx context.Context) (user, project openstack.Named, err error) {
	cloud, err := i.runtime.Project(ctx)
	if err != nil {
		return user, project, err
	}
	return cloud.Whose()
}

func described(one openstack.Named) map[string]any {
	return map[string]any{"id": one.ID, "name": one.Name, "domain": one.Domain}
}
