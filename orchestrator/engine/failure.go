package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/panics"
	"github.com/burano/burano/orchestrator/store"
)

// failure is the reason why a task failed, for its log and its result.
type failure struct {
	lines   []line // lines for the log; none when they were written already
	message string // of the result
	details string
	defect  *panics.Error // nil: the failure is no defect of Burano
}

// line is one error report.
type line struct {
	text    string
	details string
	object  *muranopl.Object // the report's subject; may be nil
}

// methodError is an error of a native method, with the name of the innermost method that it came from.
type methodError struct {
	method *muranopl.Method
	object *muranopl.Object
	err    error
}

func (e *methodError) Error() string { return fullName(e.method) + ": " + e.err.Error() }

func (e *methodError) Unwrap() error { return e.err }

// Within adds the object's method from which an error comes. An error that names a native method already stays as it is, unless that
// method is one of io.murano.system's tools: a report is about their caller.
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

// fullName is class and method as users write them: the destructor is "destroy" in a class, ".destroy" inside.
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
					var result any
					err := panics.Run(func() (err error) {
						result, err = native(ctx, call)
						return err
					})
					err = defective(call, err)
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

// defective turns a panic of a native method into a failure of the object, with the method.
func defective(call muranopl.Call, err error) error {
	defect, ok := err.(*panics.Error)
	if !ok || call.Method == nil {
		return err
	}
	of := ""
	if call.Object != nil {
		of = " of " + call.Object.String()
	}
	return fmt.Errorf("%s%s ended by a defect of Burano. What it has made stays: try again, or change what is wanted of the object. The server's log has the details. %w",
		strings.TrimPrefix(call.Method.Name, "."), of, defect)
}

// exception is a task's result when it failed.
func exception(message, details string) store.Document {
	return store.Document{"isException": true, "result": map[string]any{"message": message, "details": details}}
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

// failedWith reports an error; method is where it came from, "" when from no class. Joined errors get a report each.
func failedWith(method string, err error) *failure {
	failed := &failure{message: err.Error()}
	errors.As(err, &failed.defect)
	var causes []error
	for _, part := range parts(err) {
		l := line{text: part.Error()}
		var inner *methodError
		if errors.As(part, &inner) {
			if slices.ContainsFunc(causes, func(cause error) bool { return identical(cause, inner.err) }) {
				continue // another object has waited for the failed one
			}
			causes = append(causes, inner.err)
			l.object = inner.object
		} else if method != "" && !strings.Contains(l.text, method) {
			l.text = method + ": " + l.text
		}
		var thrown *muranopl.Exception
		if errors.As(part, &thrown) {
			l.details = thrown.Traceback()
			if l.object == nil {
				l.object = thrown.Object()
			}
		}
		if !slices.Contains(failed.lines, l) { // several may have waited for the same failed object
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

// identical reports whether two errors are the same one, and not only alike.
func identical(a, b error) bool { return reflect.TypeOf(a).Comparable() && a == b }

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
