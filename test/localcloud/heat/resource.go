package heat

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/burano/burano/catalog/hot"
)

// resourceType is Heat's implementation of one type of resource.
type resourceType struct {
	properties map[string]property // nil: any
	aliases    map[string]string   // older names of properties
	// create makes the resource and returns when it is ready. It must make nothing twice: after a crash it is called again with
	// the same resource.
	create func(ctx context.Context, j *job) error
	// replaces reports that a change of properties which is possible in place nevertheless replaces; may be nil.
	replaces func(differing []string, next map[string]any) bool
	// update changes it in place; it is called when every changed property allows that, with the new properties in the job.
	update func(ctx context.Context, j *job) error
	// remove deletes it and returns when it is gone; that it is not there is fine.
	remove func(ctx context.Context, j *job) error
	// refers checks that the objects that the properties name exist; may be nil.
	refers func(j *job) error
	// attributes are the values of get_attr.
	attributes func(ctx context.Context, j *job) (map[string]any, error)
	// reference is the value of get_resource; the physical id when nil.
	reference func(r *Resource) any
	// deleteFirst reports that in a replacement the old one must go before the new one comes.
	deleteFirst func(old, next map[string]any) bool
	// release makes an old resource release objects that its replacement needs; may be nil.
	release func(ctx context.Context, j *job) error
	// ofMembers is set if attributes are lists over members: without members each is empty.
	ofMembers bool
}

// property is one property of a resource type.
type property struct {
	kind     kind
	required bool
	update   bool // can be changed in place
	hidden   bool // accepted without effect, so that the schema of the type no longer has it
	fallback any
}

type kind int

const (
	anything kind = iota
	words
	number
	truth
	aList
	aMap
)

// job is one resource being worked on.
type job struct {
	service  *Service
	stack    Stack // as it was when the work began; for its names and owner
	resource *Resource
	kind     resourceType
	// properties are resolved and have their types; properties without a value and without a fallback are absent.
	properties map[string]any
}

func (s *Service) job(stack Stack, resource *Resource, properties map[string]any) *job {
	return &job{service: s, stack: stack, resource: resource, kind: s.types[resource.Type], properties: properties}
}

func (j *job) project() string  { return j.stack.ProjectID }
func (j *job) network() Network { return j.service.config.Network }
func (j *job) volumes() Volumes { return j.service.config.Volumes }
func (j *job) compute() Compute { return j.service.config.Compute }

func (j *job) text(name string) string { return hot.Text(j.properties[name]) }

// name is the property name, or one made of the stack's and the resource's.
func (j *job) name() string {
	if name := j.text("name"); name != "" {
		return name
	}
	return j.resource.physicalName(j.stack.Name)
}

// setID stores the physical id before, or as soon as, there is something with it.
func (j *job) setID(physicalID string) error {
	j.resource.PhysicalID = physicalID
	return j.service.storeResource(j.stack.ID, j.resource)
}

// into copies the named properties into a request of the API, whose names are the same.
func (j *job) into(request any, names ...string) error {
	chosen := map[string]any{}
	for _, name := range names {
		if value, ok := j.properties[name]; ok {
			chosen[name] = value
		}
	}
	return convert(chosen, request)
}

// convert uses JSON.
func convert(from, to any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, to); err != nil {
		return notValid("%v", err)
	}
	return nil
}

// object is an object as the API shows it, for the attribute show and the attributes named like its fields.
func object(value any) (map[string]any, error) {
	shown := map[string]any{}
	if err := convert(value, &shown); err != nil {
		return nil, err
	}
	maps.DeleteFunc(shown, func(key string, _ any) bool { return strings.HasPrefix(key, "_") })
	attributes := maps.Clone(shown)
	attributes["show"] = shown
	return attributes, nil
}

