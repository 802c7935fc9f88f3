package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/burano/burano/web/client"
)

// packageResource is a package of the catalog, from a folder, a zip or a URL.
type packageResource struct{ connection }

type packageModel struct {
	ID         types.String `tfsdk:"id"`
	Name       types.String `tfsdk:"name"`
	Path       types.String `tfsdk:"path"`
	Public     types.Bool   `tfsdk:"public"`
	Enabled    types.Bool   `tfsdk:"enabled"`
	Categories types.Set    `tfsdk:"categories"`
	Tags       types.Set    `tfsdk:"tags"`
}

func (r *packageResource) Metadata(_ context.Context, request resource.MetadataRequest, response *resource.MetadataResponse) {
	response.TypeName = request.ProviderTypeName + "_package"
}

func (r *packageResource) Configure(_ context.Context, request resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	r.take(request.ProviderData)
}

func (r *packageResource) Schema(_ context.Context, _ resource.SchemaRequest, response *resource.SchemaResponse) {
	response.Schema = schema.Schema{
		Description: "A package of the project in the catalog. Packages that it requires and that the catalog does not have are uploaded with it, and stay when it goes.",
		Attributes: map[string]schema.Attribute{
			"id":         schema.StringAttribute{Computed: true, Description: "The package's id, another one when its files are others."},
			"name":       schema.StringAttribute{Computed: true, Description: "Its full name, as its manifest says."},
			"path":       schema.StringAttribute{Required: true, Description: "A folder, a zip, or the URL of a zip. When its files are others than the catalog's, they are uploaded."},
			"public":     schema.BoolAttribute{Optional: true, Computed: true, Default: booldefault.StaticBool(false), Description: "Whether other projects see it."},
			"enabled":    schema.BoolAttribute{Optional: true, Computed: true, Default: booldefault.StaticBool(true), Description: "Whether it can be deployed."},
			"categories": schema.SetAttribute{Optional: true, ElementType: types.StringType, Description: "Its categories; without it those that it has stay."},
			"tags":       schema.SetAttribute{Optional: true, ElementType: types.StringType, Description: "Its tags besides those of its manifest; without it those that it has stay."},
		},
	}
}

// plan compares the wanted packages with the catalog. The plan of the package itself comes last, after the packages that it requires.
func (r *packageResource) plan(ctx context.Context, m packageModel) ([]*client.Planned, error) {
	file := client.PackageFile{Path: m.Path.ValueString(), Public: m.Public.ValueBoolPointer(), Enabled: m.Enabled.ValueBoolPointer()}
	for into, from := range map[*[]string]types.Set{&file.Categories: m.Categories, &file.Tags: m.Tags} {
		if !from.IsNull() {
			*into = []string{}
			if diagnostics := from.ElementsAs(ctx, into, false); diagnostics.HasError() {
				return nil, fmt.Errorf("%v", diagnostics)
			}
		}
	}
	plans, err := r.api.Documents().Plan(ctx, client.NewFinder(""), []client.Document{{Kind: client.KindPackage, Name: file.Path, Package: &file}})
	if err == nil && len(plans) == 0 {
		err = fmt.Errorf("%s is no package", file.Path)
	}
	return plans, err
}

// ModifyPlan checks whether the files differ from the catalog's files.
func (r *packageResource) ModifyPlan(ctx context.Context, request resource.ModifyPlanRequest, response *resource.ModifyPlanResponse) {
	if request.Plan.Raw.IsNull() || request.State.Raw.IsNull() || r.api == nil {
		return
	}
	var known, wanted packageModel
	response.Diagnostics.Append(request.State.Get(ctx, &known)...)
	response.Diagnostics.Append(request.Plan.Get(ctx, &wanted)...)
	if response.Diagnostics.HasError() || wanted.Path.IsUnknown() || wanted.Categories.IsUnknown() || wanted.Tags.IsUnknown() {
		return
	}
	plans, err := r.plan(ctx, wanted)
	if err != nil {
		response.Diagnostics.AddAttributeError(path.Root("path"), "The package cannot be compared with the catalog", err.Error())
		return
	}
	own := plans[len(plans)-1]
	id := types.StringUnknown()
	if own.Change == "" {
		id = known.ID
	}
	response.Diagnostics.Append(response.Plan.SetAttribute(ctx, path.Root("id"), id)...)
	response.Diagnostics.Append(response.Plan.SetAttribute(ctx, path.Root("name"), own.Name)...)
	if own.Name != known.Name.ValueString() {
		response.RequiresReplace = append(response.RequiresReplace, path.Root("path"))
	}
}

