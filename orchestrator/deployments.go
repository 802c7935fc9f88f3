package orchestrator

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/internal/sensitive"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// Deployment is one run of the engine over an environment.
type Deployment struct {
	ID, EnvironmentID string
	// State is running, running_w_warnings, running_w_errors, success, completed_w_warnings or completed_w_errors.
	State                     string
	Created, Updated, Started time.Time
	Finished                  *time.Time
	// Description is the object model that was deployed, applications under "services", secrets masked; nil for a deletion.
	Description map[string]any
	// Action is the method that was run, secrets among its arguments masked; nil for a deletion.
	Action *store.Action
	// Result is {"isException": bool, "result": …}, empty while it runs.
	Result map[string]any
}

// Report is one line of a deployment's log.
type Report struct {
	ID, TaskID, Level, Text   string
	Number                    int64 // in the deployment's log, from 1
	EntityID, Entity, Details *string
	Created                   time.Time
}

// Step is one native step of a deployment.
type Step struct {
	ID, ObjectID, Class, Name, Error string

	WaitsFor []string // ids of steps that have begun before
	Started  time.Time
	Finished *time.Time // nil while it runs
}

func seenReport(row store.Report) Report {
	return Report{ID: row.ID, Number: row.Number, TaskID: row.TaskID, Level: row.Level, Text: row.Text, EntityID: row.EntityID, Entity: row.Entity,
		Details: row.Details, Created: row.Created.Time()}
}

// seenReports are the lines of a page, from rows that were read with one more line.
func seenReports(rows []store.Report, page store.Page) (list []Report, next string) {
	rows, next = cut(rows, page, func(row store.Report) string { return row.ID })
	list = make([]Report, len(rows))
	for i, row := range rows {
		list[i] = seenReport(row)
	}
	return list, next
}

// Deployments lists deployments, actions and deletions, follows them, and cancels them.
type Deployments struct{ *core }

// Deployments are the deployments, actions and deletions of environments.
func (s *Service) Deployments() Deployments { return Deployments{s.core} }

// List lists the deployments of an environment, newest first.
func (s Deployments) List(ctx context.Context, caller identity.Caller, environmentID string) ([]Deployment, error) {
	if _, err := s.environment(ctx, caller, environmentID); err != nil {
		return nil, err
	}
	tasks, counts, err := s.store.Tasks().List(ctx, environmentID, "")
	if err != nil {
		return nil, err
	}
	return s.list(ctx, tasks, counts)
}

// OfProject lists the deployments of all environments of the caller's project, newest first.
func (s Deployments) OfProject(ctx context.Context, caller identity.Caller) ([]Deployment, error) {
	if caller.ProjectID == "" {
		return nil, errNoProject()
	}
	tasks, counts, err := s.store.Tasks().List(ctx, "", caller.ProjectID)
	if err != nil {
		return nil, err
	}
	return s.list(ctx, tasks, counts)
}

func errNoProject() error { return fault.New(fault.Forbidden, "The token belongs to no project") }

// Page is a part of List, without descriptions and results: it reads no models. next is the marker of the next page, ""
// after the last one.
func (s Deployments) Page(ctx context.Context, caller identity.Caller, environmentID string, page store.Page) (list []Deployment, next string, err error) {
	if _, err := s.environment(ctx, caller, environmentID); err != nil {
		return nil, "", err
	}
	return s.page(ctx, environmentID, "", page)
}

// ProjectPage is a part of OfProject, as Page is of List.
func (s Deployments) ProjectPage(ctx context.Context, caller identity.Caller, page store.Page) (list []Deployment, next string, err error) {
	if caller.ProjectID == "" {
		return nil, "", errNoProject()
	}
	return s.page(ctx, "", caller.ProjectID, page)
}

func (s Deployments) page(ctx context.Context, environmentID, projectID string, page store.Page) (list []Deployment, next string, err error) {
	tasks, err := s.store.Tasks().Page(ctx, environmentID, projectID, oneMore(page))
	if err != nil {
		return nil, "", pageFault(err, page)
	}
	tasks, next = cut(tasks, page, func(task store.TaskState) string { return task.ID })
	list = make([]Deployment, len(tasks))
	for i, task := range tasks {
		list[i] = seenDeployment(task)
	}
	return list, next, nil
}

