// Package body runs the bodies of execution plans: their part of Python, without definitions and most modules.
//
// A body calls the plan's scripts as functions and returns values from their results:
//
//	setup('{0} {1}'.format(args.name, args.port))
//	return status().stdout
//
// Beside that there are assignments, if, for, while, try, raise, texts, numbers, lists, tuples, dicts, comprehensions, and the functions and methods that
// such lines need. An unknown construct is an error with its line, before anything runs where the grammar can show it.
package body

import (
	"context"
	"fmt"
	"slices"
)

// Script is a function that a body calls; method is the name after a point, "" for none.
type Script func(ctx context.Context, method string, args []any, named map[string]any) (any, error)

// Body is a body that was read.
type Body struct {
	statements []statement
	words      map[string]int // names, and how often they occur; a name that is not just called counts twice
}

// repeating are words that can call a script several times, or that reach files of the server.
var repeating = []string{"for", "while", "try", "with", "lambda", "open", "map", "filter"}

// CallsOnce is true if the body certainly calls one of the scripts of these names at most once, and does nothing else on the server.
func (b *Body) CallsOnce(scripts []string) bool {
	calls := 0
	for _, name := range scripts {
		calls += b.words[name]
	}
	return calls == 1 && !slices.ContainsFunc(repeating, func(word string) bool { return b.words[word] > 0 })
}

// Error is a body that cannot be read, or a mistake at run time: an exception in Python.
type Error struct {
	Line int    // from 1; 0: not known
	Type string // SyntaxError, NameError, TypeError, KeyError, …
	Text string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("the plan's Body: %s: %s", e.Type, e.Text)
	}
	return fmt.Sprintf("line %d of the plan's Body: %s: %s", e.Line, e.Type, e.Text)
}

// Limits of one run.
const (
	maxSteps = 2_000_000 // statements, turns of loops, and nodes of expressions
	maxText  = 8 << 20   // bytes of a text
	maxItems = 100_000   // of a list or dict
	maxDepth = 100       // of nested expressions and blocks
)

// World has the functions and files that a body reaches.
type World struct {
	Scripts map[string]Script
	// Write writes a file of the server, or adds to it; Read reads one. nil: there are none.
	Write func(ctx context.Context, path, content string, add bool) error
	Read  func(ctx context.Context, path string) (string, error)
	// Seed makes uuid.uuid4() give the same each time that the same body runs again.
	Seed string
}

// Run runs the body and returns its result: nil, bool, int64, float64, string, []any or map[string]any. parameters are args. The scripts' results may be
// dicts (map[string]any), whose keys are attributes as well. An error of a script or file that no except catches is returned as it is.
func (b *Body) Run(ctx context.Context, parameters map[string]any, world World) (any, error) {
	r := &run{ctx: ctx, names: map[string]any{}, world: world}
	for name, script := range world.Scripts {
		r.names[name] = scriptValue{name: name, call: script}
	}
	r.names["args"] = fromGo(parameters)
	if parameters == nil {
		r.names["args"] = newDict()
	}
	end, err := r.block(b.statements)
	if err != nil {
		return nil, unwrap(err)
	}
	if end.kind != returned {
		return nil, nil
	}
	return toGo(end.value)
}

// Text is a value as Python's str writes it.
func Text(value any) string { return str(fromGo(value)) }
