package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/panics"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// failure is why a task failed, as its log and its result tell it.
type failure struct {
	lines   []line // reports to be written; none when they were written already
	message string // of the result
	details string
	defect  *panics.Error // nil: it is none of Burano's own
}

// line is one error report.
type line struct {
	text    string
	details string
	object  *muranopl.Object // that the report is about; may be nil
}

// held is a task that this process holds. What is written of the task for people to read tells no secret that is known; all of that is
// written through the methods below.
type held struct {
	*store.Hold
	lease *lease
	known secret.Known
	log   *slog.Logger
}

// know takes down the secrets of the models that the task is about, and of its arguments.
func (h *held) know(models ...map[string]any) {
	for _, model := range models {
		h.known.Note("", model)
	}
}

// AddReport adds a line to the task's log.
func (h *held) AddReport(ctx context.Context, report store.Report) error {
	return h.Hold.AddReport(ctx, h.hidden(report))
}

// GiveBack ends the hold, with a last report.
func (h *held) GiveBack(ctx context.Context, report store.Report) error {
	return h.Hold.GiveBack(ctx, h.hidden(report))
}

func (h *held) hidden(report store.Report) store.Report {
	report.Text = h.known.Hide(report.Text)
	if report.Details != nil {
		details := h.known.Hide(*report.Details)
		report.Details = &details
	}
	return report
}

// EndStep writes the end of a step.
func (h *held) EndStep(ctx context.Context, id, problem string) error {
	return h.Hold.EndStep(ctx, id, h.known.Hide(problem))
}

// Finish writes the end of the task. What an action returns is for who has asked for it, and stays as it is.
func (h *held) Finish(ctx context.Context, outcome store.Outcome) (failed bool, err error) {
	if isException, _ := outcome.Result["isException"].(bool); isException {
		outcome.Result, _ = h.known.HideIn(map[string]any(outcome.Result)).(map[string]any)
	}
	return h.Hold.Finish(ctx, outcome)
}

// report writes the lines of a failure.
func (h *held) report(ctx context.Context, lines []line) error {
	for _, l := range lines {
		report := store.Report{Level: string(LevelError), Text: l.text}
		if l.details != "" {
			report.Details = &l.details
		}
		if l.object != nil {
			id, class := l.object.ID(), l.object.Class().Name
			report.EntityID, report.Entity = &id, &class
		}
		if err := h.AddReport(ctx, report); err != nil {
			return err
		}
	}
	return nil
}

// methodError is an error of a native method, with the name of the innermost method that it came from.
type methodError struct {
	method *muranopl.Method
	object *muranopl.Object
	err    error
}

func (e *methodError) Error() string { return fullName(e.method) + ": " + e.err.Error() }

func (e *methodError) Unwrap() error { return e.err }

// Within says of an error that it came out of an object's method. Where a native method said so already that stays, unless it is one of
// the tools that io.murano.system offers: a report is about who used them.
func Within(object *muranopl.Object, name string, err error) error {
	var inner *methodError
	if err == nil || errors.As(err, &inner) && (inner.object == nil || !strings.HasPrefix(inner.object.Class().Name, "io.murano.system.")) {
		return err
	}
	method, lookupErr := object.Class().Method(name)
	if lookupErr != nil || method == nil {
		return err
	}
	return &methodError{method: method, object: object, err: err}
}

// fullName is class and method as one writes them: the destructor is "destroy" in a class, ".destroy" inside.
func fullName(method *muranopl.Method) string {
	return method.Class.Name + "." + strings.TrimPrefix(method.Name, ".")
}

// named makes the errors of native methods name the method that they came from.
func named(natives muranopl.Natives) muranopl.Natives {
	answer := muranopl.Natives{}
	for pack, classes := range natives {
		answer[pack] = map[string]map[string]muranopl.NativeMethod{}
		for class, methods := range classes {
			answer[pack][class] = map[string]muranopl.NativeMethod{}
			for name, native := range methods {
				answer[pack][class][name] = func(ctx context.Context, call muranopl.Call) (any, error) {
					result, err := native(ctx, call)
					var inner *methodError
					if err != nil && call.Method != nil && !errors.As(err, &inner) {
						err = &methodError{method: call.Method, object: call.Object, err: err}
					}
					return result, err
				}
			}
		}
	}
	return answer
}

