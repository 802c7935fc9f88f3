package hot

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// descend follows a path into maps and lists; a missing value is null, as in Heat.
func descend(value any, path []any) any {
	for _, step := range path {
		switch current := value.(type) {
		case map[string]any:
			value = current[Text(step)]
		case []any:
			index, err := strconv.Atoi(Text(step))
			if err != nil || index < 0 || index >= len(current) {
				return nil
			}
			value = current[index]
		default:
			return nil
		}
	}
	return value
}

// List is a list, the list of one value, or nothing.
func List(value any) []any {
	switch value := value.(type) {
	case nil:
		return nil
	case []any:
		return value
	}
	return []any{value}
}

// Text is a value within a text: maps and lists as JSON, null as nothing.
func Text(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	case int64:
		return strconv.FormatInt(value, 10)
	case bool:
		return strconv.FormatBool(value)
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}

// Boolean parses a boolean as Heat does.
func Boolean(value any) (truth, ok bool) {
	switch strings.ToLower(strings.TrimSpace(Text(value))) {
	case "true", "t", "on", "y", "yes", "1":
		return true, true
	case "false", "f", "off", "n", "no", "0":
		return false, true
	}
	return false, false
}
