package provider_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/cmd/terraform-provider-burano/provider"
)

var examples = regexp.MustCompile("(?s)```hcl\n(.*?)```")

func TestTheDocumentedConfigurationFitsTheSchemas(t *testing.T) {
	text, err := os.ReadFile("../../../docs/terraform.md")
	require.NoError(t, err)
	server, err := providerserver.NewProtocol6WithError(provider.New("test")())()
	require.NoError(t, err)
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	require.NoError(t, err)
	kinds := map[string]*tfprotov6.Schema{"provider burano": schemas.Provider}
	for name, schema := range schemas.ResourceSchemas {
		kinds["resource "+name] = schema
		require.Contains(t, string(text), "| `"+name+"` |")
	}
	for name, schema := range schemas.DataSourceSchemas {
		kinds["data "+name] = schema
	}
	meta := map[string]bool{"depends_on": true}
	seen := 0
	for _, example := range examples.FindAllSubmatch(text, -1) {
		file, problems := hclsyntax.ParseConfig(example[1], "docs/terraform.md", hcl.InitialPos)
		require.False(t, problems.HasErrors(), problems.Error())
		for _, block := range file.Body.(*hclsyntax.Body).Blocks {
			if len(block.Labels) == 0 || kinds[block.Type+" "+block.Labels[0]] == nil {
				continue
			}
			seen++
			attributes := map[string]*tfprotov6.SchemaAttribute{}
			for _, one := range kinds[block.Type+" "+block.Labels[0]].Block.Attributes {
				attributes[one.Name] = one
				require.False(t, one.Required && block.Body.Attributes[one.Name] == nil, "%s needs %s", block.Labels[0], one.Name)
			}
			for name := range block.Body.Attributes {
				require.True(t, meta[name] || attributes[name] != nil && (attributes[name].Optional || attributes[name].Required), "%s has no %s", block.Labels[0], name)
			}
		}
	}
	require.Equal(t, 4, seen)
}