// run runs one task to its end, or gives it back when the process is told to stop. before is the task as it was before this
// process took it.
func (e *Engine) run(ctx context.Context, h *held, before store.Task) {
	task := h.Task()
	log := h.log.With("task", task.ID, "environment", task.EnvironmentID, "fence", h.Fence())
	log.Info("a task begins", "kind", task.Kind(), "former worker", before.Worker, "former fence", before.Fence)
	outcome, failed := e.attempt(ctx, h, before)
	if failed != nil && failed.defect != nil {
		log.Error("a task met a defect of Burano", "panic", failed.defect.Value, "stack", string(failed.defect.Stack))
	}

	// The end is written even when the process was told to stop.
	endCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	switch cause := context.Cause(ctx); {
	case h.lease.check() != nil:
		log.Warn("a task was left to others", "reason", context.Cause(ctx))
		return
	case failed != nil && errors.Is(cause, errCancelled):
		failed = failedWith("", fmt.Errorf("the %s was cancelled before it was done. What it has made stays. %s", task.Kind(), again(task)))
		fallthrough
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
		log.Info("a task was given back", "reason", cause)
		return
	}
	// Before the end is seen by anybody, this process no longer counts the task as running.
	e.mutex.Lock()
	delete(e.running, task.EnvironmentID)
	e.mutex.Unlock()
	ended, err := h.Finish(endCtx, outcome)
	switch {
	case errors.Is(err, store.ErrNotFound):
		log.Info("a task ended after its environment was removed")
	case err != nil:
		log.Error("the end of a task could not be written; it is taken over when its lease has run out", "error", err)
	default:
		log.Info("a task ended", "failed", ended)
		if task.Objects == nil && !ended {
			e.deleteTrustsOf(endCtx, task.EnvironmentID)
		}
	}
}

