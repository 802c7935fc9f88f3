package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/memory"
	"github.com/burano/burano/internal/panics"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/store"
)

// run runs one task to its end, or gives it back when the process stops. before is the task as it was before this process
// took it.
func (e *Engine) run(ctx context.Context, h *held, before store.Task) {
	task := h.Task()
	log := h.log.With("task", task.ID, "environment", task.EnvironmentID, "fence", h.Fence())
	began, how := time.Now(), "lost"
	e.metrics.began(before)
	defer func() { e.metrics.ended(task, how, context.Cause(ctx), time.Since(began)) }()
	log.Info("a task begins", "kind", task.Kind(), "former worker", before.Worker, "former fence", before.Fence)
	outcome, failed := e.attempt(ctx, h, before)
	if failed != nil && failed.defect != nil {
		log.Error("a task met a defect of Burano", "panic", failed.defect.Value, "stack", string(failed.defect.Stack))
	}

	// The end is written even when the process is stopping.
	endCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	cause := context.Cause(ctx)
	switch {
	case failed == nil:
	case errors.Is(cause, errCancelled):
		failed, cause = failedWith("", fmt.Errorf("the %s was cancelled before it was done. What it has made stays. %s", task.Kind(), again(task))), nil
	case errors.Is(cause, errTime):
		failed, cause = failedWith("", fmt.Errorf("the %s was ended because it took longer than %s, the setting task-time-limit. What it has made stays. %s",
			task.Kind(), e.TaskTime, again(task))), nil
	}
	switch {
	case h.lease.Check() != nil:
		log.Warn("a task was left to others", "reason", context.Cause(ctx))
		return
	case failed != nil && cause == nil && h.away.Load():
		if err := h.AddReport(endCtx, store.Report{Level: string(LevelInfo), Text: capital(errMadeWayForUser.Error())}); err != nil && !errors.Is(err, store.ErrNotFound) {
			log.Error("a report could not be written", "text", errMadeWayForUser.Error(), "error", err)
		}
		outcome.Failed, outcome.Result = true, exception(errMadeWayForUser.Error(), "")
	case failed != nil && cause == nil:
		if err := h.report(endCtx, failed.lines); err != nil && !errors.Is(err, store.ErrNotFound) {
			log.Error("a report could not be written", "text", failed.message, "error", err)
		}
		outcome.Failed, outcome.Result = true, exception(failed.message, failed.details)
	case failed != nil:
		text := fmt.Sprintf("%s while this %s ran. It goes on, from what is there, as soon as a Burano server runs.", capital(cause.Error()), task.Kind())
		if err := h.GiveBack(endCtx, store.Report{Level: string(LevelInfo), Text: text}); err != nil {
			log.Error("a task could not be given back; it is taken over when its lease has run out", "error", err)
			return
		}
		how = "given back"
		log.Info("a task was given back", "reason", cause)
		return
	}
	// This process stops counting the task as running before others can see its end.
	e.mutex.Lock()
	delete(e.running, task.EnvironmentID)
	e.mutex.Unlock()
	outcome.Looked = e.Looked
	ended, err := h.Finish(endCtx, outcome)
	switch {
	case errors.Is(err, store.ErrNotFound):
		log.Info("a task ended after its environment was removed")
	case err != nil:
		log.Error("the end of a task could not be written; it is taken over when its lease has run out", "error", err)
	default:
		switch how = "success"; {
		case ended && errors.Is(context.Cause(ctx), errCancelled):
			how = "cancelled"
		case ended:
			how = "failure"
		}
		log.Info("a task ended", "failed", ended)
		e.Revoke()
	}
}