// Get shows one deployment as lists do, with its description and its result.
func (s Deployments) Get(ctx context.Context, caller identity.Caller, deploymentID string) (Deployment, error) {
	state, err := s.mayWatch(ctx, caller, deploymentID)
	if err != nil {
		return Deployment{}, err
	}
	task, err := s.task(ctx, deploymentID)
	if err != nil {
		return Deployment{}, err
	}
	list, err := s.list(ctx, []store.Task{task}, map[string]store.Counts{task.ID: state.Counts})
	if err != nil {
		return Deployment{}, err
	}
	return list[0], nil
}

// seenDeployment is a deployment without its model.
func seenDeployment(task store.TaskState) Deployment {
	seen := Deployment{ID: task.ID, EnvironmentID: task.EnvironmentID, State: deploymentState(task.Finished != nil, task.Counts),
		Created: task.Created.Time(), Updated: task.Updated.Time(), Started: task.Started.Time()}
	if task.Finished != nil {
		finished := task.Finished.Time()
		seen.Finished = &finished
	}
	if task.Action.Method != "" {
		action := task.Action
		action.Args = secret.Mask(action.Args)
		action.Allowed, action.Plan = nil, "" // Murano's have neither
		seen.Action = &action
	}
	return seen
}

func (s Deployments) list(ctx context.Context, tasks []store.Task, counts map[string]store.Counts) ([]Deployment, error) {
	list := make([]Deployment, len(tasks))
	for i, task := range tasks {
		list[i] = seenDeployment(store.TaskState{ID: task.ID, EnvironmentID: task.EnvironmentID, Created: task.Created, Updated: task.Updated,
			Started: task.Started, Finished: task.Finished, Action: task.Action, Counts: counts[task.ID]})
		var known secret.Known
		objects, err := s.described(ctx, task, &known)
		if err != nil {
			return nil, err
		}
		list[i].Description, list[i].Result = secret.Mask(store.ForAPI(objects)), listedResult(task, &known)
	}
	return list, nil
}

// described is a task's model as it is shown. known learns the values that its classes declare as secrets.
func (s Deployments) described(ctx context.Context, task store.Task, known *secret.Known) (map[string]any, error) {
	if !muranopl.MayHide(map[string]any(task.Objects)) {
		return task.Objects, nil
	}
	environment, err := s.store.Environments().Peek(ctx, task.EnvironmentID)
	if err != nil && !errors.Is(err, store.ErrNotFound) { // without its environment no class is found, and everything is hidden
		return nil, err
	}
	objects, _ := s.hidden(ctx, environment, map[string]any(task.Objects), func(value any) any {
		known.AddAll(value)
		return secret.Masked(value)
	}).(map[string]any)
	return objects, nil
}

// listedResult is a task's result for lists. Others than the caller of the action read them, long afterwards, so secrets are masked.
// These are known secrets, secrets by their names in the model or the arguments, and results of a method with a secret's name, such
// as showPassword.
func listedResult(task store.Task, known *secret.Known) map[string]any {
	if task.Result["result"] == nil {
		return task.Result
	}
	known.Note("", map[string]any(task.Objects))
	known.Note("", task.Action.Args)
	listed := secret.Mask(task.Result)
	if seen, differs := listed[store.ResultListed]; differs {
		listed["result"] = seen
		delete(listed, store.ResultListed)
	}
	if failed, _ := listed["isException"].(bool); !failed {
		listed["result"] = sensitive.Texts(task.Action.Method, listed["result"], func(string) string { return secret.Mark })
	}
	hidden, _ := known.HideIn(listed).(map[string]any)
	return hidden
}

func deploymentState(ended bool, counts store.Counts) string {
	state, clean := "running", "running"
	if ended {
		state, clean = "completed", "success"
	}
	switch {
	case counts.Errors > 0:
		return state + "_w_errors"
	case counts.Warnings > 0:
		return state + "_w_warnings"
	}
	return clean
}

// Reports returns a deployment's log, oldest first; with serviceIDs only the lines about these applications and objects in
// them.
func (s Deployments) Reports(ctx context.Context, caller identity.Caller, environmentID, deploymentID string, serviceIDs []string) ([]Report, error) {
	list, _, err := s.ReportPage(ctx, caller, environmentID, deploymentID, serviceIDs, store.Page{})
	return list, err
}

