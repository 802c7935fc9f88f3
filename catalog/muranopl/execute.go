package muranopl

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/internal/panics"
)

// run runs the instructions until one ends the block.
func (b block) run(ctx context.Context, s *strand) (outcome, error) {
	for _, one := range b {
		if ctx.Err() != nil {
			return outcome{}, context.Cause(ctx)
		}
		if err := s.tick(); err != nil {
			return outcome{}, s.raise(ctx, err)
		}
		s.begin(one)
		pins := s.pins()
		ended, err := one.run(ctx, s)
		s.unpin(pins)
		if err != nil {
			return outcome{}, s.raise(ctx, err)
		}
		if ended.kind != goesOn {
			return ended, nil
		}
	}
	return outcome{}, nil
}

func (e evaluation) run(ctx context.Context, s *strand) (outcome, error) {
	_, err := s.fill(ctx, e.value)
	return outcome{}, err
}

func (a assignment) run(ctx context.Context, s *strand) (outcome, error) {
	value, err := s.fill(ctx, a.value)
	if err != nil {
		return outcome{}, err
	}
	return outcome{}, s.assign(ctx, a.target, a.target.Root(), value)
}

func (r returning) run(ctx context.Context, s *strand) (outcome, error) {
	value, err := s.fill(ctx, r.value)
	return outcome{returns, value}, err
}

func (b branching) run(ctx context.Context, s *strand) (outcome, error) {
	condition, err := s.fill(ctx, b.condition)
	if err != nil {
		return outcome{}, err
	}
	if yaql.Truth(condition) {
		return b.then.run(ctx, s)
	}
	return b.otherwise.run(ctx, s)
}

// once runs a loop's body; true: the loop is over, with that outcome.
func (b block) once(ctx context.Context, s *strand) (bool, outcome, error) {
	if err := s.tick(); err != nil {
		return true, outcome{}, err
	}
	ended, err := b.run(ctx, s)
	switch {
	case err != nil || ended.kind == returns:
		return true, ended, err
	case ended.kind == breaks:
		return true, outcome{}, nil
	}
	return false, outcome{}, nil
}

func (w whileLoop) run(ctx context.Context, s *strand) (outcome, error) {
	for {
		if ctx.Err() != nil {
			return outcome{}, context.Cause(ctx)
		}
		pins := s.pins()
		condition, err := s.fill(ctx, w.condition)
		s.unpin(pins)
		if err != nil || !yaql.Truth(condition) {
			return outcome{}, err
		}
		if over, ended, err := w.body.once(ctx, s); over {
			return ended, err
		}
	}
}

func (f forLoop) run(ctx context.Context, s *strand) (outcome, error) {
	collection, err := s.fill(ctx, f.collection)
	if err != nil {
		return outcome{}, err
	}
	items, ok := iterate(collection)
	if !ok {
		return outcome{}, raised("TypeError", "For goes through a collection, not through %s", yaql.TypeName(collection))
	}
	s.pin(items)
	for _, item := range items {
		if ctx.Err() != nil {
			return outcome{}, context.Cause(ctx)
		}
		s.frame.set(f.variable, item)
		if over, ended, err := f.body.once(ctx, s); over {
			return ended, err
		}
	}
	return outcome{}, nil
}

// iterate lists the items of Python's for: of a map the keys, of a text the characters.
func iterate(collection any) ([]any, bool) {
	switch v := collection.(type) {
	case []any:
		return v, true
	case map[string]any:
		keys := make([]any, 0, len(v))
		for _, key := range sortedKeys(v) {
			keys = append(keys, key)
		}
		return keys, true
	case *yaql.Dict:
		keys := make([]any, 0, v.Len())
		for _, e := range v.Entries() {
			keys = append(keys, e.Key)
		}
		return keys, true
	case *yaql.Set:
		return v.Members(), true
	case string:
		var characters []any
		for _, r := range v {
			characters = append(characters, string(r))
		}
		return characters, true
	}
	return nil, false
}

func (r repeatLoop) run(ctx context.Context, s *strand) (outcome, error) {
	times, err := s.fill(ctx, r.times)
	if err != nil {
		return outcome{}, err
	}
	count, ok := times.(int64)
	if !ok {
		return outcome{}, raised("TypeError", "Repeat takes a whole number, not %s", yaql.TypeName(times))
	}
	for range count {
		if ctx.Err() != nil {
			return outcome{}, context.Cause(ctx)
		}
		if over, ended, err := r.body.once(ctx, s); over {
			return ended, err
		}
	}
	return outcome{}, nil
}

func (l leaving) run(context.Context, *strand) (outcome, error) { return outcome{kind: l.how}, nil }

func (m matching) run(ctx context.Context, s *strand) (outcome, error) {
	value, err := s.fill(ctx, m.value)
	if err != nil {
		return outcome{}, err
	}
	for _, c := range m.cases {
		when, err := s.fill(ctx, c.when)
		if err != nil {
			return outcome{}, err
		}
		if yaql.Equal(value, when) {
			return c.body.run(ctx, s)
		}
	}
	return m.otherwise.run(ctx, s)
}

func (w switching) run(ctx context.Context, s *strand) (outcome, error) {
	any := false
	for _, c := range w.cases {
		holds, err := s.fill(ctx, c.when)
		if err != nil {
			return outcome{}, err
		}
		if !yaql.Truth(holds) {
			continue
		}
		any = true
		if ended, err := c.body.run(ctx, s); err != nil || ended.kind != goesOn {
			return ended, err
		}
	}
	if any {
		return outcome{}, nil
	}
	return w.otherwise.run(ctx, s)
}