// checkTypes finds unknown resource types and properties and missing ones, before anything is made.
func (s *Service) checkTypes(t *Template) error {
	for _, name := range slices.Sorted(maps.Keys(t.Resources)) {
		definition := t.Resources[name]
		known, ok := s.types[definition.Type]
		if !ok {
			return notValid("The Resource Type (%s) could not be found. (resources.%s; the local cloud's Heat knows %s)", definition.Type, name, strings.Join(slices.Sorted(maps.Keys(s.types)), ", "))
		}
		if known.properties == nil {
			continue
		}
		given := known.rename(definition.Properties)
		for _, key := range slices.Sorted(maps.Keys(given)) {
			if _, ok := known.properties[key]; !ok {
				return notValid("Property error: : resources.%s.properties: : Unknown Property %s", name, key)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(known.properties)) {
			if _, ok := given[key]; known.properties[key].required && !ok {
				return notValid("Property error: : resources.%s.properties: : Property %s not assigned", name, key)
			}
		}
	}
	return nil
}

func (k resourceType) rename(properties map[string]any) map[string]any {
	renamed := map[string]any{}
	for key, value := range properties {
		if name, ok := k.aliases[key]; ok {
			key = name
		}
		renamed[key] = value
	}
	return renamed
}

// typed gives resolved properties their types and fallbacks.
func (k resourceType) typed(properties map[string]any) (map[string]any, error) {
	if k.properties == nil {
		return properties, nil
	}
	result := map[string]any{}
	given := k.rename(properties)
	for name, schema := range k.properties {
		value, there := given[name]
		if value == nil {
			value = schema.fallback
		}
		if value == nil && schema.required {
			return nil, notValid("Property error: %s: the value is null", name)
		}
		if value == nil && there {
			value = schema.kind.empty()
		}
		if value == nil {
			continue
		}
		converted, err := schema.kind.convert(value)
		if err != nil {
			return nil, notValid("Property error: %s: %v", name, err)
		}
		result[name] = converted
	}
	return result, nil
}

// empty is the value of a null property, which differs from an absent one; nil where it has no type.
func (k kind) empty() any {
	switch k {
	case words:
		return ""
	case number:
		return 0.0
	case truth:
		return false
	case aList:
		return []any{}
	case aMap:
		return map[string]any{}
	}
	return nil
}

func (k kind) convert(value any) (any, error) {
	switch k {
	case words:
		return hot.Text(value), nil
	case number:
		number, err := strconv.ParseFloat(hot.Text(value), 64)
		if err != nil || number != math.Trunc(number) {
			return nil, fmt.Errorf("%q is not a whole number", hot.Text(value))
		}
		return number, nil
	case truth:
		is, ok := hot.Boolean(value)
		if !ok {
			return nil, fmt.Errorf("%q is not a valid boolean", hot.Text(value))
		}
		return is, nil
	case aList:
		list, ok := value.([]any)
		if !ok {
			return nil, fmt.Errorf("%q is not a list", hot.Text(value))
		}
		return list, nil
	case aMap:
		object, ok := value.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%q is not a map", hot.Text(value))
		}
		return object, nil
	}
	return value, nil
}

// changed lists the properties that differ.
func changed(old, next map[string]any) (names []string) {
	for name := range old {
		if _, ok := next[name]; !ok {
			names = append(names, name)
		}
	}
	for name, value := range next {
		before, ok := old[name]
		if !ok || hot.Text(before) != hot.Text(value) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// inPlace reports whether all these properties can be changed without a replacement.
func (k resourceType) inPlace(names []string, next map[string]any) bool {
	return k.update != nil && (k.replaces == nil || !k.replaces(names, next)) && !slices.ContainsFunc(names, func(name string) bool { return !k.properties[name].update })
}

// attribute finds one attribute of a resource that is there.
func (s *Service) attribute(ctx context.Context, stack Stack, resource *Resource, name string) (any, error) {
	known := s.types[resource.Type]
	attributes := map[string]any{}
	if known.attributes != nil {
		found, err := known.attributes(ctx, s.job(stack, resource, resource.Properties))
		if err != nil {
			return nil, fmt.Errorf("attribute %s of %s: %w", name, resource.Name, err)
		}
		attributes = found
	}
	value, ok := attributes[name]
	if !ok && known.ofMembers && len(hot.List(attributes["refs"])) == 0 && !strings.HasPrefix(name, "resource.") {
		return []any{}, nil
	}
	if !ok && name != "show" {
		return nil, invalid("InvalidTemplateAttribute", "The Referenced Attribute (%s %s) is incorrect.", resource.Name, name)
	}
	return value, nil
}

func (s *Service) reference(resource *Resource) any {
	if known := s.types[resource.Type]; known.reference != nil {
		return known.reference(resource)
	}
	return resource.PhysicalID
}
