package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/burano/burano/web/client"
)

// kubeconfigSource is the kubeconfig of a cluster, with the rights of the user who asks.
type kubeconfigSource struct{ connection }

type kubeconfigModel struct {
	Environment types.String `tfsdk:"environment"`
	Cluster     types.String `tfsdk:"cluster"`
	Groups      types.List   `tfsdk:"groups"`
	Namespace   types.String `tfsdk:"namespace"`
	Lifetime    types.String `tfsdk:"lifetime"`
	SignIn      types.String `tfsdk:"sign_in"`
	Kubeconfig  types.String `tfsdk:"kubeconfig"`
}

func (s *kubeconfigSource) Metadata(_ context.Context, request datasource.MetadataRequest, response *datasource.MetadataResponse) {
	response.TypeName = request.ProviderTypeName + "_kubeconfig"
}

func (s *kubeconfigSource) Configure(_ context.Context, request datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	s.take(request.ProviderData)
}

func (s *kubeconfigSource) Schema(_ context.Context, _ datasource.SchemaRequest, response *datasource.SchemaResponse) {
	response.Schema = schema.Schema{
		Description: "A kubeconfig of a cluster. Each time it is read another certificate is issued, which stands in the state.",
		Attributes: map[string]schema.Attribute{
			"environment": schema.StringAttribute{Required: true, Description: "The environment's id or name."},
			"cluster":     schema.StringAttribute{Optional: true, Description: "The cluster's name or id; not needed where the environment has one."},
			"groups":      schema.ListAttribute{Optional: true, ElementType: types.StringType, Description: "Groups of Kubernetes; without it those of the caller's roles."},
			"namespace":   schema.StringAttribute{Optional: true, Description: "The namespace that it begins in."},
			"lifetime":    schema.StringAttribute{Optional: true, Description: "How long its certificate holds, such as 8h."},
			"sign_in":     schema.StringAttribute{Optional: true, Description: "certificate, or keystone for one without a certificate, where the cluster has that."},
			"kubeconfig":  schema.StringAttribute{Computed: true, Sensitive: true, Description: "The kubeconfig."},
		},
	}
}

func (s *kubeconfigSource) Read(ctx context.Context, request datasource.ReadRequest, response *datasource.ReadResponse) {
	var wanted kubeconfigModel
	response.Diagnostics.Append(request.Config.Get(ctx, &wanted)...)
	options := client.KubeconfigOptions{Namespace: wanted.Namespace.ValueString(), Lifetime: wanted.Lifetime.ValueString(), SignIn: wanted.SignIn.ValueString()}
	response.Diagnostics.Append(wanted.Groups.ElementsAs(ctx, &options.Groups, true)...)
	if response.Diagnostics.HasError() {
		return
	}
	environment, err := s.api.Environments().Get(ctx, wanted.Environment.ValueString())
	if err != nil {
		refused(&response.Diagnostics, "The cluster's environment cannot be found", err)
		return
	}
	cluster, err := environment.ClusterID(wanted.Cluster.ValueString())
	if err != nil {
		refused(&response.Diagnostics, "The cluster cannot be found", err)
		return
	}
	content, err := s.api.Clusters().Kubeconfig(ctx, environment.ID, cluster, options)
	if err != nil {
		refused(&response.Diagnostics, "There is no kubeconfig of the cluster", err)
		return
	}
	wanted.Kubeconfig = types.StringValue(string(content))
	response.Diagnostics.Append(response.State.Set(ctx, wanted)...)
}
