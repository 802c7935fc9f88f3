package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/burano/burano/internal/fault"
)

// Metadata is an uploader's description of a package besides the package itself.
type Metadata struct {
	Categories []string // names
	Tags       []string
	Public     bool
	Enabled    *bool // nil is true
}

// ParseMetadata reads the JSON part of an upload: an object with categories, tags, name, description, is_public and enabled;
// name and description are checked and then, as in Murano, the manifest's are used. Text that is no JSON object is passed over as
// in Murano; another key, or a value of another type, is a fault of kind Invalid.
func ParseMetadata(text []byte) (Metadata, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var fields map[string]any
	if decoder.Decode(&fields) != nil || decoder.Decode(new(any)) != io.EOF {
		return Metadata{}, nil
	}
	if err := checkMetadata(fields); err != nil {
		return Metadata{}, err
	}
	var meta Metadata
	if list, there := fields["categories"]; there {
		meta.Categories = texts(list)
	}
	if list, there := fields["tags"]; there {
		meta.Tags = texts(list)
	}
	meta.Public, _ = fields["is_public"].(bool)
	if enabled, there := fields["enabled"].(bool); there {
		meta.Enabled = &enabled
	}
	return meta, nil
}

// metadataSchema is Murano's schema of the JSON part, as Python prints it, and in the messages of Murano.
const metadataSchema = `{'$schema': 'http://json-schema.org/draft-04/schema#',
     'additionalProperties': False,
     'properties': {'categories': {'items': {'type': 'string'},
                                   'minItems': 0,
                                   'type': 'array',
                                   'uniqueItems': True},
                    'description': {'type': 'string'},
                    'enabled': {'type': 'boolean'},
                    'is_public': {'type': 'boolean'},
                    'name': {'type': 'string'},
                    'tags': {'items': {'type': 'string'},
                             'minItems': 0,
                             'type': 'array',
                             'uniqueItems': True}},
     'type': 'object'}`

// checkMetadata reports faults in the words of Python's jsonschema, the outermost first.
func checkMetadata(fields map[string]any) error {
	keys := slices.Sorted(maps.Keys(fields))
	var unknown []string
	for _, key := range keys {
		if _, known := changeable[key]; !known {
			unknown = append(unknown, python(key))
		}
	}
	if len(unknown) > 0 {
		verb := "was"
		if len(unknown) > 1 {
			verb = "were"
		}
		return invalidSchema(schemaError{message: fmt.Sprintf("Additional properties are not allowed (%s %s unexpected)", strings.Join(unknown, ", "), verb),
			rule: "additionalProperties", schema: metadataSchema, value: fields}, "")
	}
	for _, deep := range []bool{false, true} {
		for _, key := range keys {
			if wrong := changeable[key].wrong(fields[key]); wrong != nil && (wrong.where != "") == deep {
				return invalidSchema(*wrong, key)
			}
		}
	}
	return nil
}

func invalidSchema(wrong schemaError, key string) error {
	schema, instance := "", ""
	if key != "" {
		schema = fmt.Sprintf("['properties']['%s']%s", key, wrong.within)
		instance = fmt.Sprintf("['%s']%s", key, wrong.where)
	}
	return fault.New(fault.Invalid, "Package schema is not valid: %s\n\nFailed validating '%s' in schema%s:\n    %s\n\nOn instance%s:\n    %s",
		wrong.message, wrong.rule, schema, wrong.schema, instance, python(wrong.value))
}
