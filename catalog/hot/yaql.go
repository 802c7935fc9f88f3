package hot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/burano/burano/catalog/yaql"
)

// queryPatience is how long one query may take. Heat has no such limit, but one of iterations (200) and of memory (10,000 bytes).
const queryPatience = 5 * time.Second

// query is the function yaql: an expression over data, which is $.data in it.
func query(s Scope, argument any) (any, error) {
	object, _ := argument.(map[string]any)
	text, isText := object["expression"].(string)
	data, hasData := object["data"]
	if !isText || !hasData {
		return nil, wrong(`a map with "expression", a text, and "data" is wanted`)
	}
	expression, err := yaql.Parse(text)
	if err != nil {
		return nil, wrong("%q is no expression: %v", text, err)
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), queryPatience, errors.New("the expression takes longer than 5 s"))
	defer cancel()
	if err := s.made(data); err != nil {
		return nil, err
	}
	known, err := read(map[string]any{"data": data})
	if err != nil {
		return nil, err
	}
	found, err := expression.Evaluate(ctx, yaql.NewScope(yaql.Standard(), yaql.FromJSON(known), yaql.Limits{}))
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, wrong("%q: %v", text, err)
	}
	if err := s.made(found); err != nil {
		return nil, err
	}
	written, err := json.Marshal(yaql.JSON(found))
	if err != nil {
		return nil, wrong("%q: %v", text, err)
	}
	var plain any
	return plain, json.Unmarshal(written, &plain)
}

// read is a copy of a value whose whole numbers are apart from others.
func read(value any) (made any, err error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, wrong("the data are none of JSON: %v", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return made, decoder.Decode(&made)
}
