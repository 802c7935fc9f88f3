// Package provider makes packages, categories and environments of Burano resources of Terraform. It uses the same client of Burano's API as the command
// line, so that credentials, errors and the meaning of a change are the same.
package provider

import (
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/burano/burano/web/client"
)

// New makes the provider for the plugin server.
func New(version string) func() provider.Provider {
	return func() provider.Provider { return &burano{version: version} }
}

type burano struct{ version string }

type settings struct {
	Cloud types.String `tfsdk:"cloud"`
	URL   types.String `tfsdk:"url"`
}

func (b *burano) Metadata(_ context.Context, _ provider.MetadataRequest, response *provider.MetadataResponse) {
	response.TypeName, response.Version = "burano", b.version
}

func (b *burano) Schema(_ context.Context, _ provider.SchemaRequest, response *provider.SchemaResponse) {
	response.Schema = schema.Schema{
		Description: "Applications and Kubernetes clusters on OpenStack, by Burano. Credentials are those of an entry of clouds.yaml, or of the variables OS_*, as openstack reads them: passwords, tokens, application credentials, and OpenID providers (v3oidcclientcredentials, v3oidcaccesstoken and others).",
		Attributes: map[string]schema.Attribute{
			"cloud": schema.StringAttribute{Optional: true, Description: "The entry of clouds.yaml; without it OS_CLOUD, or the other variables OS_*."},
			"url":   schema.StringAttribute{Optional: true, Description: "Where Burano answers; without it BURANO_URL, or what Keystone's catalog has for application-catalog."},
		},
	}
}

func (b *burano) Configure(ctx context.Context, request provider.ConfigureRequest, response *provider.ConfigureResponse) {
	var wanted settings
	response.Diagnostics.Append(request.Config.Get(ctx, &wanted)...)
	if response.Diagnostics.HasError() {
		return
	}
	if wanted.Cloud.IsUnknown() || wanted.URL.IsUnknown() {
		response.Diagnostics.AddError("Burano's address is not known yet", "cloud and url of the provider must be known when a plan is made: write them down, or leave them out and set OS_CLOUD and BURANO_URL.")
		return
	}
	cloud, url := wanted.Cloud.ValueString(), wanted.URL.ValueString()
	if cloud == "" {
		cloud = os.Getenv("OS_CLOUD")
	}
	if url == "" {
		url = os.Getenv("BURANO_URL")
	}
	api, err := client.Connect(ctx, cloud, url)
	if err != nil {
		response.Diagnostics.AddError("Burano cannot be asked", err.Error())
		return
	}
	response.ResourceData, response.DataSourceData = api, api
}

func (b *burano) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		func() resource.Resource { return &environmentResource{} },
		func() resource.Resource { return &packageResource{} },
		func() resource.Resource { return &categoryResource{} },
	}
}

func (b *burano) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{func() datasource.DataSource { return &kubeconfigSource{} }}
}

// connection is the client that the provider gives to resources and data sources.
type connection struct{ api *client.Client }

func (c *connection) take(data any) {
	if api, ok := data.(*client.Client); ok { // nil as long as the provider is not configured
		c.api = api
	}
}

// refused reports an error.
func refused(diagnostics *diag.Diagnostics, summary string, err error) {
	diagnostics.AddError(summary, err.Error())
}
