package ui

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/burano/burano/catalog/yaql"
)

// Definition is a dynamic UI definition.
type Definition struct {
	// File is the name of the file inside the package.
	File string
	// Minor is the second number of the version: 4 for 2.4.
	Minor int
	// Application is the object model that the forms fill in.
	Application *Value
	// Templates and Parameters are the values that expressions know by name: $name.
	Templates, Parameters []Entry
	// ParametersSource is a static action, [Class.]method, that gives more parameters; "" for none.
	ParametersSource string
	Forms            []*Form
}

// Form is one step that the user is led through.
type Form struct {
	Place
	Name       string
	Fields     []*Field
	Validators []*Validator // $ is {form: {field: value}}
	Region     *Value       // may be nil
	// Topics are headings by the names of fields: what a form asks for beside its main questions. Murano's dashboard does not know them.
	Topics map[string]string
}

// Field is a question to the user.
type Field struct {
	Place
	Name string
	// Type is one of Types; "" for a field where an object of one of the Classes is chosen.
	Type    string
	Classes []string // full names
	// Attributes are all others by name (maxLength, not max_length), without validators and regexpValidator.
	Attributes map[string]*Value
	Validators []*Validator // $ is the field's value
	// Judge, where there is one, decides in place of the validators: it returns the value as expressions see it, or why it is none. Numbers of such a field
	// may be fractions.
	Judge func(value any) (any, error)
}

// Validator is a condition of a form or field: an Expression that should be true or a Pattern that should be found in the text.
type Validator struct {
	Place
	Expression *yaql.Expression
	Pattern    *Value // a text, as SplitPattern reads it, or an expression; nil where there is an Expression
	Message    *Value // the message when it does not hold; may be nil
}

// SplitPattern takes a regular expression out of "/pattern/flags"; a text without slashes is a pattern without flags.
func SplitPattern(text string) (pattern, flags string) {
	if parts := slashes.FindStringSubmatch(text); parts != nil {
		return parts[1], strings.ToLower(parts[2])
	}
	return text, ""
}

var slashes = regexp.MustCompile(`(?s)^/(.*)/([A-Za-z]*)$`)

// Value is a value of a definition. Kind selects the field that holds it.
type Value struct {
	Place
	Kind       Kind
	Constant   any // nil, bool, int64, float64 or string
	Expression *yaql.Expression
	Items      []*Value
	Entries    []Entry // in the file's order
}

// Kind is the kind of a Value.
type Kind int

// The kinds of values.
const (
	Constant Kind = iota
	Expression
	List
	Map
)

// Entry is an entry of a map. The key is a constant, or an expression.
type Entry struct {
	Key, Value *Value
}

// Name is the key as a text.
func (e Entry) Name() string {
	if e.Key.Kind == Expression {
		return e.Key.Expression.String()
	}
	return yaql.Text(e.Key.Constant)
}

// Get returns the value of a key of a map; nil where there is none.
func (v *Value) Get(name string) *Value {
	for _, entry := range v.Entries {
		if entry.Name() == name {
			return entry.Value
		}
	}
	return nil
}

// Text is the constant where it is a text.
func (v *Value) Text() (string, bool) {
	text, is := v.Constant.(string)
	return text, is && v.Kind == Constant
}

// Place is a place in the file, from 1.
type Place struct {
	Line, Column int
}

// Problem is something that is wrong in a definition.
type Problem struct {
	Place
	File    string
	Message string
	// Warning marks a fault with which the form can still be shown.
	Warning bool
	// NoExpression marks a text that was probably meant to be an expression.
	NoExpression bool
}

func (p *Problem) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}
