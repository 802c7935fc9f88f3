package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/store"
)

// imageTimeout limits the requests to Glance for the ids of images at the end of a task.
const imageTimeout = 10 * time.Second

// classInstance is the class of servers.
const classInstance = "io.murano.resources.Instance"

// identifying is a Source that knows the ids of packages.
type identifying interface {
	PackageID(ctx context.Context, fullName, spec string) (string, error)
}

// parts are the packages and images of the task's model. Unknown ids are left out.
func (r *Runtime) parts(ctx context.Context, classes *muranopl.Classes) (parts store.Parts) {
	var err error
	if parts.Packages, _, err = r.engine.Packages(ctx, r.environment.ProjectID, classes.Versions()); err != nil {
		r.held.log.InfoContext(ctx, "the ids of packages are not kept in the history", "error", err)
		parts.Packages = nil
	}
	names := map[string]bool{}
	r.model.Walk(func(object *muranopl.Object) bool {
		if object.Class().Is(classInstance) && object.Text("image") != "" {
			names[object.Text("image")] = true
		}
		return true
	})
	r.reaching.Lock()
	project := r.project
	r.reaching.Unlock()
	ctx, cancel := context.WithTimeout(ctx, imageTimeout)
	defer cancel()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		part := store.ImagePart{Name: name}
		if project != nil {
			image, err := project.Image(ctx, name)
			if err != nil {
				r.held.log.InfoContext(ctx, "the id of an image is not kept in the history", "image", name, "error", err)
			}
			part.ID = image.ID
		}
		parts.Images = append(parts.Images, part)
	}
	return parts
}

// Packages lists which of these versions of packages, by their names, the project sees in the catalog, and which it does not.
func (l *library) Packages(ctx context.Context, projectID string, packages map[string][]string) (there, missing []store.PackagePart, err error) {
	source := l.Source(projectID)
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		for _, version := range packages[name] {
			one := store.PackagePart{Name: name, Version: version}
			if known, is := source.(identifying); is {
				one.ID, err = known.PackageID(ctx, name, "="+version)
			} else {
				_, err = source.PackageByName(ctx, name, "="+version)
			}
			switch {
			case fault.KindOf(err) == fault.NotFound:
				missing = append(missing, one)
			case err != nil:
				return nil, nil, err
			default:
				there = append(there, one)
			}
		}
	}
	return there, missing, nil
}
