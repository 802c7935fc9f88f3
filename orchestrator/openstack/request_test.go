package openstack

import (
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/stretchr/testify/require"
)

func TestARequestHasTheFilesThatAreGivenAndNoOthers(t *testing.T) {
	template := map[string]any{"resources": map[string]any{"one": map[string]any{"type": "/etc/hostname", "properties": map[string]any{
		"user_data": map[string]any{"get_file": "/etc/passwd"}}}}}
	body, err := request{Content: Content{Template: template}, name: "s"}.ToStackCreateMap()
	require.NoError(t, err)
	require.Equal(t, map[string]any{"template": template, "stack_name": "s", "disable_rollback": true, "tags": OwnTag}, body)

	body, err = request{Content{Template: template, Parameters: map[string]any{"p": 1}, Files: map[string]string{"f": "text"}, Environment: "parameters: {}"},
		"s", 7}.ToStackUpdateMap()
	require.NoError(t, err)
	require.Equal(t, map[string]any{"template": template, "tags": OwnTag, "parameters": map[string]any{"p": 1}, "files": map[string]string{"f": "text"},
		"environment": "parameters: {}", "timeout_mins": 7}, body)
}

func TestTheRegionIsWhereTheFirstHeatIs(t *testing.T) {
	endpoint := func(face, region string) tokens.Endpoint { return tokens.Endpoint{Interface: face, Region: region} }
	require.Equal(t, "one", regionOf(&tokens.ServiceCatalog{Entries: []tokens.CatalogEntry{
		{Type: "compute", Endpoints: []tokens.Endpoint{endpoint("public", "zero")}},
		{Type: "orchestration", Endpoints: []tokens.Endpoint{endpoint("internal", "zero"), endpoint("public", "one"), endpoint("public", "two")}},
	}}))
	require.Empty(t, regionOf(&tokens.ServiceCatalog{}))
}
