package ui

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/dlclark/regexp2"

	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/internal/door"
)

// FieldView is a field as it is shown: its attributes evaluated.
type FieldView struct {
	Name string `json:"name"`
	// Type is one of Types, or "object" where the id of an object of one of the Classes is wanted.
	Type    string   `json:"type"`
	Classes []string `json:"classes,omitempty"`
	// Cloud is the kind of choices from the cloud (/burano/v1/cloud/{kind}); "" for none.
	Cloud            string            `json:"cloud,omitempty"`
	Label            string            `json:"label"`
	Topic            string            `json:"topic,omitempty"` // the heading below which it is; "" for a main question
	Description      string            `json:"description,omitempty"`
	DescriptionTitle string            `json:"description_title,omitempty"`
	Help             string            `json:"help,omitempty"`
	EmptyMessage     string            `json:"empty_message,omitempty"` // where there is nothing to choose from
	Required         bool              `json:"required"`
	Hidden           bool              `json:"hidden"`
	Secret           bool              `json:"secret"`            // never shown while it is typed, and never stored
	Confirm          bool              `json:"confirm,omitempty"` // to be typed twice
	Initial          any               `json:"initial"`
	MinLength        *int64            `json:"min_length,omitempty"` // characters
	MaxLength        *int64            `json:"max_length,omitempty"`
	MinValue         *int64            `json:"min_value,omitempty"`
	MaxValue         *int64            `json:"max_value,omitempty"`
	Patterns         []Pattern         `json:"patterns,omitempty"`
	Choices          []Choice          `json:"choices,omitempty"`
	Messages         map[string]string `json:"error_messages,omitempty"` // by "required" and "invalid"
	Options          map[string]any    `json:"options,omitempty"`        // of its type, such as requirements of a flavor
}

// Choice is a value that may be chosen.
type Choice struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

// Pattern is a regular expression in Python's syntax that should be found in a text.
type Pattern struct {
	Pattern string `json:"pattern"`
	Flags   string `json:"flags,omitempty"`
	Message string `json:"message,omitempty"`
}

// clouds are the look-ups for the types whose values are chosen from the cloud.
var clouds = map[string]string{"flavor": "flavors", "image": "images", "keypair": "keypairs", "azone": "availability-zones", "network": "networks"}

// options are the attributes of single types.
var options = map[string]string{"imageType": "image_type", "requirements": "requirements", "includeSubnets": "include_subnets", "filter": "filter",
	"muranoNetworks": "murano_networks", "allowAuto": "allow_auto", "includeVolumes": "include_volumes", "includeSnapshots": "include_snapshots",
	"widgetAttrs": "widget_attrs"}

// Messages for wrong values, in the words of Django's forms.
const (
	wantedMessage  = "This field is required."
	invalidMessage = "Enter a valid value."
)

// secret is the rule for a password whose definition has no validators (murano-dashboard, PasswordField).
const (
	secretMessage = "The password must contain at least one letter, one number and one special character"
	secretSigns   = `!@#$%^&*()_+|\/.,~?><:{}-`
)

// form shows a form and checks its input.
func (e *evaluation) form(form *Form) {
	view := FormView{Name: form.Name, Fields: make([]FieldView, 0, len(form.Fields))}
	if form.Region != nil {
		region, _ := e.value(raw(form.Region), e.over(nil))
		view.Region = yaql.JSON(region)
	}
	before := len(e.errors)
	current := yaql.Entry{Key: form.Name, Value: yaql.NewDict()}
	for _, field := range form.Fields {
		if e.ctx.Err() != nil {
			return
		}
		f := &filling{evaluation: e, form: form, field: field, scope: e.over(&current)}
		value := f.fill()
		view.Fields = append(view.Fields, f.view)
		current.Value = current.Value.(*yaql.Dict).With(yaql.Entry{Key: field.Name, Value: value})
	}
	e.forms, e.cleaned = append(e.forms, view), append(e.cleaned, current)
	if len(e.errors) > before {
		return // operands might be missing
	}
	for _, validator := range form.Validators {
		holds, err := e.holds(validator, e.over(nil), "")
		if err != nil && e.later(mentioned(validator.Expression)) {
			continue // it is asked in vain, until there are values
		}
		if err != nil || !holds {
			message, _ := e.textOf(validator.Message, e.over(nil))
			e.errors = append(e.errors, InputError{Form: form.Name, Message: said(message, err)})
		}
	}
}

