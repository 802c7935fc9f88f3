package muranopl

import (
	"fmt"
	"maps"
	"slices"
)

// object is class(): an object, an id, or a map that an object is made of.
func (s *step) object(a *application, c chain, value any) (any, bool) {
	var object *Object
	switch v := value.(type) {
	case *Object:
		object = v
	case string:
		found, ok := a.loader.reference(v)
		if !ok {
			a.failed++
			a.loader.reportAs(Problem{a.path, a.label, fmt.Sprintf("wants %s, found the text %s, which is no id of an object of the model", c.text(), show(v)),
				dslExceptions + "NoObjectFoundError", fmt.Sprintf("Object %q is not found in object store", v)})
			return nil, false
		}
		if object = found; object == nil {
			a.failed++
			return nil, false // faults of that object are reported at its place
		}
	case map[string]any:
		before := len(a.loader.problems)
		object = a.loader.make(v, a.owner, a.path, s, a.in)
		a.failed += len(a.loader.problems) - before
		if object == nil {
			return nil, false
		}
	default:
		return a.wants(c, value)
	}
	if wanted, violation := s.mismatch(object, "an object"); wanted != "" {
		return a.broken(wanted, violation)
	}
	return object, true
}

// mismatch explains, in Burano's words and in Murano's, why a value is not of the class, or not of the version of it, that is required; "" when it is.
func (s *step) mismatch(object *Object, what string) (wanted, violation string) {
	violation = fmt.Sprintf("Object of type %s is not compatible with requested type %s", object.class.Name, s.class)
	if !object.class.Is(s.class) {
		return fmt.Sprintf("wants %s of class %s, found one of class %s", what, s.class, object.class.Name), violation
	}
	spec, _ := ParseSpec(s.spec) // it was parsed with the contract
	for _, class := range object.class.lineage {
		if class.Name == s.class && !spec.Admits(class.Package.Version()) {
			return fmt.Sprintf("wants class %s of version %s, found version %s", s.class, s.spec, class.Package.Version()), violation
		}
	}
	return "", ""
}

// model is template(): a map that an object could be made of, which stays a map.
func (s *step) model(a *application, c chain, value any) (any, bool) {
	if object, ok := value.(*Object); ok {
		value = SaveResult(object)
	}
	given, ok := value.(map[string]any)
	if !ok {
		return a.wants(c, value)
	}
	// Every form is stored with a header.
	d, has := parseDefinition(given, "")
	header := make(map[string]any, len(d.header)+3)
	header["name"], header["metadata"] = nil, nil // which Murano's have, too
	maps.Copy(header, d.header)
	if !has {
		header["type"] = s.other
	} else if header["type"] == nil {
		header["type"] = d.typeName.String()
	}
	kept := map[string]any{"?": header}
	exclude := append(s.exclude[:len(s.exclude):len(s.exclude)], a.excluded[a.path]...)
	if a.excluded != nil {
		a.excluded[a.path] = exclude
	}
	for key, item := range d.properties {
		if !slices.Contains(exclude, key) {
			kept[key] = item
		}
	}
	scratch := newLoader(a.ctx, a.loader.classes)
	scratch.outer, scratch.spent = a.loader, a.loader.spent
	object := scratch.makeWithout(kept, a.owner, a.path, s, a.in, exclude)
	scratch.finish()
	for _, problem := range scratch.problems {
		a.failed++
		a.loader.add(problem)
	}
	if object == nil || len(scratch.problems) > 0 {
		return nil, false
	}
	if wanted, violation := s.mismatch(object, "a model of an object"); wanted != "" {
		return a.broken(wanted, violation)
	}
	return kept, true
}

// owner is owned() or notOwned(). Owners are known when all is loaded.
func (s *step) owner(a *application, value any) (any, bool) {
	object, ok := value.(*Object)
	if !ok {
		return a.violated("%s() follows class() in a contract", s.name)
	}
	path := a.path
	a.loader.atEnd(func() {
		if a.this != nil && a.loader.former && !a.loader.made[a.this] {
			return
		}
		owned, violation := false, fmt.Sprintf("Object %s violates %s() contract", object.murano(), s.name)
		defer func(now string) { a.path = now }(a.path)
		a.path = path
		for owner := object.Owner(); owner != nil && a.this != nil; owner = owner.Owner() {
			owned = owned || owner == a.this
		}
		switch {
		case s.name == "owned" && !owned:
			a.broken(fmt.Sprintf("wants an object of its own, found a reference to %s, which stands elsewhere in the model", object), violation)
		case s.name == "notOwned" && owned:
			a.broken(fmt.Sprintf("wants a reference to an object that stands elsewhere in the model, found %s itself", object), violation)
		}
	})
	return object, true
}
