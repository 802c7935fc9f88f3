package ui

import (
	"slices"
	"strings"
)

// types are the types of fields besides names of classes (murano-dashboard, dynamic_ui/fields.py).
var types = []string{"string", "text", "boolean", "integer", "password", "choice", "clusterip", "databaselist", "image", "flavor", "keypair",
	"azone", "network", "securitygroup", "volume", "zone", "domain", "floatingip"}

// shape is the shape of an attribute, besides an expression.
type shape int

const (
	anything shape = iota
	text
	boolean
	whole
	pattern
	texts   // a map of texts
	mapping // a map
	listing // a list, or a map of texts
	media   // a map of js and css
)

// attribute is an attribute of a field besides name and type.
type attribute struct {
	name  string
	shape shape
	types []string // where it has an effect; nil for all
}

var attributes = []attribute{
	{name: "label", shape: text},
	{name: "description", shape: text},
	{name: "descriptionTitle", shape: text},
	{name: "helpText", shape: text},
	{name: "initial"},
	{name: "required", shape: boolean},
	{name: "hidden", shape: boolean},
	{name: "enabled", shape: boolean},
	{name: "minLength", shape: whole},
	{name: "maxLength", shape: whole},
	{name: "minValue", shape: whole},
	{name: "maxValue", shape: whole},
	{name: "regexpValidator", shape: pattern},
	{name: "validators"},
	{name: "errorMessages", shape: texts},
	{name: "emptyValueMessage", shape: text},
	{name: "widgetMedia", shape: media},
	{name: "widgetAttrs", shape: mapping},
	{"confirmInput", boolean, []string{"password"}},
	{"choices", listing, []string{"choice"}},
	{"imageType", text, []string{"image"}},
	{"requirements", mapping, []string{"flavor"}},
	{"includeSubnets", boolean, []string{"network"}},
	{"filter", text, []string{"network"}},
	{"muranoNetworks", text, []string{"network"}},
	{"allowAuto", boolean, []string{"network"}},
	{"includeVolumes", boolean, []string{"volume"}},
	{"includeSnapshots", boolean, []string{"volume"}},
}

func (p *parser) fields(list *Value) []*Field {
	if list.Kind != List {
		p.wrong(list.Place, "fields should be a list")
		return nil
	}
	var all []*Field
	seen := map[string]int{} // where the field is
	for _, item := range list.Items {
		if item.Kind != Map {
			p.wrong(item.Place, "a field should be a map with name and type")
			continue
		}
		field := p.field(item)
		if before, twice := seen[field.Name]; twice && field.Name != "" {
			p.warn(item.Get("name").Place, "there is another field %s in this form; the last one counts", field.Name)
			all[before] = field
			continue
		}
		seen[field.Name] = len(all)
		all = append(all, field)
	}
	return all
}

func (p *parser) field(item *Value) *Field {
	field := &Field{Place: item.Place, Attributes: map[string]*Value{}}
	if name := item.Get("name"); name != nil && name.Kind == Constant {
		field.Name, _ = name.Text()
	}
	if field.Name == "" {
		p.wrong(item.Place, "a field needs a name")
	}
	p.fieldType(field, item)
	for _, part := range item.Entries {
		name := camelCase(part.Name())
		if name == "name" || name == "type" {
			continue
		}
		at := slices.IndexFunc(attributes, func(a attribute) bool { return a.name == name })
		if at < 0 {
			p.warn(part.Key.Place, "a field has no %s; known are name, type, %s", part.Name(), p.known(field.Type))
			continue
		}
		if known := attributes[at]; known.types != nil && field.Type != "" && !slices.Contains(known.types, field.Type) {
			p.warn(part.Key.Place, "%s says nothing in a field of type %s", name, field.Type)
			continue
		}
		p.is(part.Value, name, attributes[at].shape)
		switch name {
		case "validators":
			field.Validators = append(field.Validators, p.validators(part.Value)...)
		case "regexpValidator":
			field.Validators = append(field.Validators, &Validator{Place: part.Value.Place, Pattern: part.Value})
		default:
			field.Attributes[name] = part.Value
		}
	}
	if field.Type == "choice" && field.Attributes["choices"] == nil {
		p.wrong(item.Place, "a field of type choice needs choices")
	}
	return field
}

// known lists the attributes of a type of fields.
func (p *parser) known(of string) string {
	var names []string
	for _, a := range attributes {
		if a.types == nil || slices.Contains(a.types, of) {
			names = append(names, a.name)
		}
	}
	return strings.Join(names, ", ")
}

func (p *parser) fieldType(field *Field, item *Value) {
	kind := item.Get("type")
	if kind == nil || kind.isNull() {
		p.wrong(item.Place, "a field needs a type")
		return
	}
	if name, is := kind.Text(); is && slices.Contains(types, name) {
		field.Type = name
		return
	}
	names := kind.Items
	if kind.Kind != List {
		names = []*Value{kind}
	}
	if len(names) == 0 {
		p.wrong(kind.Place, "a type should be a name, or a list of names of classes")
	}
	for _, one := range names {
		name, is := one.Text()
		switch {
		case !is || name == "":
			p.wrong(one.Place, "a type should be a name, or a list of names of classes")
		case !strings.Contains(name, "."):
			p.wrong(one.Place, "there is no type %s; there are %s, and full names of classes", name, strings.Join(types, ", "))
		default:
			field.Classes = append(field.Classes, name)
		}
	}
}

// is reports a value without the wanted shape.
func (p *parser) is(value *Value, name string, wanted shape) {
	if value.Kind == Expression {
		return // its value is checked when it is evaluated
	}
	switch wanted {
	case text:
		p.wants(value.Kind == Constant, value, name, "a text")
	case boolean:
		_, is := value.Constant.(bool)
		p.wants(is, value, name, "true or false")
	case whole:
		_, is := value.Constant.(int64)
		p.wants(is || value.isNull(), value, name, "a whole number")
	case pattern:
		_, is := value.Text()
		p.wants(is, value, name, "a regular expression")
	case mapping, texts, media:
		p.mapping(value, name, wanted)
	case listing:
		p.choices(value)
	}
}

func (p *parser) wants(is bool, value *Value, name, wanted string) {
	if !is {
		p.wrong(value.Place, "%s should be %s", name, wanted)
	}
}

func (p *parser) mapping(value *Value, name string, wanted shape) {
	if value.Kind != Map {
		p.wrong(value.Place, "%s should be a map", name)
		return
	}
	for _, entry := range value.Entries {
		switch {
		case wanted == texts:
			p.is(entry.Value, name+"."+entry.Name(), text)
		case wanted == media && entry.Name() != "js" && entry.Name() != "css":
			p.warn(entry.Key.Place, "widgetMedia has no %s; known are js, css", entry.Name())
		}
	}
}

// choices are pairs of a value and its label, or a map of labels.
func (p *parser) choices(value *Value) {
	switch value.Kind {
	case Map:
		p.mapping(value, "choices", texts)
	case List:
		for _, item := range value.Items {
			if item.Kind != Expression && (item.Kind != List || len(item.Items) != 2) {
				p.wrong(item.Place, "a choice should be a list of a value and a label")
			}
		}
	default:
		p.wrong(value.Place, "choices should be a list of pairs or a map")
	}
}

// camelCase writes max_length as maxLength: the reference takes both.
func camelCase(name string) string {
	first, rest, _ := strings.Cut(name, "_")
	for rest != "" {
		var word string
		word, rest, _ = strings.Cut(rest, "_")
		if word != "" {
			first += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return first
}
