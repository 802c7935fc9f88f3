package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// categoryResource is a category of the catalog, which administrators make.
type categoryResource struct{ connection }

type categoryModel struct {
	ID   types.String `tfsdk:"id"`
	Name types.String `tfsdk:"name"`
}

func (r *categoryResource) Metadata(_ context.Context, request resource.MetadataRequest, response *resource.MetadataResponse) {
	response.TypeName = request.ProviderTypeName + "_category"
}

func (r *categoryResource) Configure(_ context.Context, request resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	r.take(request.ProviderData)
}

func (r *categoryResource) Schema(_ context.Context, _ resource.SchemaRequest, response *resource.SchemaResponse) {
	response.Schema = schema.Schema{
		Description: "A category of the catalog. Only administrators make them; one that still has packages cannot be deleted.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{Computed: true, Description: "The category's id.", PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()}},
			"name": schema.StringAttribute{Required: true, Description: "Its name. Another one is another category.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()}},
		},
	}
}

func (r *categoryResource) Create(ctx context.Context, request resource.CreateRequest, response *resource.CreateResponse) {
	var wanted categoryModel
	response.Diagnostics.Append(request.Plan.Get(ctx, &wanted)...)
	if response.Diagnostics.HasError() {
		return
	}
	made, err := r.api.Categories().Create(ctx, wanted.Name.ValueString())
	if err != nil {
		refused(&response.Diagnostics, "The category "+wanted.Name.ValueString()+" cannot be made", err)
		return
	}
	wanted.ID = types.StringValue(made.ID)
	response.Diagnostics.Append(response.State.Set(ctx, wanted)...)
}

func (r *categoryResource) Read(ctx context.Context, request resource.ReadRequest, response *resource.ReadResponse) {
	var known categoryModel
	response.Diagnostics.Append(request.State.Get(ctx, &known)...)
	if response.Diagnostics.HasError() {
		return
	}
	list, err := r.api.Categories().List(ctx)
	if err != nil {
		refused(&response.Diagnostics, "The categories cannot be listed", err)
		return
	}
	for _, one := range list {
		if one.ID == known.ID.ValueString() || known.ID.IsNull() && one.Name == known.Name.ValueString() {
			response.Diagnostics.Append(response.State.Set(ctx, categoryModel{ID: types.StringValue(one.ID), Name: types.StringValue(one.Name)})...)
			return
		}
	}
	response.State.RemoveResource(ctx)
}

// Update has nothing to do: each attribute that can be written makes another category.
func (r *categoryResource) Update(context.Context, resource.UpdateRequest, *resource.UpdateResponse) {
}

func (r *categoryResource) Delete(ctx context.Context, request resource.DeleteRequest, response *resource.DeleteResponse) {
	var known categoryModel
	response.Diagnostics.Append(request.State.Get(ctx, &known)...)
	if response.Diagnostics.HasError() {
		return
	}
	if err := r.api.Categories().Delete(ctx, known.ID.ValueString()); err != nil && !gone(err) {
		refused(&response.Diagnostics, "The category "+known.Name.ValueString()+" cannot be deleted", err)
	}
}

func (r *categoryResource) ImportState(ctx context.Context, request resource.ImportStateRequest, response *resource.ImportStateResponse) {
	found, err := r.api.Categories().Get(ctx, request.ID)
	if err != nil {
		refused(&response.Diagnostics, "There is nothing to import", err)
		return
	}
	response.Diagnostics.Append(response.State.SetAttribute(ctx, path.Root("id"), found.ID)...)
}
