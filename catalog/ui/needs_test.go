package ui_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/ui"
)

func TestRequiredFieldsAreTheNeedsOfAnApplication(t *testing.T) {
	definition, problems := ui.Parse("ui.yaml", []byte(`Version: 2.3
Application: {"?": {type: org.example.App}}
Forms:
- servers:
    fields:
    - {name: image, type: image, imageType: linux}
    - {name: other, type: image, imageType: linux}
    - {name: rescue, type: image, imageType: windows, required: false}
    - {name: flavor, type: flavor, requirements: {min_vcpus: 2, min_memory_mb: 2048, min_disk: 20}}
    - {name: spare, type: flavor, required: false}
    - {name: container, type: string, initial: "cloud/web:1"}
    - {name: elsewhere, type: string, initial: "registry.example.org/web:1"}
`))
	require.Empty(t, problems)
	forms, err := definition.Describe(t.Context(), nil)
	require.NoError(t, err)
	needs := ui.NeedsOf(forms, func(name string) bool { return strings.HasPrefix(name, "cloud/") })
	require.Equal(t, ui.Needs{Images: []string{"linux"}, Sizes: []ui.Size{{CPUs: 2, Memory: 2048, Disk: 20}}, Containers: []string{"cloud/web:1"}}, needs)
}
