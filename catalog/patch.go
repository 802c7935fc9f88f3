package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
)

// Change is one operation on a package's record: add, replace or remove, of one of its attributes.
type Change struct {
	Op        string
	Attribute string
	Value     any // as the attribute's kind: []string, string or bool
}

// kind is a JSON type, by its name in JSON schema.
type kind string

const (
	kindText  kind = "string"
	kindBool  kind = "boolean"
	kindTexts kind = "array" // of different texts
)

// changeable are the attributes that can be changed, with their kinds. Lists can be added to and removed from; the others can only
// be replaced.
var changeable = map[string]kind{
	"categories": kindTexts, "tags": kindTexts, "is_public": kindBool, "enabled": kindBool, "description": kindText, "name": kindText,
}

// ParseChanges reads the body of PATCH /v1/catalog/packages/{id}: a list of {"op", "path", "value"}, a part of RFC 6902. An error is a fault in Murano's
// words: of kind Forbidden if the path does not allow the change, else of kind Invalid.
func ParseChanges(body any) ([]Change, error) {
	operations, ok := body.([]any)
	if !ok {
		return nil, fault.New(fault.Invalid, "JSON-patch must be a list.")
	}
	changes := make([]Change, 0, len(operations))
	for _, operation := range operations {
		change, err := parseChange(operation)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
	}
	return changes, nil
}

func parseChange(operation any) (Change, error) {
	var change Change
	fields, ok := operation.(map[string]any)
	if !ok {
		return change, fault.New(fault.Invalid, "Operations must be JSON objects.")
	}
	for _, key := range []string{"op", "path"} {
		if _, there := fields[key]; !there {
			return change, fault.New(fault.Invalid, "Unable to find '%s' in JSON Schema change", key)
		}
	}
	change.Op = fmt.Sprint(fields["op"])
	path, err := parsePointer(fmt.Sprint(fields["path"]))
	if err != nil {
		return change, err
	}
	if len(path) > 1 {
		return change, fault.New(fault.Invalid, "Nested paths are not allowed")
	}
	change.Attribute = path[0]
	value, there := fields["value"]
	if !there {
		return change, fault.New(fault.Invalid, `Operation "%s" requires a member named "value".`, short(change.Op))
	}
	wanted, there := changeable[change.Attribute]
	if !there {
		return change, fault.New(fault.Forbidden, "Attribute '%s' is invalid", short(change.Attribute))
	}
	allowed := []string{"replace"}
	if wanted == kindTexts {
		allowed = []string{"add", "replace", "remove"}
	}
	if !slices.Contains(allowed, change.Op) {
		return change, fault.New(fault.Forbidden, "Method '%s' is not allowed for a path with name '%s'. Allowed operations are: %s",
			short(change.Op), change.Attribute, strings.Join(allowed, ", "))
	}
	if wrong := wanted.wrong(value); wrong != nil {
		return change, fault.New(fault.Invalid, "%s", wrong.message)
	}
	change.Value = value
	if wanted == kindTexts {
		change.Value = texts(value)
	}
	return change, nil
}

func texts(value any) []string {
	list := []string{}
	for _, item := range value.([]any) {
		list = append(list, item.(string))
	}
	return list
}

var (
	adjacent     = regexp.MustCompile(`/\s*/`)
	badEscape    = regexp.MustCompile(`~([^01]|$)`)
	unescapeText = strings.NewReplacer("~1", "/", "~0", "~")
)

// parsePointer reads a JSON pointer (RFC 6901) as narrowly as Murano does.
func parsePointer(pointer string) ([]string, error) {
	quoted := "`" + short(pointer) + "`"
	switch {
	case !strings.HasPrefix(pointer, "/"):
		return nil, fault.New(fault.Invalid, `Pointer %s does not start with "/".`, quoted)
	case adjacent.MatchString(pointer[1:]):
		return nil, fault.New(fault.Invalid, `Pointer %s contains adjacent "/".`, quoted)
	case len(pointer) > 1 && strings.HasSuffix(pointer, "/"):
		return nil, fault.New(fault.Invalid, `Pointer %s end with "/".`, quoted)
	case badEscape.MatchString(pointer):
		return nil, fault.New(fault.Invalid, `Pointer %s contains "~" not part of a recognized escape sequence.`, quoted)
	}
	parts := strings.Split(strings.TrimLeft(pointer, "/"), "/")
	for i, part := range parts {
		parts[i] = strings.TrimSpace(unescapeText.Replace(part))
	}
	return parts, nil
}