// later reports whether one of these forms is not filled in yet.
func (e *evaluation) later(asked []string) bool {
	return slices.ContainsFunc(asked, func(name string) bool {
		return slices.ContainsFunc(e.definition.Forms, func(form *Form) bool { return form.Name == name }) &&
			!slices.ContainsFunc(e.cleaned, func(entry yaql.Entry) bool { return entry.Key == name })
	})
}

// said is the message of a validator, or the reason why it cannot be evaluated.
func said(message string, err error) string {
	switch {
	case err != nil:
		return "the validator cannot be evaluated: " + err.Error()
	case message == "":
		return invalidMessage
	}
	return message
}

// unknown complains of forms and fields that there are none of.
func (e *evaluation) unknown() {
	for _, form := range slices.Sorted(maps.Keys(e.in.Values)) {
		at := slices.IndexFunc(e.definition.Forms, func(f *Form) bool { return f.Name == form })
		if at < 0 {
			e.errors = append(e.errors, InputError{Form: form, Message: "There is no such form"})
			continue
		}
		for _, field := range slices.Sorted(maps.Keys(e.in.Values[form])) {
			if !slices.ContainsFunc(e.definition.Forms[at].Fields, func(f *Field) bool { return f.Name == field }) {
				e.errors = append(e.errors, InputError{Form: form, Field: field, Message: "There is no such field"})
			}
		}
	}
}

// holds asks a validator.
func (e *evaluation) holds(validator *Validator, scope *yaql.Scope, text string) (bool, error) {
	if validator.Pattern == nil {
		value, err := validator.Expression.Evaluate(e.ctx, scope)
		return yaql.Truth(value), err
	}
	written, err := e.textOf(validator.Pattern, scope)
	if err != nil {
		return false, err
	}
	return found(written, text)
}

// found looks for a pattern in a text. Patterns that Go's expressions do not support, with look-around or references, are regexp2's, which may take long
// and so get little time.
func found(written, text string) (bool, error) {
	pattern, flags := SplitPattern(written)
	known, options := "", regexp2.None
	for _, flag := range flags {
		switch flag {
		case 'i':
			options |= regexp2.IgnoreCase
		case 'm':
			options |= regexp2.Multiline
		case 's':
			options |= regexp2.Singleline
		case 'x':
			options |= regexp2.IgnorePatternWhitespace
			continue // Go's have none
		default:
			continue
		}
		known += string(flag)
	}
	simple := pattern
	if known != "" {
		simple = "(?" + known + ")" + pattern
	}
	linear, err := door.Pattern(simple)
	if err == nil {
		err = linear.Fits(text)
	}
	switch {
	case door.IsExceeded(err):
		return false, err
	case err == nil && options&regexp2.IgnorePatternWhitespace == 0:
		return linear.MatchString(text), nil
	}
	compiled, err := regexp2.Compile(pattern, options)
	if err != nil {
		return false, fmt.Errorf("the pattern %q is no regular expression: %w", pattern, err)
	}
	compiled.MatchTimeout = patience / 20
	matches, err := compiled.MatchString(text)
	if err != nil {
		return false, fmt.Errorf("the pattern %q takes too long for this text", pattern)
	}
	return matches, nil
}

// textOf evaluates a value to a text; nil is "".
func (e *evaluation) textOf(value *Value, scope *yaql.Scope) (string, error) {
	if value == nil {
		return "", nil
	}
	evaluated, err := e.value(raw(value), scope)
	if err != nil || evaluated == nil {
		return "", err
	}
	return yaql.Text(evaluated), nil
}

// filling is one field that is being filled in.
type filling struct {
	*evaluation
	form  *Form
	field *Field
	scope *yaql.Scope
	view  FieldView
}

