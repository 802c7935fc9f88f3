package catalog

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/burano/burano/catalog/hot"
	"github.com/burano/burano/catalog/ui"
)

// firstGroup is the form with the application's name.
const firstGroup = "group0"

// form makes the dynamic UI of the template, as Murano does: a form with the application's name, one for each group of parameters,
// and one for the rest. Validators are for Murano's dashboard; where Burano evaluates the form, the parameters' rules decide (Package.Judge).
func (t *hotTemplate) form(m *manifest) string {
	name := map[string]any{"name": "name", "type": "string", "label": "Application Name", "required": true,
		"description": "Enter a desired name for the application. Just A-Z, a-z, 0-9, and dash are allowed"}
	title := map[string]any{"name": "title", "type": "string", "required": false, "hidden": true, "description": m.description}
	forms := []any{map[string]any{firstGroup: map[string]any{"fields": []any{title, name}}}}
	application := map[string]any{
		"?":    map[string]any{"type": m.fullName, "package": m.fullName, "classVersion": m.version.String()},
		"name": expression("$." + firstGroup + ".name"),
	}
	values := map[string]any{}
	for _, group := range t.inGroups() {
		key := fmt.Sprintf("group%d", len(forms))
		fields := make([]any, 0, len(group))
		for _, parameter := range group {
			fields = append(fields, parameter.field())
			values[parameter.name] = expression("$." + key + member(parameter.name))
		}
		forms = append(forms, map[string]any{key: map[string]any{"fields": fields}})
	}
	if len(forms) > 1 {
		application["templateParameters"] = values
	}
	return quotedYAML(map[string]any{"Version": 2, "Application": application, "Forms": forms})
}

// plainMember matches a name that may follow a dot in YAQL.
var plainMember = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// member is the access to an entry of a map in YAQL. Names with a dash are subtractions behind a dot, and words such as "in" are operators.
func member(name string) string {
	operators := []string{"and", "or", "not", "in", "is", "mod", "true", "false", "null"}
	if plainMember.MatchString(name) && !slices.Contains(operators, strings.ToLower(name)) {
		return "." + name
	}
	return ".get(" + literal(name) + ")"
}

// Judge gives the fields of a Heat template's form the rules of the template's parameters.
func (p *Package) Judge(definition *ui.Definition) {
	for _, form := range definition.Forms {
		for _, field := range form.Fields {
			if rule, is := p.rules[field.Name]; is && form.Name != firstGroup {
				field.Judge = rule.Value
			}
		}
	}
}

// inGroups returns the parameters of each group, and then the parameters without a group.
func (t *hotTemplate) inGroups() [][]hotParameter {
	used := map[string]bool{}
	var groups [][]hotParameter
	for _, names := range t.groups {
		var group []hotParameter
		for _, name := range names {
			if i := slices.IndexFunc(t.parameters, func(p hotParameter) bool { return p.name == name && !used[name] }); i >= 0 {
				group, used[name] = append(group, t.parameters[i]), true
			}
		}
		if len(group) > 0 {
			groups = append(groups, group)
		}
	}
	var rest []hotParameter
	for _, parameter := range t.parameters {
		if !used[parameter.name] {
			rest = append(rest, parameter)
		}
	}
	if len(rest) > 0 {
		groups = append(groups, rest)
	}
	return groups
}

// field is the field of the form for the parameter. Murano shows secrets in clear; here they are typed as passwords.
func (p hotParameter) field() map[string]any {
	field := map[string]any{"name": p.name, "label": p.label, "type": "string", "required": !p.rule.Optional}
	value := "$"
	switch {
	case p.secret():
		field["type"], field["confirmInput"] = "password", false
		if p.rule.Type == "number" { // a value that is typed as a password is a text
			value = "int($)"
			if p.fractional() {
				value = "float($)"
			}
		}
	case p.rule.Type == "boolean":
		field["type"] = "boolean"
	case p.rule.Type == "number" && p.fractional():
		value = "float($)" // and Murano has no field of fractions
	case p.rule.Type == "number":
		field["type"] = "integer"
	}
	if p.label == "" {
		field["label"] = titled(p.name)
	}
	if p.description != nil {
		field["description"] = p.description
	}
	if initial, shown := p.shown(); shown {
		field["initial"] = initial
	}
	var validators []any
	for _, constraint := range p.rule.Constraints {
		if constraint["length"] != nil && p.rule.Type == "string" {
			narrow(field, constraint["length"])
			continue
		}
		text := p.condition(value, constraint)
		if text == "" {
			continue
		}
		validator := map[string]any{"expr": expression(text)}
		if pattern := constraint["allowed_pattern"]; pattern != nil {
			validator["expr"] = map[string]any{"regexpValidator": pattern}
		}
		if message := constraint["description"]; message != nil {
			validator["message"] = hot.Text(message)
		}
		validators = append(validators, validator)
	}
	if p.secret() && validators == nil { // without any, a password is held to be a new one and should be a strong one
		validators = []any{map[string]any{"expr": map[string]any{"regexpValidator": "^"}}}
	}
	if validators != nil {
		field["validators"] = validators
	}
	return field
}