// attempt executes a task, unless it has cost too many workers. If the task was taken over, its log gets a line about that.
func (e *Engine) attempt(ctx context.Context, h *held, before store.Task) (store.Outcome, *failure) {
	task := h.Task()
	if h.again = before.Fence != 0; h.again {
		text := fmt.Sprintf("A Burano server goes on with this %s: what is there is taken over, not made twice.", task.Kind())
		if before.Worker != "" {
			text = fmt.Sprintf("The Burano server that ran this %s is gone. Another one has taken it over and goes on: what is there is taken over, not made twice.", task.Kind())
		}
		if err := h.AddReport(ctx, store.Report{Level: string(LevelInfo), Text: text}); err != nil {
			return store.Outcome{}, failedWith("", err)
		}
	}
	var outcome store.Outcome
	var failed *failure
	err := panics.Run(func() (err error) {
		if err = e.admitAwake(ctx, h); err == nil {
			outcome, failed = e.execute(ctx, h)
		}
		return err
	})
	if err != nil {
		return store.Outcome{}, failedWith("", err)
	}
	return outcome, failed
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// execute runs the task: it loads the model, destroys removed objects, and runs the action. The outcome has a model only when the
// action has begun.
func (e *Engine) execute(ctx context.Context, h *held) (outcome store.Outcome, failed *failure) {
	task := h.Task()
	environment, err := e.Store.Environments().Get(ctx, task.EnvironmentID)
	if err != nil {
		return outcome, failedWith("", err)
	}
	if task.Origin.Packages != nil {
		environment.Model.Packages = task.Origin.Packages
	}
	account := e.Memory.Account(environment.ProjectID)
	defer account.Close()
	noteSizes(account, task.Objects, environment.Model.ObjectsCopy, task.Action.Args)
	ctx = memory.With(ctx, account)
	h.know(task.Objects, environment.Model.ObjectsCopy, task.Action.Args)
	if task.CancelledBy != "" {
		h.lease.End(errCancelled)
		return outcome, failedWith("", errCancelled)
	}
	if e.condemned(task) {
		return outcome, failedWith("", fmt.Errorf("%d Burano servers ended while they ran this %s, the last %d of them while they ran nothing else, and it got no further; the limit (max-deaths) is %d. Their logs say why. %s",
			task.Deaths, task.Kind(), task.AloneDeaths, e.MaxDeaths, again(task)))
	}
	classes := e.classes(environment.ProjectID)
	if err := classes.Fix(ctx, environment.Model.Packages); err != nil {
		return outcome, failedWith("", err)
	}
	for _, model := range []map[string]any{task.Objects, environment.Model.ObjectsCopy} {
		if !muranopl.MayHide(model) {
			continue
		}
		e.Hidden(ctx, environment.ProjectID, environment.Model.Packages, model, func(value any) any { h.known.AddAll(value); return value })
	}
	runtime := &Runtime{sleeping: sleeping{e.Store, h}, engine: e, held: h, environment: environment}
	defer runtime.giveUp()

	interpreter := muranopl.NewInterpreter(classes, named(e.Natives(runtime)), muranopl.WithLogger(h.log), muranopl.WithStored(h.known.Note), muranopl.WithLimits(e.Code))
	var start func(context.Context) error
	if task.Objects != nil {
		var problems []muranopl.Problem
		runtime.model, start, problems = interpreter.Prepare(ctx, task.Objects)
		if len(problems) > 0 {
			return outcome, reportProblems(ctx, h, "", problems)
		}
		if err := start(ctx); err != nil {
			return outcome, failedWith("", err)
		}
	}
	root := runtime.model
	former := environment.Model.ObjectsCopy
	if task.Repair || task.Sleeps() {
		former = nil // objects that a deployment left to be destroyed wait for the next one
	}
	removed, problems, err := loadRemoved(ctx, interpreter, root, former, task.Objects)
	if err != nil {
		return outcome, failedWith("", err)
	}
	if len(problems) > 0 {
		return outcome, reportProblems(ctx, h, "What was deployed before can no longer be read, so that it cannot be destroyed: ", problems)
	}

	if task.Kind() == "deployment" {
		// Before anything is touched.
		if err := confirm(ctx, e, runtime, muranopl.UnknownKeys(interpreter)); err != nil {
			return outcome, failedWith("", err)
		}
	}
	if len(removed) > 0 {
		if err := h.Begin(ctx); err != nil {
			return outcome, failedWith("", err)
		}
	}
	if failed := destroy(ctx, h, interpreter, removed); failed != nil {
		return outcome, failed
	}
	if task.Objects == nil {
		outcome.Result = store.Document{"isException": false, "result": nil}
		return outcome, nil
	}
	if !task.Repair && !task.Sleeps() { // which make no new objects
		if err := h.SaveObjectsCopy(ctx, task.Objects, classes.Versions()); err != nil {
			return outcome, failedWith("", err)
		}
	}

	result, failed := act(ctx, interpreter, root, task.Action, task.Repair || task.Sleeps())
	if err := interpreter.Finish(ctx, root); err != nil && failed == nil {
		failed = failedWith("", err)
	}
	if failed == nil {
		if err := runtime.end(ctx); err != nil {
			failed = failedWith("", err)
		}
	}
	if err := savable(root, task.Objects); err != nil {
		if failed == nil {
			failed = failedWith("", err)
		}
		return outcome, failed // the model stays as it was before the task
	}
	outcome, failed = end(ctx, runtime, classes, root, result, failed)
	noteSizes(account, outcome.Result)
	return outcome, failed
}

// mostUnknown is how many unknown keys of a model a deployment warns of.
const mostUnknown = 20

// confirm refuses a deployment that its plan refuses, and warns of keys of its model that have no effect. Murano ignores such keys, so the deployment goes on, and its
// state stays Murano's: the level of the report is info.
func confirm(ctx context.Context, e *Engine, runtime *Runtime, unknown []muranopl.Problem) error {
	h := runtime.held
	task := h.Task()
	plan, err := e.Plan(ctx, runtime.environment, task.Objects, runtime.Project, false)
	shown := task.Action.Plan
	if h.again { // its first run may have written the model
		shown = preview.EndsOf(shown)
	}
	if err == nil {
		err = plan.Refusal(task.Action.Allowed, shown)
	}
	if err != nil || h.again {
		return err
	}
	for i, one := range unknown {
		text := fmt.Sprintf("Warning: %s: %s", apiPath(one.Path), one.Wanted)
		if i == mostUnknown {
			text = fmt.Sprintf("Warning: %d more keys of the model are not known, and have no effect", len(unknown)-i)
		}
		if i > mostUnknown {
			break
		}
		if err := h.AddReport(ctx, store.Report{Level: string(LevelInfo), Text: text}); err != nil {
			return err
		}
	}
	return nil
}

// end is the outcome of a task whose method has ended, in success unless failed is set.
func end(ctx context.Context, runtime *Runtime, classes *muranopl.Classes, root *muranopl.Object, result any, failed *failure) (outcome store.Outcome, _ *failure) {
	task, model := runtime.held.Task(), muranopl.Save(root)
	outcome.Objects, outcome.ObjectsCopy, outcome.Packages = store.ForAPI(model), model, classes.Versions()
	if failed != nil {
		return outcome, failed
	}
	outcome.Parts = runtime.parts(ctx, classes)
	if err := muranopl.Written(result, MaxResult, "the result of "+task.Action.Method); err != nil {
		return outcome, failedWith("", fmt.Errorf("%w. What the %s has made stays. Have the method return less, or a part at a time", err, task.Kind()))
	}
	outcome.Result = store.Document{"isException": false, "result": muranopl.SaveResult(result)}
	return outcome, nil
}

// noteSizes counts the values of models that a task holds: they take about twice as much as their JSON.
func noteSizes(account *memory.Account, values ...any) {
	for _, value := range values {
		if size, err := door.Size(value, math.MaxInt64, ""); err == nil {
			account.Note(2 * size)
		}
	}
}

// MaxResult is the largest result of an action in bytes, and maxModel the largest model that a task may leave.
const (
	MaxResult = 16 << 20
	maxModel  = 64 << 20
)

// savable returns an error when the model is too large to be written. A model that was larger before the task may stay that large.
func savable(root *muranopl.Object, given map[string]any) error {
	err := muranopl.Written(root, maxModel, "the environment's model")
	if size, sizeErr := door.Size(given, math.MaxInt64, ""); err != nil && sizeErr == nil {
		err = muranopl.Written(root, max(maxModel, 2*size), "the environment's model")
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: methods have set properties to more than is kept. The model stays as it was before; what was made stays, too. Keep large texts once, and refer to them", err)
}

// act invokes the action's method on its object. It must be public, or native where Burano itself has chosen it: in a repair, and to hibernate or wake.
func act(ctx context.Context, interpreter *muranopl.Interpreter, root *muranopl.Object, action store.Action, own bool) (any, *failure) {
	var object *muranopl.Object
	root.Walk(func(o *muranopl.Object) bool {
		if o.ID() == action.ObjectID {
			object = o
		}
		return object == nil
	})
	if object == nil {
		return nil, failedWith("", fmt.Errorf("the environment has no object %s to run %s on", action.ObjectID, action.Method))
	}
	method, err := object.Class().Method(action.Method)
	if err != nil {
		return nil, failedWith("", err)
	}
	if method == nil {
		return nil, failedWith("", fmt.Errorf("class %s has no method %s", object.Class().Name, action.Method))
	}
	invoke := interpreter.InvokeAction
	if own && method.Native {
		invoke = interpreter.Invoke
	}
	result, err := invoke(ctx, object, action.Method, action.Args)
	if err != nil {
		return nil, failedWith(fullName(method), err)
	}
	return result, nil
}