// attempt says in the task's log that it was taken over, when it was, and executes it, unless it has cost too many workers.
func (e *Engine) attempt(ctx context.Context, h *held, before store.Task) (store.Outcome, *failure) {
	task := h.Task()
	if before.Fence != 0 {
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
	err := panics.Run(func() error {
		outcome, failed = e.execute(ctx, h)
		return nil
	})
	if err != nil {
		return store.Outcome{}, failedWith("", err)
	}
	return outcome, failed
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// exception is a task's result when it failed.
func exception(message, details string) store.Document {
	return store.Document{"isException": true, "result": map[string]any{"message": message, "details": details}}
}

// execute does what the task says: it loads the model, destroys what is no longer in it, and runs the action. The outcome has a model
// only when the action has begun.
func (e *Engine) execute(ctx context.Context, h *held) (outcome store.Outcome, failed *failure) {
	task := h.Task()
	environment, err := e.Store.Environment(ctx, task.EnvironmentID)
	if err != nil {
		return outcome, failedWith("", err)
	}
	h.know(task.Objects, environment.Model.ObjectsCopy, task.Action.Args)
	if task.CancelledBy != "" {
		h.lease.end(errCancelled)
		return outcome, failedWith("", errCancelled)
	}
	if task.Deaths > int64(e.MaxDeaths) {
		return outcome, failedWith("", fmt.Errorf("%d Burano servers ended one after another while they ran this %s, and it got no further; the limit is %d. Their logs say why. %s", task.Deaths, task.Kind(), e.MaxDeaths, again(task)))
	}
	classes := e.classes(environment.ProjectID)
	if err := classes.Fix(ctx, environment.Model.Packages); err != nil {
		return outcome, failedWith("", err)
	}
	runtime := &Runtime{engine: e, held: h, environment: environment}

	interpreter := muranopl.NewInterpreter(classes, named(e.Natives(runtime)), muranopl.WithLogger(h.log), muranopl.WithStored(h.known.Note))
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
	doomed, problems, err := loadDoomed(ctx, interpreter, root, environment.Model.ObjectsCopy, task.Objects)
	if err != nil {
		return outcome, failedWith("", err)
	}
	if len(problems) > 0 {
		return outcome, reportProblems(ctx, h, "What was deployed before can no longer be read, so that it cannot be destroyed: ", problems)
	}

	if failed := destroy(ctx, h, interpreter, doomed); failed != nil {
		return outcome, failed
	}
	if task.Objects == nil {
		outcome.Result = store.Document{"isException": false, "result": nil}
		return outcome, nil
	}
	if err := h.SaveObjectsCopy(ctx, task.Objects, classes.Versions()); err != nil {
		return outcome, failedWith("", err)
	}

	result, failed := act(ctx, interpreter, root, task.Action)
	if err := interpreter.Finish(ctx, root); err != nil && failed == nil {
		failed = failedWith("", err)
	}
	if failed == nil {
		if err := runtime.end(ctx); err != nil {
			failed = failedWith("", err)
		}
	}
	model := muranopl.Save(root)
	outcome.Objects, outcome.ObjectsCopy, outcome.Packages = store.ForAPI(model), model, classes.Versions()
	if failed == nil {
		outcome.Result = store.Document{"isException": false, "result": muranopl.SaveResult(result)}
	}
	return outcome, failed
}

// reportProblems writes one error report for each problem. Applications are called services, as in the API.
func reportProblems(ctx context.Context, h *held, prefix string, problems []muranopl.Problem) *failure {
	var lines []string
	for _, problem := range problems {
		problem.Path = apiPath(problem.Path)
		text := prefix + problem.Error()
		lines = append(lines, text)
		if err := h.AddReport(ctx, store.Report{Level: string(LevelError), Text: text}); err != nil {
			return failedWith("", err)
		}
	}
	return &failure{message: lines[0], details: strings.Join(lines, "\n")}
}

// act invokes the action's method, which must be public, on its object.
func act(ctx context.Context, interpreter *muranopl.Interpreter, root *muranopl.Object, action store.Action) (any, *failure) {
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
	result, err := interpreter.InvokeAction(ctx, object, action.Method, action.Args)
	if err != nil {
		return nil, failedWith(fullName(method), err)
	}
	return result, nil
}

// failedWith tells of an error; method is where it came from, "" when from no class. Joined errors get a report each.
func failedWith(method string, err error) *failure {
	failed := &failure{message: err.Error()}
	errors.As(err, &failed.defect)
	for _, part := range parts(err) {
		l := line{text: part.Error()}
		var inner *methodError
		if errors.As(part, &inner) {
			l.object = inner.object
		} else if method != "" && !strings.Contains(l.text, method) {
			l.text = method + ": " + l.text
		}
		var thrown *muranopl.Exception
		if errors.As(part, &thrown) {
			l.details = thrown.Traceback()
		}
		if !slices.Contains(failed.lines, l) { // several may have waited for one thing that failed
			failed.lines = append(failed.lines, l)
		}
	}
	var inner *methodError
	if len(failed.lines) == 1 && errors.As(err, &inner) {
		failed.message = inner.err.Error()
	}
	texts := make([]string, len(failed.lines))
	for i, l := range failed.lines {
		texts[i] = l.text
	}
	failed.details = strings.Join(texts, "\n")
	var thrown *muranopl.Exception
	if errors.As(err, &thrown) && thrown.Native == nil {
		failed.details = thrown.Traceback()
	}
	return failed
}

// parts takes joined errors (errors.Join) apart.
func parts(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, part := range joined.Unwrap() {
		all = append(all, parts(part)...)
	}
	return all
}

// loadDoomed loads of what was deployed before the objects that are not in objects, the model of root, and returns them in the order of
// their destruction. Where nothing is to be destroyed nothing is loaded.
func loadDoomed(ctx context.Context, interpreter *muranopl.Interpreter, root *muranopl.Object, before map[string]any, objects store.Document) ([]*muranopl.Object, []muranopl.Problem, error) {
	if before == nil {
		return nil, nil, nil
	}
	kept := muranopl.ObjectIDs(map[string]any(objects))
	gone := false
	for id := range muranopl.ObjectIDs(before) {
		gone = gone || !kept[id]
	}
	if !gone {
		return nil, nil, nil
	}
	return interpreter.LoadFormer(ctx, root, before)
}

// destroy runs .destroy of the objects that have it, in the order given. When it fails for one, its owners are left, and all
// else is still destroyed, so that a second try has less to do.
func destroy(ctx context.Context, h *held, interpreter *muranopl.Interpreter, objects []*muranopl.Object) *failure {
	var first *failure
	blocked := map[*muranopl.Object]bool{}
	block := func(object *muranopl.Object, why *failure) {
		for owner := object.Owner(); owner != nil; owner = owner.Owner() {
			blocked[owner] = true
		}
		if first == nil {
			first = &failure{message: why.message, details: why.details}
		}
	}
	for _, object := range slices.Backward(objects) {
		interpreter.TellSubscribers(ctx, object)
	}
	for _, object := range objects {
		if ctx.Err() != nil {
			return &failure{message: context.Cause(ctx).Error()}
		}
		if blocked[object] {
			continue
		}
		failed := destroyOne(ctx, h, interpreter, object)
		if failed == nil {
			if err := h.RemoveAttributes(ctx, object.ID()); err != nil {
				failed = failedWith("", err)
			}
		}
		if failed != nil {
			block(object, failed)
			if ctx.Err() != nil {
				continue // run writes the one report of a cancelled task
			}
			for i := range failed.lines {
				failed.lines[i].object = object
			}
			if err := h.report(ctx, failed.lines); err != nil {
				return failedWith("", err)
			}
		}
	}
	return first
}

// destroyOne destroys one object. What its classes throw is reported and muted, as in Murano; errors of native methods count, since
// something may be left in the cloud.
func destroyOne(ctx context.Context, h *held, interpreter *muranopl.Interpreter, object *muranopl.Object) *failure {
	const name = ".destroy"
	method, err := object.Class().Method(name)
	if err != nil {
		return failedWith("", err)
	}
	if method == nil {
		return nil
	}
	err = interpreter.Destroy(ctx, object)
	if err == nil {
		return nil
	}
	var failures []error
	for _, part := range parts(err) {
		var thrown *muranopl.Exception
		if !errors.As(part, &thrown) || thrown.Native != nil || ctx.Err() != nil {
			failures = append(failures, part)
			continue
		}
		text, details := fmt.Sprintf("%s: %s; the destruction goes on", fullName(method), thrown.Message), thrown.Traceback()
		if err := h.AddReport(ctx, store.Report{Level: string(LevelWarning), Text: text, Details: &details}); err != nil {
			failures = append(failures, err)
		}
	}
	if len(failures) == 0 {
		return nil
	}
	return failedWith(fullName(method), errors.Join(failures...))
}