func (p hotParameter) secret() bool { return p.rule.Hidden && p.rule.Type != "boolean" }

// fractional reports whether the default or a constraint of a number is no whole number.
func (p hotParameter) fractional() bool {
	is := func(value any) bool {
		number, err := hot.Rule{Type: "number"}.Value(value)
		_, fraction := number.(float64)
		return err == nil && fraction
	}
	found := is(p.initial)
	for _, constraint := range p.rule.Constraints {
		_ = hot.Walk(constraint, func(value any) error {
			found = found || is(value)
			return nil
		})
	}
	return found
}

// shown is the default as the field has it: lists and maps as texts, as they are typed. Secrets, and lists whose members have commas, are left to the
// template.
func (p hotParameter) shown() (any, bool) {
	if !p.rule.Optional || p.secret() {
		return nil, false
	}
	switch initial := p.initial.(type) {
	case map[string]any:
		return hot.Text(initial), true
	case []any:
		if p.rule.Type != "comma_delimited_list" {
			return hot.Text(initial), true
		}
		texts := make([]string, len(initial))
		for i, member := range initial {
			if texts[i] = hot.Text(member); strings.Contains(texts[i], ",") {
				return nil, false
			}
		}
		return strings.Join(texts, ","), true
	case bool:
		if p.rule.Type == "string" {
			text, err := p.rule.Value(initial)
			return text, err == nil
		}
	case string:
		if p.rule.Type == "number" || p.rule.Type == "boolean" {
			value, err := hot.Rule{Type: p.rule.Type}.Value(initial)
			return value, err == nil
		}
	case int64:
		if p.rule.Type == "boolean" {
			return initial == 1, true
		}
	}
	return p.initial, true
}

// condition is a constraint as an expression on a value, such as $; "" for one that YAQL has no short words for.
func (p hotParameter) condition(value string, constraint map[string]any) string {
	isList := p.rule.Type == "comma_delimited_list"
	switch {
	case p.rule.Type == "json":
		return ""
	case constraint["allowed_values"] != nil:
		values, _ := constraint["allowed_values"].([]any)
		list := make([]string, 0, len(values))
		for _, allowed := range values {
			if p.rule.Type == "number" {
				if number, err := (hot.Rule{Type: "number"}).Value(allowed); err == nil {
					allowed = number
				}
			} else if p.rule.Type != "boolean" {
				allowed = hot.Text(allowed)
			}
			list = append(list, literal(allowed))
		}
		among := " in list(" + strings.Join(list, ", ") + ")"
		if isList {
			return "$.split(',').select($.trim()).all($" + among + ")"
		}
		return value + among
	case constraint["length"] != nil && isList:
		return between("len($.split(','))", constraint["length"])
	case constraint["range"] != nil && p.rule.Type == "number":
		return between(value, constraint["range"])
	case constraint["allowed_pattern"] != nil && p.rule.Type == "string":
		pattern, _ := constraint["allowed_pattern"].(string)
		if bare, _ := ui.SplitPattern(pattern); bare != pattern {
			return "" // a form would take its slashes for quotes
		}
		return pattern
	}
	return ""
}

// between is the expression that a value is within bounds.
func between(value string, spec any) string {
	low, high, err := hot.Bounds(spec)
	switch {
	case err != nil:
		return ""
	case high == nil:
		return fmt.Sprintf("%s >= %s", value, literal(low))
	case low == nil:
		return fmt.Sprintf("%s <= %s", value, literal(high))
	}
	return fmt.Sprintf("%s >= %s and %s <= %s", value, literal(low), value, literal(high))
}

// narrow sets minLength and maxLength, the narrowest of several.
func narrow(field map[string]any, spec any) {
	low, high, _ := hot.Bounds(spec)
	if low != nil {
		now, there := field["minLength"].(int)
		if field["minLength"] = whole(low); there {
			field["minLength"] = max(now, whole(low))
		}
	}
	if high != nil {
		now, there := field["maxLength"].(int)
		if field["maxLength"] = whole(high); there {
			field["maxLength"] = min(now, whole(high))
		}
	}
}

func whole(number any) int {
	switch number := number.(type) {
	case int64:
		return int(number)
	case float64:
		return int(math.Max(math.MinInt32, math.Min(math.MaxInt32, number)))
	}
	return 0
}

// titled writes a parameter's name as Python's title() does, with blanks for underscores.
func titled(name string) string {
	var text strings.Builder
	inWord := false
	for _, r := range name {
		if inWord {
			text.WriteRune(unicode.ToLower(r))
		} else {
			text.WriteRune(unicode.ToUpper(r))
		}
		inWord = unicode.IsLetter(r)
	}
	return strings.ReplaceAll(text.String(), "_", " ")
}