func (f *filling) wrong(format string, args ...any) {
	f.errors = append(f.errors, InputError{Form: f.form.Name, Field: f.field.Name, Message: fmt.Sprintf(format, args...)})
}

// attribute evaluates an attribute; nil where there is none, or it cannot be evaluated.
func (f *filling) attribute(name string) any {
	written := f.field.Attributes[name]
	if written == nil {
		return nil
	}
	value, err := f.value(raw(written), f.scope)
	if err != nil {
		if name != "required" && !f.early(formsOf(written)) { // Murano's dashboard passes over that one, too
			f.wrong("%s cannot be evaluated: %v", name, err)
		}
		return nil
	}
	return value
}

// early reports whether one of these forms comes later, or has errors, so that its values may be missing.
func (f *filling) early(asked []string) bool {
	others := slices.DeleteFunc(asked, func(name string) bool { return name == f.form.Name })
	return f.later(others) || slices.ContainsFunc(f.errors, func(one InputError) bool { return slices.Contains(others, one.Form) })
}

// text is an attribute for people. A text like an expression without a value is a text after all.
func (f *filling) text(name string) string {
	written := f.field.Attributes[name]
	text, err := f.textOf(written, f.scope)
	if err != nil && written.Kind == Expression {
		return written.Expression.String()
	}
	return text
}

func (f *filling) truth(name string, otherwise bool) bool {
	switch value := f.attribute(name).(type) {
	case nil:
		return otherwise
	case string:
		return !slices.Contains([]string{"", "no", "off", "false"}, strings.ToLower(value))
	default:
		return yaql.Truth(value)
	}
}

func (f *filling) number(name string) *int64 {
	switch value := f.attribute(name).(type) {
	case nil:
		return nil
	case int64:
		return &value
	default:
		f.wrong("%s should be a whole number, not %s", name, yaql.Text(value))
		return nil
	}
}

// fill evaluates the attributes, and checks the value; it returns the field as expressions see it.
func (f *filling) fill() any {
	f.describe()
	given, there := f.in.Values[f.form.Name][f.field.Name]
	if !there {
		given = f.view.Initial
	}
	value, message := f.clean(normal(given))
	if message != "" {
		f.wrong("%s", message)
		return value
	}
	f.answers.set(Question{f.form.Name, f.field.Name}, yaql.JSON(value))
	if empty(value) {
		if f.view.Required {
			f.wrong("%s", f.message("required", wantedMessage))
		}
		return value
	}
	if f.field.Judge != nil {
		judged, err := f.field.Judge(value)
		if err != nil {
			f.wrong("%v", err)
			return value
		}
		return judged
	}
	f.validate(value)
	return value
}

func (f *filling) describe() {
	f.view = FieldView{Name: f.field.Name, Type: f.field.Type, Classes: f.field.Classes, Cloud: clouds[f.field.Type], Label: f.text("label"),
		Topic:       f.form.Topics[f.field.Name],
		Description: f.text("description"), DescriptionTitle: f.text("descriptionTitle"), Help: f.text("helpText"), EmptyMessage: f.text("emptyValueMessage"),
		Required: f.truth("required", true), Hidden: f.truth("hidden", false), Secret: f.field.Type == "password",
		MinLength: f.number("minLength"), MaxLength: f.number("maxLength"), MinValue: f.number("minValue"), MaxValue: f.number("maxValue")}
	view := &f.view
	switch view.Type {
	case "":
		view.Type = "object"
	case "boolean", "floatingip":
		view.Type, view.Required = "boolean", false // an unticked box is false
	case "password":
		view.Confirm = f.truth("confirmInput", true)
		if len(f.field.Validators) == 0 {
			if low := int64(7); view.MinLength == nil {
				view.MinLength = &low
			}
			if high := int64(255); view.MaxLength == nil {
				view.MaxLength = &high
			}
			if view.Help == "" {
				view.Help = "Enter a complex password with at least one letter, one number and one special character"
			}
		}
	}
	if view.Label == "" {
		view.Label = view.Name
	}
	if messages, ok := f.attribute("errorMessages").(*yaql.Dict); ok {
		view.Messages = map[string]string{}
		for _, entry := range messages.Entries() {
			view.Messages[yaql.Text(entry.Key)] = yaql.Text(entry.Value)
		}
	}
	for name, shown := range options {
		if value := f.attribute(name); value != nil {
			if view.Options == nil {
				view.Options = map[string]any{}
			}
			view.Options[shown] = yaql.JSON(value)
		}
	}
	f.choices()
	for _, validator := range f.field.Validators {
		if validator.Pattern == nil {
			continue
		}
		if written, err := f.textOf(validator.Pattern, f.scope); err == nil {
			pattern, flags := SplitPattern(written)
			message, _ := f.textOf(validator.Message, f.scope)
			view.Patterns = append(view.Patterns, Pattern{pattern, flags, message})
		}
	}
	initial, _ := f.clean(normal(f.attribute("initial")))
	view.Initial = yaql.JSON(initial)
}