// Update changes a package of the caller's project, or any uploaded one for an administrator.
func (s *Service) Update(ctx context.Context, caller identity.Caller, id string, changes []Change) (Record, error) {
	record, err := s.Show(ctx, caller, id)
	switch {
	case err != nil:
		return Record{}, err
	case record.Embedded:
		return Record{}, fault.New(fault.Forbidden, "Package '%s' (%s) comes with Burano and cannot be changed", id, record.FullName)
	case record.OwnerID != caller.ProjectID && !caller.Admin:
		return Record{}, fault.New(fault.Forbidden, "Package '%s' is not owned by tenant '%s'", id, caller.ProjectID)
	case record.Public && !caller.May("manage_public_package"):
		return Record{}, denied
	}
	for _, change := range changes {
		if change.Attribute == "is_public" && change.Value == true && !record.Public && !caller.May("publicize_package") {
			return Record{}, denied
		}
	}
	return s.store.UpdatePackage(ctx, id, func(record *Record) error {
		for _, change := range changes {
			if err := change.apply(record); err != nil {
				return err
			}
		}
		record.Updated = s.now().UTC().Truncate(time.Second)
		return nil
	})
}

func (c Change) apply(record *Record) error {
	switch c.Attribute {
	case "name":
		record.Name = c.Value.(string)
		if utf8.RuneCountInString(record.Name) > maxName {
			return fault.New(fault.Invalid, "Package name should be %d characters maximum", maxName)
		}
	case "description":
		record.Description = c.Value.(string)
	case "is_public":
		record.Public = c.Value.(bool)
	case "enabled":
		record.Enabled = c.Value.(bool)
	case "tags":
		return c.applyTo(&record.Tags)
	case "categories":
		return c.applyTo(&record.Categories)
	}
	return nil
}

func (c Change) applyTo(list *[]string) error {
	values := c.Value.([]string)
	switch c.Op {
	case "replace":
		*list = values
	case "add":
		for _, value := range values {
			if !slices.Contains(*list, value) {
				*list = append(*list, value)
			}
		}
	case "remove":
		for _, value := range values {
			at := slices.Index(*list, value)
			if at < 0 {
				return fault.New(fault.NotFound, "Value '%s' of property '%s' does not exist.", short(value), c.Attribute)
			}
			*list = slices.Delete(*list, at, at+1)
		}
	}
	return nil
}

// schemaError is a violation in the words of Python's jsonschema, which clients of Murano know.
type schemaError struct {
	message string // "'yes' is not of type 'boolean'"
	rule    string // the keyword of JSON schema: "type"
	schema  string // that was not met, as Python writes it: "{'type': 'boolean'}"
	where   string // below the value, as Python writes it: "[0]"
	within  string // the same in the schema: "['items']"
	value   any
}

const (
	textSchema = "{'type': 'string'}"
	listSchema = "{'items': {'type': 'string'}, 'minItems': 0, 'type': 'array', 'uniqueItems': True}"
)

// wrong describes why a value is not of the kind; nil when it is.
func (k kind) wrong(value any) *schemaError {
	mistyped := func(value any, wanted kind, schema string) *schemaError {
		return &schemaError{message: fmt.Sprintf("%s is not of type '%s'", python(value), wanted), rule: "type", schema: schema, value: value}
	}
	switch k {
	case kindText:
		if _, ok := value.(string); !ok {
			return mistyped(value, k, textSchema)
		}
	case kindBool:
		if _, ok := value.(bool); !ok {
			return mistyped(value, k, "{'type': 'boolean'}")
		}
	case kindTexts:
		list, ok := value.([]any)
		if !ok {
			return mistyped(value, k, listSchema)
		}
		seen := map[any]bool{}
		for i, item := range list {
			if _, ok := item.(string); !ok {
				wrong := mistyped(item, kindText, textSchema)
				wrong.where, wrong.within = fmt.Sprintf("[%d]", i), "['items']"
				return wrong
			}
			if seen[item] {
				return &schemaError{message: python(value) + " has non-unique elements", rule: "uniqueItems", schema: listSchema, value: value}
			}
			seen[item] = true
		}
	}
	return nil
}

// python writes a JSON value as Python's repr does, cut to a bearable length.
func python(value any) string {
	var text string
	switch value := value.(type) {
	case nil:
		text = "None"
	case bool:
		text = map[bool]string{true: "True", false: "False"}[value]
	case string:
		text = "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(value) + "'"
		if strings.Contains(value, "'") && !strings.Contains(value, `"`) {
			text = `"` + strings.ReplaceAll(value, `\`, `\\`) + `"`
		}
	case []any:
		items := make([]string, 0, len(value))
		for _, item := range value {
			items = append(items, python(item))
		}
		text = "[" + strings.Join(items, ", ") + "]"
	case map[string]any:
		items := make([]string, 0, len(value))
		for key, item := range value {
			items = append(items, python(key)+": "+python(item))
		}
		slices.Sort(items)
		text = "{" + strings.Join(items, ", ") + "}"
	case json.Number:
		text = value.String()
	default:
		text = fmt.Sprint(value)
	}
	const most = 500
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}
