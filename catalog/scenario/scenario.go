// Package scenario runs scenarios over packages: models are loaded, methods called, models written back, as the engine does it but with
// nothing around.
package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/catalog/yaql"
)

// step is one line of a scenario. Exactly one of Load, Call and Serialize is given.
type step struct {
	// Load is a model: {"Objects": …, "ObjectsCopy": …, "Attributes": […]}, or the root object alone.
	Load map[string]any `json:"load"`

	// Call is the name of a method, of the object of id On ("root", or nothing: the root) or of the class OnClass.
	Call    string         `json:"call"`
	On      string         `json:"on"`
	OnClass string         `json:"on_class"`
	Args    []any          `json:"args"`
	Kwargs  map[string]any `json:"kwargs"`

	Serialize bool `json:"serialize"`
}

// outcome is the result of a step: one line.
type outcome struct {
	Result    any     `json:"result"`
	Exception *raised `json:"exception,omitempty"`
	Traces    []any   `json:"traces"`
}

func (o outcome) MarshalJSON() ([]byte, error) {
	line := map[string]any{"traces": o.Traces}
	if o.Exception != nil {
		line["exception"] = o.Exception
	} else {
		line["result"] = yaql.JSON(o.Result)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(line)
	return bytes.TrimSpace(b.Bytes()), err
}

type raised struct {
	Names      []string `json:"names"`
	Message    string   `json:"message"`
	StackTrace string   `json:"stackTrace"`
}

// Run reads steps, a JSON object each, and writes a line of JSON for each as it is done: "result" or "exception" ("names", "message", "stackTrace" as
// Murano writes it), and "traces": the arguments of the function trace(value) during the step. Each load begins anew. options are those of the classes. It
// returns an error when a step cannot be read or written; a step that fails is no error.
func Run(ctx context.Context, source muranopl.Source, steps io.Reader, out io.Writer, options ...muranopl.Option) error {
	r := newRun(source, options)
	decoder := json.NewDecoder(steps)
	decoder.UseNumber()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for n := 1; ; n++ {
		var raw map[string]any
		switch err := decoder.Decode(&raw); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("step %d: it is no JSON object: %w", n, err)
		}
		s, err := parse(raw)
		if err != nil {
			return fmt.Errorf("step %d: %w", n, err)
		}
		result, err := r.do(ctx, s)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		done := outcome{Result: result, Traces: r.taken()}
		if err != nil {
			e := muranopl.AsException(err)
			done.Exception = &raised{e.Names, e.Message, muranopl.FormatFrames(e.Frames, "")}
		}
		if err := encoder.Encode(done); err != nil {
			return fmt.Errorf("write the outcome of step %d: %w", n, err)
		}
	}
}

func parse(raw map[string]any) (step, error) {
	var s step
	text, err := json.Marshal(raw)
	if err != nil {
		return s, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return s, fmt.Errorf("a step is {\"load\": model}, {\"call\": method, …} or {\"serialize\": true}: %w", err)
	}
	kinds := 0
	for _, given := range []bool{s.Load != nil, s.Call != "", s.Serialize} {
		if given {
			kinds++
		}
	}
	if kinds != 1 {
		return s, errors.New(`a step has one of "load", "call" and "serialize"`)
	}
	if s.On != "" && s.OnClass != "" {
		return s, errors.New(`a call is "on" an object or "on_class", not both`)
	}
	yaql.FromJSON(s.Load)
	yaql.FromJSON(s.Args)
	yaql.FromJSON(s.Kwargs)
	return s, nil
}