// apply changes the catalog to the wanted state, and returns the catalog's state.
func (r *packageResource) apply(ctx context.Context, wanted packageModel, isNew bool) (packageModel, error) {
	plans, err := r.plan(ctx, wanted)
	if err != nil {
		return wanted, err
	}
	name := plans[len(plans)-1].Name
	if isNew {
		if has, err := r.api.Packages().List(ctx, map[string][]string{"owned": {"true"}, "include_disabled": {"true"}, "fqn": {name}}); err != nil {
			return wanted, err
		} else if len(has) > 0 {
			return wanted, fmt.Errorf("the project has a package %s already, which was not made by this configuration and stays as it is: import it (terraform import … %s)", name, name)
		}
	}
	for _, one := range plans {
		if err := one.Apply(ctx); err != nil {
			return wanted, err
		}
	}
	made, err := r.api.Packages().Get(ctx, name)
	wanted.ID, wanted.Name = types.StringValue(made.ID), types.StringValue(name)
	return wanted, err
}

func (r *packageResource) Create(ctx context.Context, request resource.CreateRequest, response *resource.CreateResponse) {
	var wanted packageModel
	response.Diagnostics.Append(request.Plan.Get(ctx, &wanted)...)
	if response.Diagnostics.HasError() {
		return
	}
	made, err := r.apply(ctx, wanted, true)
	if err != nil {
		refused(&response.Diagnostics, "The package "+wanted.Path.ValueString()+" cannot be uploaded", err)
		return
	}
	response.Diagnostics.Append(response.State.Set(ctx, made)...)
}

func (r *packageResource) Read(ctx context.Context, request resource.ReadRequest, response *resource.ReadResponse) {
	var known packageModel
	response.Diagnostics.Append(request.State.Get(ctx, &known)...)
	if response.Diagnostics.HasError() {
		return
	}
	own, err := r.api.Packages().List(ctx, map[string][]string{"owned": {"true"}, "include_disabled": {"true"}, "fqn": {known.Name.ValueString()}})
	if err != nil {
		refused(&response.Diagnostics, "The package "+known.Name.ValueString()+" cannot be read", err)
		return
	}
	if len(own) == 0 {
		response.State.RemoveResource(ctx)
		return
	}
	known.ID, known.Public, known.Enabled = types.StringValue(own[0].ID), types.BoolValue(own[0].Public), types.BoolValue(own[0].Enabled)
	response.Diagnostics.Append(response.State.Set(ctx, known)...)
}

func (r *packageResource) Update(ctx context.Context, request resource.UpdateRequest, response *resource.UpdateResponse) {
	var wanted packageModel
	response.Diagnostics.Append(request.Plan.Get(ctx, &wanted)...)
	if response.Diagnostics.HasError() {
		return
	}
	made, err := r.apply(ctx, wanted, false)
	if err != nil {
		refused(&response.Diagnostics, "The package "+wanted.Name.ValueString()+" cannot be changed", err)
		return
	}
	response.Diagnostics.Append(response.State.Set(ctx, made)...)
}

func (r *packageResource) Delete(ctx context.Context, request resource.DeleteRequest, response *resource.DeleteResponse) {
	var known packageModel
	response.Diagnostics.Append(request.State.Get(ctx, &known)...)
	if response.Diagnostics.HasError() {
		return
	}
	if err := r.api.Packages().Delete(ctx, known.ID.ValueString()); err != nil && !gone(err) {
		refused(&response.Diagnostics, "The package "+known.Name.ValueString()+" cannot be deleted", err)
	}
}

func (r *packageResource) ImportState(ctx context.Context, request resource.ImportStateRequest, response *resource.ImportStateResponse) {
	found, err := r.api.Packages().Get(ctx, request.ID)
	if err != nil {
		refused(&response.Diagnostics, "There is nothing to import", err)
		return
	}
	response.Diagnostics.Append(response.State.SetAttribute(ctx, path.Root("id"), found.ID)...)
	response.Diagnostics.Append(response.State.SetAttribute(ctx, path.Root("name"), found.FullName)...)
}