// choices are pairs of value and label, or a map of labels.
func (f *filling) choices() {
	switch list := f.attribute("choices").(type) {
	case *yaql.Dict:
		for _, entry := range list.Entries() {
			f.view.Choices = append(f.view.Choices, Choice{yaql.Text(entry.Key), yaql.Text(entry.Value)})
		}
	case []any:
		for _, item := range list {
			if pair, ok := item.([]any); ok && len(pair) == 2 {
				f.view.Choices = append(f.view.Choices, Choice{yaql.Text(pair[0]), yaql.Text(pair[1])})
			} else {
				f.wrong("choices should be pairs of a value and a label, not %s", yaql.Text(item))
			}
		}
	}
}

// message is the definition's message for such a case.
func (f *filling) message(when, otherwise string) string {
	if message := f.view.Messages[when]; message != "" {
		return message
	}
	return otherwise
}

// normal converts a value of JSON or of a definition for expressions.
func normal(value any) any {
	switch value := value.(type) {
	case int:
		return int64(value)
	case json.Number:
		return yaql.FromJSON(value)
	}
	return value
}

func empty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	}
	return false
}

var (
	sqlName   = regexp.MustCompile(`^[\pL_@#][\pL\pN_@#$]*$`)
	wholeText = regexp.MustCompile(`^\s*[+-]?[0-9]{1,18}(\.0*)?\s*$`)
)

// clean converts a value to its type's form in expressions, or returns a message.
func (f *filling) clean(given any) (value any, message string) {
	switch f.field.Type {
	case "boolean", "floatingip":
		if text, ok := given.(string); ok {
			return !slices.Contains([]string{"", "0", "false", "off", "no"}, strings.ToLower(text)), ""
		}
		return yaql.Truth(given), ""
	case "integer":
		if f.field.Judge != nil {
			return f.fraction(given)
		}
		return f.integer(given)
	case "network":
		return f.network(given)
	case "databaselist":
		return f.databases(given)
	}
	text, ok := textual(given)
	if !ok {
		return "", "A text is wanted here, not a list or a map"
	}
	if f.field.Type != "password" {
		text = strings.TrimSpace(text)
	}
	if f.field.Type == "" && text == "" {
		return nil, "" // no object
	}
	return text, ""
}

// textual writes numbers, and Heat's texts for lists and maps: the defaults of such parameters.
func textual(given any) (string, bool) {
	switch given := given.(type) {
	case nil:
		return "", true
	case *yaql.Dict:
		text, err := json.Marshal(yaql.JSON(given))
		return string(text), err == nil
	case []any:
		parts := make([]string, len(given))
		for i, item := range given {
			part, ok := normal(item).(string)
			if number, is := normal(item).(int64); is {
				part, ok = yaql.Text(number), true
			}
			if !ok {
				return "", false
			}
			parts[i] = part
		}
		return strings.Join(parts, ","), true
	case map[string]any:
		return "", false
	}
	return yaql.Text(given), true
}

// fraction is a number, or its text, which the field's judge reads.
func (f *filling) fraction(given any) (any, string) {
	switch number := given.(type) {
	case nil, int64, float64:
		return number, ""
	case string:
		if number = strings.TrimSpace(number); number != "" {
			return number, ""
		}
		return nil, ""
	}
	return nil, f.message("invalid", "Enter a number.")
}

