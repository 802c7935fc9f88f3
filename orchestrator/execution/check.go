package execution

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/check"
	"github.com/burano/burano/orchestrator/execution/body"
)

// Check finds mistakes in a plan's template as it is in a package, with the files of Resources that read finds. Texts that begin with $ are replaced
// before a plan is made of it: their values are not checked.
func Check(template map[string]any, read func(name string) ([]byte, error)) []check.Mistake {
	var found []check.Mistake
	note := func(err error, path ...string) {
		var wrong *Error
		if errors.As(err, &wrong) {
			found = append(found, check.Mistake{Path: path, Text: wrong.Message})
		} else if err != nil {
			found = append(found, check.Mistake{Path: path, Text: err.Error()})
		}
	}
	scripts, named := template["Scripts"].(map[string]any)
	frame := maps.Clone(template)
	if named {
		delete(frame, "Scripts")
	}
	if replaced(frame["FormatVersion"]) || replaced(frame["Body"]) || replaced(frame["Files"]) || replaced(template["Scripts"]) && !named {
		return nil
	}
	if _, err := buildAndParse(frame, read); err != nil {
		note(err)
		return found
	}
	for _, name := range slices.Sorted(maps.Keys(scripts)) {
		if replaced(scripts[name]) {
			continue
		}
		one := maps.Clone(frame)
		one["Scripts"] = map[string]any{name: scripts[name]}
		_, err := buildAndParse(one, read)
		note(err, "Scripts", name)
	}
	source, _ := frame["Body"].(string)
	parameters, known := template["Parameters"].(map[string]any)
	for _, mistake := range body.Names(source, slices.Collect(maps.Keys(scripts)), slices.Collect(maps.Keys(parameters)), known || template["Parameters"] == nil) {
		note(mistake, "Body")
	}
	return found
}

func buildAndParse(template map[string]any, read Read) (*Plan, error) {
	built, err := Build(template, read)
	if err != nil {
		return nil, err
	}
	return Parse(built)
}

// replaced is true if a value has texts that begin with $.
func replaced(value any) bool {
	switch v := value.(type) {
	case string:
		return strings.HasPrefix(v, "$")
	case []any:
		return slices.ContainsFunc(v, replaced)
	case map[string]any:
		for key, item := range v {
			if replaced(key) || replaced(item) {
				return true
			}
		}
	}
	return false
}