// ReportPage is a part of Reports. next is the marker of the next page, "" after the last one.
func (s Deployments) ReportPage(ctx context.Context, caller identity.Caller, environmentID, deploymentID string, serviceIDs []string,
	page store.Page) (list []Report, next string, err error) {
	if _, err := s.environment(ctx, caller, environmentID); err != nil {
		return nil, "", err
	}
	state, err := s.taskState(ctx, deploymentID)
	if err != nil {
		return nil, "", err
	}
	if state.EnvironmentID != environmentID {
		return nil, "", fault.New(fault.Invalid, "Deployment <DeploymentId %s> is not tied with Environment <EnvId %s>", deploymentID, environmentID)
	}
	var entities []string // nil: all lines
	if len(serviceIDs) > 0 {
		if entities, err = s.entities(ctx, deploymentID, serviceIDs); err != nil {
			return nil, "", err
		}
	}
	rows, err := s.store.Reports().Page(ctx, deploymentID, entities, oneMore(page))
	if err != nil {
		return nil, "", pageFault(err, page)
	}
	list, next = seenReports(rows, page)
	return list, next, nil
}

// entities are the ids of applications of a deployment's model and of the objects in them.
func (s Deployments) entities(ctx context.Context, deploymentID string, serviceIDs []string) ([]string, error) {
	task, err := s.task(ctx, deploymentID)
	if err != nil {
		return nil, err
	}
	ids := []string{}
	services, _ := task.Objects["applications"].([]any)
	for _, service := range services {
		if slices.Contains(serviceIDs, idOf(service)) {
			ids = append(ids, objectIDs(service)...)
		}
	}
	return ids, nil
}

// Steps returns a deployment's native steps in the order of their start.
func (s Deployments) Steps(ctx context.Context, caller identity.Caller, deploymentID string) ([]Step, error) {
	if _, err := s.mayWatch(ctx, caller, deploymentID); err != nil {
		return nil, err
	}
	rows, err := s.store.Tasks().Steps(ctx, deploymentID)
	if err != nil {
		return nil, err
	}
	steps := make([]Step, len(rows))
	begun := map[[2]string]string{} // the last step of an object and a name
	for i, row := range rows {
		steps[i] = Step{ID: row.ID, ObjectID: row.ObjectID, Class: row.Class, Name: row.Name, Error: row.Error, Started: row.Started.Time()}
		if row.Finished != nil {
			finished := row.Finished.Time()
			steps[i].Finished = &finished
		}
		for _, name := range row.WaitsFor {
			if id := begun[[2]string{row.ObjectID, name}]; id != "" {
				steps[i].WaitsFor = append(steps[i].WaitsFor, id)
			}
		}
		begun[[2]string{row.ObjectID, row.Name}] = row.ID
	}
	return steps, nil
}

// Progress is a deployment's progress.
type Progress struct {
	Deployment               // without description and result
	Reports, Steps, Done int // lines of its log; native steps that have begun; and steps that have ended in success
	Failed               int // steps
}

// Progress returns a deployment's progress. It reads no model.
func (s Deployments) Progress(ctx context.Context, caller identity.Caller, deploymentID string) (Progress, error) {
	task, err := s.mayWatch(ctx, caller, deploymentID)
	if err != nil {
		return Progress{}, err
	}
	steps, err := s.store.Tasks().Steps(ctx, deploymentID)
	if err != nil {
		return Progress{}, err
	}
	last, err := s.store.Reports().LastNumber(ctx, deploymentID)
	progress := Progress{Deployment: seenDeployment(task), Reports: int(last), Steps: len(steps)}
	for _, step := range steps {
		switch {
		case step.Error != "":
			progress.Failed++
		case step.Finished != nil:
			progress.Done++
		}
	}
	return progress, err
}

