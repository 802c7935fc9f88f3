package api

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAClassThatCannotBeReadIsNamedWithFileAndLine imports packages that Murano imports, too, and uses them.
func TestAClassThatCannotBeReadIsNamedWithFileAndLine(t *testing.T) {
	for name, c := range map[string]struct{ class, says string }{
		"no YAML":               {"Name: org.test.Bad\nMethods: [\n", "package org.test.Bad, Classes/Bad.yaml is no YAML: yaml: line 2: "},
		"tabs":                  {"Name: org.test.Bad\n\tMethods: {}\n", "Classes/Bad.yaml is no YAML: yaml: line 2: "},
		"Latin-1":               {"Name: org.test.Bad\n# caf\xe9\n", "Classes/Bad.yaml is no YAML: yaml: "},
		"bytes":                 {"\x00\x01\xff", "Classes/Bad.yaml is no YAML: yaml: "},
		"a list":                {"- a\n- b\n", "package org.test.Bad, Classes/Bad.yaml:1:1: "},
		"nothing":               {"", "package org.test.Bad, Classes/Bad.yaml:1:1: "},
		"an unknown class":      {"Name: org.test.Bad\nExtends: org.test.Nowhere\n", "(Classes/Bad.yaml:2:10) extends org.test.Nowhere: "},
		"no file":               {"-", "Classes/Bad.yaml"},
		"a list of namespaces":  {"Namespaces: [a]\nName: org.test.Bad\n", "package org.test.Bad, Classes/Bad.yaml:1:"},
		"a circle of ancestors": {"Name: org.test.Bad\nExtends: org.test.Bad\n", "class org.test.Bad extends itself"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			files := fstest.MapFS{"manifest.yaml": {Data: []byte("Format: 1.4\nType: Application\nFullName: org.test.Bad\nClasses: {org.test.Bad: Bad.yaml}\n")}}
			if c.class != "-" {
				files["Classes/Bad.yaml"] = &fstest.MapFile{Data: []byte(c.class)}
			}
			s.shelved("demo", files)
			schema := s.send("GET", "/v1/schemas/org.test.Bad", map[string]string{"X-Auth-Token": "{token:demo}"}, nil)
			require.Contains(t, []int{400, 404}, schema.Code, schema.Body.String())
			require.Contains(t, schema.Body.String(), c.says)
			id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
			session := field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
			s.call("demo", session, "POST", "/v1/environments/"+id+"/services", map[string]any{"?": map[string]any{"id": "a1", "type": "org.test.Bad"}, "name": "a"}, 200)
			preview := s.send("GET", "/burano/v1/environments/"+id+"/sessions/"+session+"/preview", map[string]string{"X-Auth-Token": "{token:demo}"}, nil)
			require.Less(t, preview.Code, 500, preview.Body.String())
			require.Contains(t, preview.Body.String(), c.says)
			s.call("demo", "", "POST", "/v1/environments/"+id+"/sessions/"+session+"/deploy", nil, 200)
			task := ""
			require.Eventually(t, func() bool {
				last := field(s.call("demo", "", "GET", "/v1/environments/"+id+"/deployments", nil, 200), "deployments").([]any)[0]
				task = field(last, "id").(string)
				return field(last, "state") == "completed_w_errors"
			}, 10*time.Second, 5*time.Millisecond)
			reports := field(s.call("demo", "", "GET", "/v1/environments/"+id+"/deployments/"+task, nil, 200), "reports").([]any)
			text := ""
			for _, one := range reports {
				text += field(one, "text").(string) + "\n"
			}
			require.Contains(t, text, c.says)
		})
	}
}