func (d doing) run(ctx context.Context, s *strand) (outcome, error) { return d.body.run(ctx, s) }

// run runs each instruction in a strand of its own and waits for all; the first error, in the order of the instructions, is that of
// the block.
func (p parallel) run(ctx context.Context, s *strand) (outcome, error) {
	limit := len(p.body)
	if p.limit != nil {
		given, err := s.fill(ctx, p.limit)
		if err != nil {
			return outcome{}, err
		}
		n, ok := given.(int64)
		if !ok && given != nil {
			return outcome{}, raised("TypeError", "the Limit of Parallel is a whole number, not %s", yaql.TypeName(given))
		}
		if n > 0 {
			limit = int(min(n, int64(limit)))
		}
	}
	results := make([]outcome, len(p.body))
	err := s.frame.interpreter.abreast(ctx, len(p.body), limit, func(ctx context.Context, n int) (err error) {
		s.beside(func(mine *strand) { results[n], err = p.body[n:n+1].run(mine.enter(ctx), mine) })
		return err
	})
	if err != nil {
		return outcome{}, err
	}
	for _, ended := range results {
		if ended.kind != goesOn {
			return ended, nil
		}
	}
	return outcome{}, nil
}

// abreast runs work number 0 to count-1, at most limit at a time, and returns when all is done: the first error, in the order of the numbers. Each gets
// its first turn in the order of the numbers too. A panic is the error of its number, so that it does not end the process.
func (i *Interpreter) abreast(ctx context.Context, count, limit int, work func(ctx context.Context, n int) error) error {
	if p := runningOf(ctx); !p.runs(i) {
		i.turn.take()
		defer i.turn.give()
		ctx = &running{ctx, i, strandOf(ctx), true}
	}
	failures := make([]error, count)
	var all sync.WaitGroup
	begun := 0
	var next func()
	next = func() { // called by the holder of the turn
		if begun == count {
			return
		}
		n, mine := begun, i.turn.ask()
		begun++
		all.Go(func() {
			<-mine
			defer i.turn.give()
			failures[n] = panics.Run(func() error { return work(ctx, n) })
			next()
		})
	}
	for range min(max(limit, 1), count) {
		next()
	}
	i.waiting(ctx, func(context.Context) { all.Wait() })
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}

func (t trying) run(ctx context.Context, s *strand) (ended outcome, err error) {
	ended, err = t.body.run(ctx, s)
	var e *Exception
	switch {
	case errors.Is(err, errSteps): // nothing more is run
		return ended, err
	case err != nil && ctx.Err() == nil && errors.As(err, &e):
		if c, name := t.catcher(e); c != nil {
			s.beside(func(mine *strand) {
				mine.exception = e
				inner := mine.enter(ctx)
				if c.as != "" {
					s.frame.set(c.as, s.exceptionObject(inner, e, name))
				}
				ended, err = c.body.run(inner, mine)
			})
		}
	case err == nil && ended.kind == goesOn:
		ended, err = t.otherwise.run(ctx, s)
	}
	if len(t.finally) > 0 && ctx.Err() == nil && !errors.Is(err, errSteps) {
		if last, failed := t.finally.run(ctx, s); failed != nil || last.kind != goesOn {
			return last, failed
		}
	}
	return ended, err
}

// catcher is the first Catch that wants the exception, with that of its names that it is caught by.
func (t trying) catcher(e *Exception) (*catch, string) {
	for n := range t.catches {
		c := &t.catches[n]
		if len(c.with) == 0 {
			return c, first(e.Names)
		}
		for _, name := range e.Names {
			if slices.Contains(c.with, name) {
				return c, name
			}
		}
	}
	return nil, ""
}

func (t throwing) run(ctx context.Context, s *strand) (outcome, error) {
	frames := s.stack()
	given, err := s.fill(ctx, t.names)
	if err != nil {
		return outcome{}, err
	}
	list, ok := given.([]any)
	if !ok {
		list = []any{given}
	}
	e := &Exception{Extra: map[string]any{}, Frames: frames}
	for _, item := range list {
		written, ok := item.(string)
		if !ok {
			return outcome{}, raised("ValueError", "Throw takes the name of an exception, not %s", yaql.TypeName(item))
		}
		full, err := s.frame.method.Class.namespaces.resolve(written)
		if err != nil {
			return outcome{}, raised("ValueError", "%v", err)
		}
		e.Names = append(e.Names, full)
	}
	if len(e.Names) == 0 {
		return outcome{}, raised("ValueError", "Throw takes the name of an exception")
	}
	message, err := s.fill(ctx, t.message)
	if err != nil {
		return outcome{}, err
	}
	if message != nil {
		e.Message = yaql.Text(message)
	}
	extra, err := s.fill(ctx, t.extra)
	if err != nil {
		return outcome{}, err
	}
	if fields, ok := plain(extra).(map[string]any); ok {
		e.Extra = fields
	}
	cause, err := s.fill(ctx, t.cause)
	if err != nil {
		return outcome{}, err
	}
	if object, ok := cause.(*Object); ok && object != nil {
		e.Cause = object.exception
	}
	return outcome{}, e
}

func (r rethrowing) run(_ context.Context, s *strand) (outcome, error) {
	if s.exception == nil {
		return outcome{}, raised("TypeError", "Rethrow stands only within Catch")
	}
	return outcome{}, s.exception
}
