package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/store"
)

// loadRemoved returns the deployed objects (before) that objects, the model of root, no longer has, in the order of their destruction.
// Where there are none it loads nothing.
func loadRemoved(ctx context.Context, interpreter *muranopl.Interpreter, root *muranopl.Object, before map[string]any, objects store.Document) ([]*muranopl.Object, []muranopl.Problem, error) {
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

// destroy runs .destroy of the objects that have it, in the order given. When it fails for one, it skips the object's owners
// and destroys all others, so that a second try has less to do.
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
			if err := h.RemoveAttributes(ctx, object.ID(), codePrefix); err != nil {
				failed = failedWith("", err)
			} else {
				h.reached.destroyed(object)
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

// destroyOne destroys one object. Exceptions of its classes are reported and muted, as in Murano; errors of native methods count,
// since something may be left in the cloud.
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
