package catalog

import (
	"encoding/json"
	"fmt"

	"github.com/burano/burano/internal/fault"
)

// Metadata is what an uploader says of a package besides the package itself.
type Metadata struct {
	Categories []string // names
	Tags       []string
	Public     bool
	Enabled    *bool // nil means enabled
}

// ParseMetadata reads the JSON part of an upload: an object with categories, tags, name, description, is_public and enabled;
// name and description are checked and then, as in Murano, the manifest's are used. Text that is no JSON object is passed over as
// in Murano; another key, or a value of another type, is a fault of kind Invalid.
func ParseMetadata(text []byte) (Metadata, error) {
	var meta Metadata
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return meta, nil
	}
	var ignored string
	for key, value := range fields {
		var err error
		switch key {
		case "categories":
			meta.Categories, err = uniqueTexts(value)
		case "tags":
			meta.Tags, err = uniqueTexts(value)
		case "name", "description":
			err = strictly(value, &ignored, "a text")
		case "is_public":
			err = strictly(value, &meta.Public, "true or false")
		case "enabled":
			meta.Enabled = new(bool)
			err = strictly(value, meta.Enabled, "true or false")
		default:
			err = fmt.Errorf("there is no such key; known are categories, tags, name, description, is_public and enabled")
		}
		if err != nil {
			return Metadata{}, fault.New(fault.Invalid, "Package schema is not valid: %s: %s", quoteShort(key), err)
		}
	}
	return meta, nil
}

func strictly(value json.RawMessage, into any, wanted string) error {
	if string(value) == "null" || json.Unmarshal(value, into) != nil {
		return fmt.Errorf("%s should be %s", quoteShort(string(value)), wanted)
	}
	return nil
}

func uniqueTexts(value json.RawMessage) ([]string, error) {
	var pointers []*string
	if err := strictly(value, &pointers, "a list of texts"); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	texts := make([]string, 0, len(pointers))
	for _, text := range pointers {
		if text == nil {
			return nil, fmt.Errorf("%s should be a list of texts", quoteShort(string(value)))
		}
		if seen[*text] {
			return nil, fmt.Errorf("%s is there twice", quoteShort(*text))
		}
		seen[*text] = true
		texts = append(texts, *text)
	}
	return texts, nil
}
