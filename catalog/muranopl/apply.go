package muranopl

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/burano/burano/catalog/yaql"
)

// application is one application of a contract to a value of a property or an argument.
type application struct {
	ctx    context.Context
	loader *loader
	this   *Object // in whose property or for whose method; nil for none
	in     *Class  // that declares the contract: its names and functions are used
	path   string
	label  string // class and property or method, for Problems
	// subject is whose contract it is in Murano's messages, base the path where it begins to apply.
	subject, base string
	// failed counts what was reported.
	failed int
	// function is the function of a chain that is being applied.
	function string
}

// apply makes of a value what the contract makes of it, outside of a model that is being loaded. subject is whose contract it is as
// Murano's messages write it: "a.B.property" or "a.B::method(argument)".
func (c *Contract) apply(ctx context.Context, classes *Classes, in *Class, this *Object, value any, label, path, subject string) (any, error) {
	if made, ok := quick(c.rule, value); ok {
		return made, nil
	}
	l := newLoader(ctx, classes)
	l.member, l.anew = this, true
	a := &application{ctx: ctx, loader: l, this: this, in: in, path: path, base: path, label: label, subject: subject}
	value, _ = c.rule.apply(a, value)
	l.finish()
	if len(l.problems) > 0 {
		return nil, l.refusal(l.problems[0])
	}
	return value, l.born(ctx)
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

// violated reports what is wrong.
func (a *application) violated(format string, args ...any) (any, bool) {
	message := fmt.Sprintf(format, args...)
	return a.broken(message, message)
}

// broken reports what is wrong, in our words and in Murano's.
func (a *application) broken(wanted, violation string) (any, bool) {
	a.failed++
	violation = a.place() + violation
	if a.loader.violation == "" {
		a.loader.violation = violation
	}
	a.loader.reportAs(Problem{a.path, a.label, wanted, ContractViolation, violation})
	return nil, false
}

// place writes where the contract is applied as Murano's messages do: "[a.B.property[key][0]] ", "[a.B::method(argument[key])] ".
func (a *application) place() string {
	rest := strings.TrimPrefix(a.path, a.base)
	var steps strings.Builder
	for rest != "" {
		end := strings.IndexAny(rest[1:], ".[") + 1
		if rest[0] == '[' && rest[1] == '"' {
			end = strings.Index(rest, `"]`) + 2
		}
		if end <= 0 {
			end = len(rest)
		}
		step := rest[:end]
		rest = rest[end:]
		if name, ok := strings.CutPrefix(step, "."); ok {
			step = "[" + name + "]"
		} else if key, err := strconv.Unquote(strings.Trim(step, "[]")); err == nil {
			step = "[" + key + "]"
		}
		steps.WriteString(step)
	}
	if subject, ok := strings.CutSuffix(a.subject, ")"); ok {
		return "[" + subject + steps.String() + ")] "
	}
	return "[" + a.subject + steps.String() + "] "
}

// wants reports that a value is not what a rule wants.
func (a *application) wants(r rule, value any) (any, bool) {
	return a.broken(fmt.Sprintf("wants %s, found %s%s", r.text(), a.found(value), a.advice(value)), a.violation(r, value))
}

// violation says in Murano's words that a value is not what a rule wants.
func (a *application) violation(r rule, value any) string {
	written := yaql.Text(value)
	switch v := value.(type) {
	case string:
		if written = "'" + v + "'"; secretName.MatchString(a.path) {
			written = a.found(value)
		}
	case *Object:
		written = "MuranoObject(" + v.class.Type() + ")"
	}
	switch r := r.(type) {
	case constant:
		return fmt.Sprintf("Value %s is not equal to %s", written, scalarText(r.value))
	case entries:
		return fmt.Sprintf("Value %s is not of a dictionary type", written)
	}
	switch {
	case value == nil:
		return "null value violates notNull() contract"
	case a.function == "check":
		return fmt.Sprintf("Value %s doesn't match predicate", written)
	case a.function == "class":
		return fmt.Sprintf("Value %s cannot be represented as class %s", written, classText(r))
	}
	return fmt.Sprintf("Value %s violates %s() contract", written, a.function)
}

// scalarText writes a literal of a contract as Murano does.
func scalarText(value any) string {
	if text, ok := value.(string); ok {
		return "'" + text + "'"
	}
	return pythonText(value)
}

// classText is the class that a contract asks for.
func classText(r rule) string {
	if c, ok := r.(chain); ok {
		for n := range c.steps {
			if c.steps[n].name == "class" {
				return c.steps[n].class
			}
		}
	}
	return r.text()
}

func (a *application) advice(value any) string {
	if value != nil {
		return ""
	}
	name := a.path[strings.LastIndexByte(a.path, '.')+1:]
	if name == "" || strings.HasSuffix(name, "]") {
		return ": give a value"
	}
	if strings.ContainsRune("aeiou", rune(name[0])) {
		return ": give an " + name
	}
	return ": give a " + name
}

var secretName = regexp.MustCompile(`(?i)passw|secret|token|key`)

// found says what was found, unless the name says that it is nobody's business.
func (a *application) found(value any) string {
	if text, ok := value.(string); ok && secretName.MatchString(a.path) {
		return fmt.Sprintf("a text of %d characters", len([]rune(text)))
	}
	return show(value)
}

// show writes a value for a message, in a bearable length.
func show(value any) string {
	switch v := value.(type) {
	case *Object:
		return "an object of class " + v.class.Name
	case view:
		return show(v.object)
	case TypeReference:
		return "the class " + v.Class.Name
	case *yaql.Dict:
		if made, ok := settle(v).(map[string]any); ok {
			return show(made)
		}
		return "a map"
	case map[string]any:
		if len(v) > 0 {
			return fmt.Sprintf("a map with %s", strings.Join(sortedKeys(v), ", "))
		}
	case []any:
		if len(v) > 0 {
			return fmt.Sprintf("a list of %d", len(v))
		}
	}
	written, err := json.Marshal(value)
	if err != nil {
		return yaql.TypeName(value)
	}
	const most = 60
	if runes := []rune(string(written)); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return string(written)
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

func (c constant) apply(a *application, value any) (any, bool) {
	if !yaql.Equal(c.value, value) {
		return a.wants(c, value)
	}
	return value, true
}

func (i items) apply(a *application, value any) (any, bool) {
	var given []any
	switch v := value.(type) {
	case nil:
	case []any:
		given = v
	case *yaql.Set:
		given = v.Members()
	default:
		given = []any{v}
	}
	switch {
	case len(given) < i.min:
		a.broken(fmt.Sprintf("wants at least %s, found %d", count(i.min), len(given)), fmt.Sprintf("List length %d is less than %d", len(given), i.min))
	case i.max >= 0 && len(given) > i.max:
		a.broken(fmt.Sprintf("wants at most %s, found %d", count(i.max), len(given)), fmt.Sprintf("List length %d is greater than %d", len(given), i.max))
	}
	made := make([]any, len(given))
	for n, item := range given {
		if len(i.rules) == 0 {
			made[n] = item
			continue
		}
		made[n], _ = a.at(fmt.Sprintf("%s[%d]", a.path, n), i.rules[min(n, len(i.rules)-1)], item)
	}
	return made, a.failed == 0
}

func count(n int) string {
	if n == 1 {
		return "1 item"
	}
	return strconv.Itoa(n) + " items"
}

func (e entries) apply(a *application, value any) (any, bool) {
	given, ok := asDict(value)
	if !ok && value != nil {
		return a.wants(e, value)
	}
	if len(e.fixed) == 0 && e.key == nil {
		if value == nil {
			return map[string]any{}, true
		}
		return value, true
	}
	var made []yaql.Entry
	known := map[any]bool{}
	for _, f := range e.fixed {
		known[f.key] = true
		item, _ := dictItem(given, f.key)
		item, _ = a.at(join(a.path, f.key), f.value, item)
		made = append(made, yaql.Entry{Key: f.key, Value: item})
	}
	if e.key != nil && given != nil {
		for _, entry := range given.Entries() {
			if text, is := entry.Key.(string); is && known[text] {
				continue
			}
			path := join(a.path, yaql.Text(entry.Key))
			key, ok := a.at(path, e.key, entry.Key)
			item, _ := a.at(path, e.value, entry.Value)
			if ok {
				made = append(made, yaql.Entry{Key: key, Value: item})
			}
		}
	}
	return yaql.NewDict(made...), a.failed == 0
}

func dictItem(dict *yaql.Dict, key string) (any, bool) {
	if dict == nil {
		return nil, false
	}
	return dict.Get(key)
}

// join writes the path of a key.
func join(path, key string) string {
	switch {
	case !simpleKey(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// simpleKey tells that a key is written in a path as it is.
func simpleKey(key string) bool {
	for n, r := range key {
		if r != '_' && !unicode.IsLetter(r) && (n == 0 || r != '-' && !unicode.IsNumber(r)) {
			return false
		}
	}
	return key != ""
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
	}
	return s.owner(a, value)
}

// scalar is string(), int() or bool().
func (s *step) scalar(value any) (any, bool) {
	if value == nil {
		return nil, true
	}
	switch s.name {
	case "bool":
		return yaql.Truth(value), true
	case "int":
		n, ok := wholeNumber(value)
		return n, ok
	}
	switch v := value.(type) {
	case string:
		return v, true
	case int64:
		return strconv.FormatInt(v, 10), true
	case bool: // of Python's making: its truth values are integers
		if v {
			return "True", true
		}
		return "False", true
	case *Object:
		return v.id, true
	case view:
		return v.object.id, true
	}
	return nil, false
}

// wholeNumber is what Python's int() makes of a value.
func wholeNumber(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case float64:
		if math.IsNaN(v) || math.Abs(v) >= 1<<63 {
			return 0, false
		}
		return int64(v), true
	case string:
		n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		return n, err == nil
	}
	return 0, false
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
			return nil, false // what is wrong with that object is said where it stands
		}
	case map[string]any:
		before := len(a.loader.problems)
		object = a.loader.make(v, a.this, a.path, s, a.in)
		a.failed += len(a.loader.problems) - before
		if object == nil {
			return nil, false
		}
	default:
		return a.wants(c, value)
	}
	if wanted, violation := s.stranger(object, "an object"); wanted != "" {
		return a.broken(wanted, violation)
	}
	return object, true
}

// stranger says, in our words and in Murano's, why what was given is not of the class, or not of the version of it, that is asked for; "" when
// it is.
func (s *step) stranger(object *Object, what string) (wanted, violation string) {
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
	// Whatever form it is written in, it is kept with a header.
	d, has := parseDefinition(given, "")
	header := make(map[string]any, len(d.header)+1)
	maps.Copy(header, d.header)
	if !has {
		header["type"] = s.other
	} else if header["type"] == nil {
		header["type"] = d.typeName.String()
	}
	kept := map[string]any{"?": header}
	for key, item := range d.properties {
		if !slices.Contains(s.exclude, key) {
			kept[key] = item
		}
	}
	scratch := newLoader(a.ctx, a.loader.classes)
	scratch.outer, scratch.spent = a.loader, a.loader.spent
	object := scratch.makeWithout(kept, a.this, a.path, s, a.in, s.exclude)
	scratch.finish()
	for _, problem := range scratch.problems {
		a.failed++
		a.loader.add(problem)
	}
	if object == nil || len(scratch.problems) > 0 {
		return nil, false
	}
	if wanted, violation := s.stranger(object, "a model of an object"); wanted != "" {
		return a.broken(wanted, violation)
	}
	return kept, true
}

// owner is owned() or notOwned(). Who owns what is known when all is loaded.
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
