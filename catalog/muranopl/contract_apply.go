package muranopl

import (
	"context"
	"fmt"

	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/internal/sensitive"
)

// application is one application of a contract to a value of a property or an argument.
type application struct {
	ctx    context.Context
	loader *loader
	this   *Object // in whose property or for whose method; nil for none
	owner  *Object // of the objects that are made of maps, nil for none
	in     *Class  // that declares the contract: its names and functions are used
	path   string
	label  string // class and property or method, for Problems
	// subject is whose contract it is in Murano's messages, base the path where it begins to apply.
	subject, base string
	// failed is the number of reported faults.
	failed int
	// function is the function of a chain that is being applied.
	function string
	// excluded lists the exclusions by template() in the contract of a descendant's property of the same name, by path.
	excluded map[string][]string
}

// apply converts a value by the contract, outside of a model that is being loaded. subject is the owner of the contract in Murano's messages:
// "a.B.property" or "a.B::method(argument)".
func (c *Contract) apply(ctx context.Context, classes *Classes, in *Class, this *Object, value any, label, path, subject string) (any, error) {
	return c.with(application{ctx: ctx, this: this, owner: this, in: in, path: path, label: label, subject: subject}, classes, value)
}

func (c *Contract) with(a application, classes *Classes, value any) (any, error) {
	if made, ok := quick(c.rule, value); ok {
		return made, nil
	}
	return c.thoroughly(a, classes, value)
}

func (c *Contract) thoroughly(a application, classes *Classes, value any) (any, error) {
	l := newLoader(a.ctx, classes)
	l.member, l.anew = a.this, true
	a.loader, a.base = l, a.path
	value, _ = c.rule.apply(&a, value)
	l.finish()
	if len(l.problems) > 0 {
		return nil, l.refusal(l.problems[0])
	}
	return value, l.born(a.ctx)
}

// quick applies contracts that need nothing but the value; false: it is not one of these, or the value breaks it.
func quick(r rule, value any) (any, bool) {
	switch r := r.(type) {
	case anything:
		return value, true
	case chain:
		for n := range r.steps {
			var ok bool
			switch s := &r.steps[n]; s.name {
			case "notNull":
				if value == nil {
					return nil, false
				}
			case "string", "int", "bool":
				if value, ok = s.scalar(value); !ok {
					return nil, false
				}
			default:
				return nil, false
			}
		}
		return value, true
	}
	return nil, false
}

// at applies a rule below this place.
func (a *application) at(path string, r rule, value any) (any, bool) {
	inner := *a
	inner.path, inner.failed = path, 0
	value, ok := r.apply(&inner, value)
	a.failed += inner.failed
	return value, ok
}

func (anything) apply(_ *application, value any) (any, bool) { return value, true }

func (u unreadable) apply(a *application, _ any) (any, bool) {
	a.failed++
	a.loader.reportAs(Problem{a.path, a.label, "has a contract that is wrong: " + u.err.Error(), dslExceptions + "DslContractSyntaxError", a.place() + u.err.Message})
	return nil, false
}

func (e either) apply(a *application, value any) (any, bool) {
	made, ok := e.first.apply(a, value)
	if !ok || yaql.Truth(made) != e.and {
		return made, ok
	}
	if c, is := e.second.(constant); is {
		return c.value, true
	}
	return e.second.apply(a, value)
}

func (c constant) apply(a *application, value any) (any, bool) {
	if !yaql.Equal(c.value, value) {
		return a.wants(c, value)
	}
	return value, true
}

func (c chain) apply(a *application, value any) (any, bool) {
	for n := range c.steps {
		var ok bool
		if value, ok = c.steps[n].apply(a, c, value); !ok {
			return nil, false
		}
	}
	return value, true
}

func (s *step) apply(a *application, c chain, value any) (any, bool) {
	a.function = s.name
	switch v := value.(type) {
	case view:
		value = v.object
	case *yaql.Dict:
		if s.name == "class" || s.name == "template" {
			value = a.in.modelOf(v)
		}
	}
	if s.name == "notNull" {
		if value == nil {
			return a.wants(c, value)
		}
		return value, true
	}
	if value == nil && s.name != "check" {
		return nil, true
	}
	switch s.name {
	case "string", "int", "bool":
		if made, ok := s.scalar(value); ok {
			return made, true
		}
		return a.wants(c, value)
	case "check":
		return s.check(a, c, value)
	case "class":
		return s.object(a, c, value)
	case "template":
		return s.model(a, c, value)
	case "heatParameter":
		return s.heatParameter(a, value)
	}
	return s.owner(a, value)
}

func (s *step) check(a *application, c chain, value any) (any, bool) {
	scope := a.in.scope(a.this, value)
	result, err := s.predicate.Evaluate(a.ctx, scope)
	switch {
	case err != nil && uninitialised(err) != nil && a.loader.later(func() { s.check(a, c, value) }):
		return value, true
	case err != nil:
		return a.violated("wants %s, but for %s this cannot be told: %v", c.text(), a.found(value), err)
	case yaql.Truth(result):
		return value, true
	case s.message != "":
		return a.broken(fmt.Sprintf("%s; found %s", s.message, a.found(value)), s.message)
	}
	return a.wants(c, value)
}

// heatParameter is the rule of parameters in the classes of Heat templates. Values under names of secrets do not appear in errors.
func (s *step) heatParameter(a *application, value any) (any, bool) {
	rule := s.parameter
	rule.Hidden = rule.Hidden || sensitive.Path(a.path)
	sent, err := rule.Value(plainValue(value))
	if err != nil {
		return a.broken("takes no such value: "+err.Error(), err.Error())
	}
	return sent, true
}