func (f *filling) integer(given any) (any, string) {
	switch number := given.(type) {
	case nil:
		return nil, ""
	case int64:
		return number, ""
	case float64:
		if number == float64(int64(number)) {
			return int64(number), ""
		}
	case string:
		if strings.TrimSpace(number) == "" {
			return nil, ""
		}
		if wholeText.MatchString(number) {
			digits, _, _ := strings.Cut(strings.TrimSpace(number), ".")
			return yaql.FromJSON(json.Number(strings.TrimPrefix(digits, "+"))), ""
		}
	}
	return nil, f.message("invalid", "Enter a whole number.")
}

// network is a list of the ids of a network and of its subnet, which may be null. Both are null where the choice is left to Burano ("Auto"),
// as it is unless the field forbids that.
func (f *filling) network(given any) (any, string) {
	switch network := given.(type) {
	case nil:
		return f.anyNetwork(), ""
	case string:
		if network = strings.TrimSpace(network); network == "" {
			return f.anyNetwork(), ""
		}
		return []any{network, nil}, ""
	case []any:
		if len(network) == 2 && optionalText(network[0]) && optionalText(network[1]) {
			return network, ""
		}
	}
	return nil, "A network is the list of its id and the id of a subnet, which may be null"
}

func (f *filling) anyNetwork() any {
	if f.view.Options["allow_auto"] == false {
		return nil
	}
	return []any{nil, nil}
}

func optionalText(value any) bool {
	_, ok := value.(string)
	return ok || value == nil
}

func (f *filling) databases(given any) (any, string) {
	text, ok := textual(given)
	if !ok {
		return []any{}, f.message("invalid", invalidMessage)
	}
	names := []any{}
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if !sqlName.MatchString(name) {
			return names, fmt.Sprintf("%q is no name of a database: letters, digits, underscores and @, #, $ only, no digit first", name)
		}
		names = append(names, name)
	}
	return names, ""
}

// validate checks a value that is there.
func (f *filling) validate(value any) {
	view := &f.view
	text, isText := value.(string)
	length := int64(len([]rune(text)))
	switch number, isNumber := value.(int64); {
	case isText && view.MinLength != nil && length < *view.MinLength:
		f.wrong("Ensure this value has at least %d characters (it has %d).", *view.MinLength, length)
	case isText && view.MaxLength != nil && length > *view.MaxLength:
		f.wrong("Ensure this value has at most %d characters (it has %d).", *view.MaxLength, length)
	case isNumber && view.MinValue != nil && number < *view.MinValue:
		f.wrong("Ensure this value is greater than or equal to %d.", *view.MinValue)
	case isNumber && view.MaxValue != nil && number > *view.MaxValue:
		f.wrong("Ensure this value is less than or equal to %d.", *view.MaxValue)
	}
	switch f.field.Type {
	case "choice":
		if !slices.ContainsFunc(view.Choices, func(c Choice) bool { return c.Value == text }) {
			f.wrong("Select a valid choice. %s is not one of the available choices.", text)
		}
	case "clusterip":
		if address, err := netip.ParseAddr(text); err != nil || !address.Is4() {
			f.wrong("%s", f.message("invalid", "Enter a valid IPv4 address."))
		}
	case "password":
		if len(f.field.Validators) == 0 && !strong(text) {
			f.wrong("%s", f.message("invalid", secretMessage))
		}
	}
	for _, validator := range f.field.Validators {
		if holds, err := f.holds(validator, f.scope.With("", value), yaql.Text(value)); err != nil || !holds {
			message, _ := f.textOf(validator.Message, f.scope)
			if message == "" {
				message = f.message("invalid", invalidMessage)
			}
			f.wrong("%s", said(message, err))
		}
	}
}

func strong(secret string) bool {
	return strings.ContainsAny(secret, "0123456789") && strings.ContainsAny(secret, "abcdefghijklmnopqrstuvwxyz") &&
		strings.ContainsAny(secret, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") && strings.ContainsAny(secret, secretSigns)
}
