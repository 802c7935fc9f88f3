package native

import "encoding/json"

// convert reads a value's JSON into a struct: attributes are stored as maps.
func convert(value, into any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
