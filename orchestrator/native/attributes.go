package native

import "encoding/json"

// convert makes of a value what its JSON says: attributes are kept as maps, and known as structs.
func convert(value, into any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
