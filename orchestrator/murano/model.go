package murano

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/store"
)

const (
	classRegion      = "io.murano.CloudRegion"
	classEnvironment = "io.murano.Environment"
	// attributeStackName is Murano's attribute with the name of a region's stack, without stackPrefix.
	attributeStackName = "generatedStackName"
	// attributeTemplateStack is its attribute with the name of the stack of a package in HOT.
	attributeTemplateStack = "generatedHeatStackName"
	stackPrefix            = "murano-"
)

// description is Murano's document of an environment, or of a session's draft of it.
type description struct {
	store.Model
	Attributes [][]any `json:"Attributes"` // each an object's id, a class, a name and a value
}

// readDescription reads a description, without the trust and the other data of Murano's engine.
func readDescription(text string) (description, error) {
	var d description
	if text == "" {
		return d, fmt.Errorf("it has no model")
	}
	if err := d.Model.UnmarshalJSON([]byte(text)); err != nil {
		return d, fmt.Errorf("its model cannot be read: %w", err)
	}
	var rest struct {
		Attributes [][]any
		SystemData struct{ Packages map[string]json.RawMessage }
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&rest); err != nil {
		return d, fmt.Errorf("its model cannot be read: %w", err)
	}
	d.Attributes = rest.Attributes
	for name, versions := range rest.SystemData.Packages {
		var list []string
		if json.Unmarshal(versions, &list) == nil && len(list) > 0 {
			if d.Packages == nil {
				d.Packages = map[string][]string{}
			}
			d.Packages[name] = list
		}
	}
	return d, nil
}

// attributes are an environment's attributes as rows.
func (d description) attributes(environment string) ([]store.Attribute, error) {
	rows := map[[3]string]store.Attribute{} // Murano's list may have one twice; the last counts
	for _, one := range d.Attributes {
		if len(one) != 4 {
			return nil, fmt.Errorf("an attribute has %d parts and not 4", len(one))
		}
		id, class, name := fmt.Sprint(one[0]), fmt.Sprint(one[1]), fmt.Sprint(one[2])
		value, err := json.Marshal(one[3])
		if err != nil {
			return nil, err
		}
		rows[[3]string{id, class, name}] = store.Attribute{EnvironmentID: environment, ObjectID: id, Class: class, Name: engine.CodeAttribute(name), Value: string(value)}
	}
	list := make([]store.Attribute, 0, len(rows))
	for _, row := range rows {
		list = append(list, row)
	}
	return list, nil
}

// stacks are the names of the environment's stacks of Murano, by their regions' objects.
func (d description) stacks() map[string]string {
	names := map[string]string{}
	for _, one := range d.Attributes {
		if len(one) == 4 && one[1] == classRegion && one[2] == attributeStackName {
			if name, ok := one[3].(string); ok {
				names[fmt.Sprint(one[0])] = stackPrefix + name
			}
		}
	}
	return names
}

// document reads a JSON object; nil when there is none.
func document(text string) (store.Document, error) {
	if text == "" {
		return nil, nil
	}
	var m map[string]any
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&m); err != nil {
		return nil, err
	}
	m, _ = yaql.FromJSON(m).(map[string]any)
	return m, nil
}

// optional is a text that may be NULL.
func optional(text sql.NullString) *string {
	if !text.Valid {
		return nil
	}
	return &text.String
}

// seconds is a time of Murano, in seconds since 1970.
func seconds(unix int64) store.Time { return store.Time(unix * 1_000_000) }

func rowTime(t time.Time) store.Time { return store.Time(t.UTC().UnixMicro()) }
