package muranopl

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/burano/burano/internal/door"
)

// configured returns the value that the operator gives a property: the only one of usage Config, and otherwise in place of its default.
func (c *Classes) configured(p *Property) (any, bool, error) {
	if c.configs == nil {
		return nil, false, nil
	}
	v := p.Class.Package.Version()
	names := []string{
		fmt.Sprintf("%s-%d.%d.%d", p.Class.Name, v.Major(), v.Minor(), v.Patch()),
		fmt.Sprintf("%s-%d.%d", p.Class.Name, v.Major(), v.Minor()),
		fmt.Sprintf("%s-%d", p.Class.Name, v.Major()),
	}
	if v.Major() == 0 {
		names = append(names, p.Class.Name)
	}
	for _, name := range names {
		for _, suffix := range []string{".json", ".yaml"} { // JSON is YAML
			content, err := fs.ReadFile(c.configs, name+suffix)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, false, fmt.Errorf("read the class configuration: %w", err)
			}
			var values map[string]any
			if err := door.YAML(content, &values, door.Bounds{}); err != nil {
				return nil, false, fmt.Errorf("class configuration %s%s: %w", name, suffix, err)
			}
			value, ok := values[p.Name]
			return value, ok, nil
		}
	}
	return nil, false, nil
}