// ObjectReports is a part of the reports about an object and the objects in it, the newest first. It covers all runs over their environment.
// next is the marker of the next page, "" after the last one.
func (s Deployments) ObjectReports(ctx context.Context, caller identity.Caller, environmentID, objectID string, page store.Page) (list []Report, next string, err error) {
	environment, err := s.environment(ctx, caller, environmentID)
	if err != nil {
		return nil, "", err
	}
	ids := []string{objectID} // it may be gone
	for _, model := range []map[string]any{environment.Model.Objects, environment.Model.ObjectsCopy} {
		for _, id := range objectIDs(objectOf(model, objectID)) {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	rows, err := s.store.Reports().ObjectPage(ctx, environmentID, ids, oneMore(page))
	if err != nil {
		return nil, "", pageFault(err, page)
	}
	list, next = seenReports(rows, page)
	return list, next, nil
}

// objectOf finds the object with an id in a value of a model; nil without one.
func objectOf(value any, id string) any {
	switch v := value.(type) {
	case map[string]any:
		if header, ok := v["?"].(map[string]any); ok && header["id"] == id {
			return v
		}
		for key, element := range v {
			if key == "?" {
				continue
			}
			if found := objectOf(element, id); found != nil {
				return found
			}
		}
	case []any:
		for _, element := range v {
			if found := objectOf(element, id); found != nil {
				return found
			}
		}
	}
	return nil
}

// gone is the end state of a task that is gone with its environment.
func (s Deployments) gone(ctx context.Context, taskID string) (state string, err error) {
	abandoned, err := s.store.Environments().Abandoned(ctx, taskID)
	if abandoned {
		return "abandoned", err
	}
	return "success", err
}

// Cancel ends a deployment early, at its next safe point: its resources stay, and deploying again goes on from there. It answers
// when the cancellation is written; Follow waits until the deployment has ended.
func (s Deployments) Cancel(ctx context.Context, caller identity.Caller, deploymentID string) error {
	task, err := s.task(ctx, deploymentID)
	if err != nil {
		return err
	}
	if _, err := s.environment(ctx, caller, task.EnvironmentID); err != nil {
		return err
	}
	err = s.store.Tasks().Cancel(ctx, deploymentID, caller.UserID, "The user asked for the end of this "+task.Kind())
	switch {
	case errors.Is(err, store.ErrEnded):
		return fault.New(fault.Conflict, "Deployment %s has ended already: there is nothing to cancel", deploymentID)
	case errors.Is(err, store.ErrNotFound):
		return noDeployment(deploymentID)
	case err != nil:
		return err
	}
	s.engine.Cancel(task.EnvironmentID)
	return nil
}

// Retry runs a failed task again: the newest deployment, action or deletion of its environment. It returns the new deployment's
// id.
func (s Deployments) Retry(ctx context.Context, caller identity.Caller, deploymentID string) (taskID string, err error) {
	task, err := s.task(ctx, deploymentID)
	if err != nil {
		return "", err
	}
	environment, err := s.environment(ctx, caller, task.EnvironmentID)
	if err != nil {
		return "", err
	}
	delegation, err := Delegations(s).delegate(ctx, caller, environment)
	if err != nil {
		return "", err
	}
	again, err := s.store.Tasks().Resubmit(ctx, task.ID, caller.UserID, store.Submission{
		Text: "This " + task.Kind() + " is tried again: the former one was " + task.ID, DelegationID: delegation.ID, Origin: submitter(caller),
	})
	if err != nil {
		Delegations(s).giveBack(ctx, delegation)
		switch {
		case errors.Is(err, store.ErrBusy):
			return "", errBusy(task.EnvironmentID)
		case errors.Is(err, store.ErrStale):
			return "", fault.New(fault.Conflict, "Deployment %s was rejected before it changed anything, and its draft was discarded or is older than the environment: deploy the change anew", deploymentID)
		case errors.Is(err, store.ErrNoFailure):
			return "", fault.New(fault.Conflict, "Deployment %s is not the last one of its environment, or has not failed: there is nothing to try again", deploymentID)
		case errors.Is(err, store.ErrNotFound):
			return "", noDeployment(deploymentID)
		}
		return "", revoked(err)
	}
	s.engine.Wake()
	return again.ID, nil
}

func noDeployment(id string) error {
	return fault.New(fault.NotFound, "The resource could not be found: there is no deployment %s", id)
}

// mayWatch returns the state of a deployment, or a fault unless its environment is one that the caller may see.
func (s Deployments) mayWatch(ctx context.Context, caller identity.Caller, deploymentID string) (store.TaskState, error) {
	task, err := s.taskState(ctx, deploymentID)
	if err != nil {
		return task, err
	}
	_, err = s.environment(ctx, caller, task.EnvironmentID)
	return task, err
}

func (s Deployments) taskState(ctx context.Context, id string) (store.TaskState, error) {
	task, err := s.store.Tasks().State(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return task, noDeployment(id)
	}
	return task, err
}

func (s Deployments) task(ctx context.Context, id string) (store.Task, error) {
	task, err := s.store.Tasks().Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return task, noDeployment(id)
	}
	return task, err
}
