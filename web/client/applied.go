package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
)

// Applied is a thing of the project that was made of a file under a label.
type Applied struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Applied lists the objects of the caller's project under a label. Some of them may be gone.
func (c Documents) Applied(ctx context.Context, label string) ([]Applied, error) {
	path, err := c.appliedPath(ctx, label)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Things []Applied `json:"things"`
	}
	err = c.client.Call(ctx, http.MethodGet, path, nil, &answer)
	return answer.Things, err
}

func (c Documents) appliedPath(ctx context.Context, label string) (string, error) {
	project, err := c.client.Projects().own(ctx)
	return "/burano/v1/applied/" + project + "/" + url.PathEscape(label), err
}

// SetApplied replaces the list of the caller's project under a label; it makes and deletes nothing else.
func (c Documents) SetApplied(ctx context.Context, label string, things []Applied) error {
	path, err := c.appliedPath(ctx, label)
	if err != nil {
		return err
	}
	return c.client.Call(ctx, http.MethodPut, path, map[string]any{"things": append([]Applied{}, things...)}, nil)
}

// Existing returns the objects of a list that the project has, by their ids: an object of the same name with another origin is none of them.
func (c Documents) Existing(ctx context.Context, things []Applied) ([]Applied, error) {
	all, err := c.things(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(things), func(one Applied) bool {
		return !slices.ContainsFunc(all, func(other Applied) bool { return other.Kind == one.Kind && other.ID == one.ID })
	}), nil
}

// Made lists the things that plans are about, with the ids that they have now. Quotas are none.
func (c Documents) Made(ctx context.Context, plans []*Planned) ([]Applied, error) {
	all, err := c.things(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(one Applied) bool {
		return !slices.ContainsFunc(plans, func(p *Planned) bool { return p.Kind == one.Kind && p.Name == one.Name })
	}), nil
}

// things are the project's own packages, templates and environments.
func (c Documents) things(ctx context.Context) ([]Applied, error) {
	project, err := c.client.Projects().own(ctx)
	if err != nil {
		return nil, err
	}
	environments, err := c.client.Environments().List(ctx, nil)
	if err != nil {
		return nil, err
	}
	templates, err := c.client.Templates().List(ctx)
	if err != nil {
		return nil, err
	}
	packages, err := c.client.Packages().List(ctx, url.Values{"owned": {"true"}, "include_disabled": {"true"}})
	if err != nil {
		return nil, err
	}
	var all []Applied
	for _, one := range environments {
		all = append(all, Applied{KindEnvironment, one.ID, one.Name})
	}
	for _, one := range templates {
		if one.Project == project {
			all = append(all, Applied{KindTemplate, one.ID, one.Name})
		}
	}
	for _, one := range packages {
		if !one.Embedded {
			all = append(all, Applied{KindPackage, one.ID, one.FullName})
		}
	}
	return all, nil
}

// Prune deletes objects: environments first, which it waits for, since they need packages until they are gone. Missing ones do no harm.
func (c Documents) Prune(ctx context.Context, things []Applied, deleted func(Applied)) error {
	for _, kind := range []string{KindEnvironment, KindTemplate, KindPackage} {
		var failed []error
		for _, one := range things {
			if one.Kind != kind {
				continue
			}
			var err error
			switch kind {
			case KindEnvironment:
				if err = c.client.Environments().Delete(ctx, one.ID, false); err == nil {
					err = c.client.Environments().WaitDeleted(ctx, one.ID)
				}
			case KindTemplate:
				err = c.client.Templates().Delete(ctx, one.ID)
			case KindPackage:
				err = c.client.Packages().Delete(ctx, one.ID)
			}
			if err != nil && !IsStatus(err, http.StatusNotFound) {
				failed = append(failed, fmt.Errorf("delete %s %s: %w", one.Kind, one.Name, err))
				continue
			}
			deleted(one)
		}
		if len(failed) > 0 {
			return errors.Join(failed...)
		}
	}
	return nil
}
