package murano

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/burano/burano/orchestrator/store"
)

func (i *Import) takeEnvironments(ctx context.Context) error {
	list, err := i.From.like(ctx, "environment")
	if err != nil {
		return err
	}
	for _, one := range list {
		line := Line{Kind: "environment", ID: one.id, Name: one.name, Fate: Imported}
		_, err := i.Environments.Head(ctx, one.id)
		switch {
		case err == nil:
			line.Fate, line.Why = Skipped, "it is here"
		case errors.Is(err, store.ErrNotFound):
			line.Fate, line.Why, err = i.takeEnvironment(ctx, one)
		}
		if err := i.done(line, err); err != nil {
			return err
		}
	}
	return nil
}

func (i *Import) takeEnvironment(ctx context.Context, one sourceEnvironment) (Fate, string, error) {
	here, _, err := i.Environments.List(ctx, one.project)
	if err != nil {
		return "", "", err
	}
	if slices.ContainsFunc(here, func(e store.Environment) bool { return e.Name == one.name }) {
		return Refused, "its project has another environment of that name: rename one of them", nil
	}
	made, err := readDescription(one.model)
	if err != nil {
		return Refused, err.Error(), nil
	}
	imported := store.Imported{Environment: store.Environment{ID: one.id, ProjectID: one.project, Name: one.name, DescriptionText: one.description,
		Version: one.version, Model: made.Model, Created: rowTime(one.created), Updated: rowTime(one.updated)}}
	if imported.Attributes, err = made.attributes(one.id); err != nil {
		return Refused, err.Error(), nil
	}
	for _, take := range []func(context.Context, *store.Imported) (string, error){i.drafts, i.history, i.statistics} {
		if why, err := take(ctx, &imported); why != "" || err != nil {
			return Refused, why, err
		}
	}
	adopted, why, err := made.adoption(one.id)
	if err != nil {
		return Refused, err.Error(), nil
	}
	imported.Attributes = append(imported.Attributes, adopted...)
	if i.Preview {
		return Imported, why, nil
	}
	return Imported, why, i.Environments.Import(ctx, imported)
}

const unfinished = "it is deploying or being deleted in Murano: import again when that has ended or, where no engine of Murano runs any more, with --end-unfinished"

// drafts are the environment's sessions. why is the reason why they cannot be imported.
func (i *Import) drafts(ctx context.Context, to *store.Imported) (why string, err error) {
	list, err := i.From.sessions(ctx, to.Environment.ID)
	if err != nil {
		return "", err
	}
	for _, one := range list {
		state := store.State(one.state)
		if state == store.Deploying || state == store.Deleting {
			if !i.EndUnfinished {
				return unfinished, nil
			}
			state = map[store.State]store.State{store.Deploying: store.DeployFailure, store.Deleting: store.DeleteFailure}[state]
		}
		made, err := readDescription(one.model)
		if err != nil {
			return fmt.Sprintf("its session %s: %v", one.id, err), nil
		}
		to.Sessions = append(to.Sessions, store.Session{ID: one.id, EnvironmentID: one.environment, UserID: one.user, State: state, Version: one.version,
			Model: made.Model, Created: rowTime(one.created), Updated: rowTime(one.updated)})
	}
	return "", nil
}

// history are the environment's deployments and actions, with their reports.
func (i *Import) history(ctx context.Context, to *store.Imported) (why string, err error) {
	list, err := i.From.tasks(ctx, to.Environment.ID)
	if err != nil {
		return "", err
	}
	for _, one := range list {
		task := store.Task{ID: one.id, EnvironmentID: one.environment, Created: rowTime(one.created), Updated: rowTime(one.updated), Started: rowTime(one.started)}
		ended := rowTime(one.finished.Time)
		if !one.finished.Valid {
			if !i.EndUnfinished {
				return unfinished, nil
			}
			ended = task.Updated
		}
		task.Finished = &ended
		if task.Objects, err = document(one.objects); err == nil {
			task.Result, err = document(one.result)
		}
		if err == nil && one.action != "" {
			err = task.Action.Scan(one.action)
		}
		if err != nil {
			return fmt.Sprintf("its deployment %s cannot be read: %v", one.id, err), nil
		}
		reports, err := i.From.reports(ctx, one.id)
		if err != nil {
			return "", err
		}
		for n, report := range reports {
			row := store.Report{ID: report.id, TaskID: one.id, Number: int64(n + 1), Level: report.level, Text: report.text, Created: rowTime(report.created)}
			row.EntityID, row.Entity, row.Details = optional(report.entityID), optional(report.entity), optional(report.details)
			to.Reports = append(to.Reports, row)
		}
		if !one.finished.Valid {
			to.Reports = append(to.Reports, store.Report{ID: i.NewID(), TaskID: one.id, Number: int64(len(reports) + 1), Level: "error",
				Text: "Murano had not ended this when the environment was taken over", Created: ended})
		}
		to.Tasks = append(to.Tasks, task)
	}
	return "", nil
}

// statistics are Murano's counts of the environment.
func (i *Import) statistics(ctx context.Context, to *store.Imported) (why string, err error) {
	list, err := i.From.instances(ctx, to.Environment.ID)
	if err != nil {
		return "", err
	}
	for _, one := range list {
		row := store.InstanceStatistics{EnvironmentID: to.Environment.ID, InstanceID: one.id, Type: one.kind, TypeName: one.class,
			TypeTitle: optional(one.title), Created: seconds(one.created)}
		if one.units.Valid {
			row.UnitCount = &one.units.Int64
		}
		if one.destroyed.Valid {
			destroyed := seconds(one.destroyed.Int64)
			row.Destroyed = &destroyed
		}
		to.Instances = append(to.Instances, row)
	}
	return "", nil
}
