package provider

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/burano/burano/web/client"
)

// environmentResource is an environment with its applications, deployed.
type environmentResource struct{ connection }

type environmentModel struct {
	ID              types.String         `tfsdk:"id"`
	Name            types.String         `tfsdk:"name"`
	Region          types.String         `tfsdk:"region"`
	DefaultNetworks jsontypes.Normalized `tfsdk:"default_networks"`
	Applications    jsontypes.Normalized `tfsdk:"applications"`
	AllowDestroy    types.List           `tfsdk:"allow_destroy"`
	Protected       types.Bool           `tfsdk:"deletion_protection"`
	Status          types.String         `tfsdk:"status"`
	Preview         types.String         `tfsdk:"preview"`
}

// previewKey is the key of the private state with the Plan of the preview, as JSON.
const previewKey = "preview"

// Statuses of environments, as Murano names them.
const (
	statusReady     = "ready"
	statusDeploying = "deploying"
	statusPending   = "pending" // it has an open draft
)

func (r *environmentResource) Metadata(_ context.Context, request resource.MetadataRequest, response *resource.MetadataResponse) {
	response.TypeName = request.ProviderTypeName + "_environment"
}

func (r *environmentResource) Configure(_ context.Context, request resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	r.take(request.ProviderData)
}

func (r *environmentResource) Schema(_ context.Context, _ resource.SchemaRequest, response *resource.SchemaResponse) {
	once := []planmodifier.String{stringplanmodifier.RequiresReplaceIf(elsewhere, "Another value is another environment.", "Another value is another environment.")}
	response.Schema = schema.Schema{
		Description: "An environment with its applications, such as a Kubernetes cluster. It is deployed when it is made, and again when its applications are others than before, here or by somebody else.",
		Attributes: map[string]schema.Attribute{
			"id":   schema.StringAttribute{Computed: true, Description: "The environment's id.", PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()}},
			"name": schema.StringAttribute{Required: true, Description: "Its name, which no other environment of the project has. It may be changed."},
			"region": schema.StringAttribute{Optional: true, Description: "The region of the cloud; the server's own without it. In another one it is another environment. One that is there keeps its own.",
				PlanModifiers: once},
			"default_networks": schema.StringAttribute{Optional: true, CustomType: jsontypes.NormalizedType{}, PlanModifiers: once,
				Description: "JSON: the networks of servers that name none, as defaultNetworks of Murano's API; a network of its own without it. One that is there keeps its own."},
			"applications": schema.StringAttribute{Required: true, CustomType: jsontypes.NormalizedType{},
				Description: "JSON: a list of applications, as in the files of burano deploy. Ids of objects may be any readable words; they stay the same objects as long as the words do."},
			"allow_destroy": schema.ListAttribute{Optional: true, ElementType: types.StringType,
				Description: "Names of applications or servers that a change of applications may delete although there is data on them; without it such a change is refused."},
			"deletion_protection": schema.BoolAttribute{Optional: true, Computed: true, Default: booldefault.StaticBool(true),
				Description: "Whether the environment refuses to be deleted, with its servers and volumes. True unless said otherwise."},
			"status":  schema.StringAttribute{Computed: true, Description: "What came of the newest deployment: ready, or deploy failure."},
			"preview": schema.StringAttribute{Computed: true, Description: "Identifies the effects of the last change of applications, as its plan listed them. A plan whose effects are others by now is not applied."},
		},
	}
}

// elsewhere is true if the wanted place of an environment needs a new environment. An unknown place, as after an import, does not need one.
func elsewhere(ctx context.Context, request planmodifier.StringRequest, response *stringplanmodifier.RequiresReplaceIfFuncResponse) {
	known, wanted := request.StateValue.ValueString(), request.PlanValue.ValueString()
	switch {
	case request.PlanValue.IsUnknown():
		response.RequiresReplace = known != ""
	case wanted == "" || known == wanted:
	case known == "":
		response.Diagnostics.AddAttributeWarning(request.Path, "The environment keeps what it has", "It is there already, and this is only read when an environment is made.")
	default:
		same, diagnostics := jsontypes.NewNormalizedValue(known).StringSemanticEquals(ctx, jsontypes.NewNormalizedValue(wanted))
		response.RequiresReplace = diagnostics.HasError() || !same // a region is no JSON, and another one is another one
	}
}

// ModifyPlan deploys failed applications again, and reports before any change why that is impossible.
//
// Terraform plans a second time when it applies, and then knows the state and not the first plan's private data. So the effects are in an attribute, which Terraform compares
// between both plans, and in the private data, which Update gets of the second one.
func (r *environmentResource) ModifyPlan(ctx context.Context, request resource.ModifyPlanRequest, response *resource.ModifyPlanResponse) {
	if request.Plan.Raw.IsNull() || request.State.Raw.IsNull() {
		return
	}
	var known, wanted environmentModel
	response.Diagnostics.Append(request.State.Get(ctx, &known)...)
	response.Diagnostics.Append(request.Plan.Get(ctx, &wanted)...)
	if response.Diagnostics.HasError() {
		return
	}
	will := func(status, preview types.String) {
		response.Diagnostics.Append(response.Plan.SetAttribute(ctx, path.Root("status"), status)...)
		response.Diagnostics.Append(response.Plan.SetAttribute(ctx, path.Root("preview"), preview)...)
	}
	if !wanted.Applications.IsUnknown() && known.Status.ValueString() == statusReady {
		same, diagnostics := known.Applications.StringSemanticEquals(ctx, wanted.Applications)
		response.Diagnostics.Append(diagnostics...)
		if same {
			will(known.Status, known.Preview)
			return
		}
	}
	will(types.StringUnknown(), types.StringUnknown())
	shown := ""
	if !wanted.Applications.IsUnknown() && r.api != nil {
		shown = r.preview(ctx, known, wanted, &response.Diagnostics)
	}
	if shown != "" {
		will(types.StringUnknown(), types.StringValue(fmt.Sprintf("%x", sha256.Sum256([]byte(shown)))))
	}
	private, err := json.Marshal(shown)
	if err != nil {
		response.Diagnostics.AddError("The plan cannot be kept", err.Error())
		return
	}
	response.Diagnostics.Append(response.Private.SetKey(ctx, previewKey, private)...)
}

// preview reports the effects of a change, and returns the Plan of the preview; "" where there is none.
func (r *environmentResource) preview(ctx context.Context, known, wanted environmentModel, diagnostics *diag.Diagnostics) string {
	wanted.Name = known.Name // an update renames the environment before it deploys
	file, err := wanted.file()
	if err != nil {
		diagnostics.AddAttributeError(path.Root("applications"), "The applications cannot be read", err.Error())
		return ""
	}
	preview, err := r.api.Files().Preview(ctx, known.ID.ValueString(), file)
	if err != nil { // an obstacle may be gone when the plan is applied; apply reports it otherwise
		diagnostics.AddAttributeWarning(path.Root("applications"), "The effects of the change are not known", err.Error())
		return ""
	}
	var allowed []string
	if !wanted.AllowDestroy.IsUnknown() {
		diagnostics.Append(wanted.AllowDestroy.ElementsAs(ctx, &allowed, false)...)
	} else { // as the deployment will find out
		for _, one := range preview.Consents {
			allowed = append(allowed, one.ObjectID)
		}
	}
	if err := preview.Err(allowed...); err != nil {
		diagnostics.AddAttributeError(path.Root("applications"), "The applications cannot be deployed", err.Error())
	}
	for _, loss := range preview.Losses {
		diagnostics.AddAttributeWarning(path.Root("applications"), "A "+loss.Kind+" is deleted",
			fmt.Sprintf("The %s of %s (%s) goes, with all that is on it. Names in allow_destroy say that it may.", loss.Kind, loss.Object, loss.CloudID))
	}
	for _, sentence := range preview.Means {
		diagnostics.AddAttributeWarning(path.Root("applications"), "What the change means", sentence)
	}
	return preview.Plan
}

// file is the environment in the form that Burano's client deploys.
func (m environmentModel) file() (client.EnvironmentFile, error) {
	file := client.EnvironmentFile{Name: m.Name.ValueString(), Region: m.Region.ValueString()}
	if err := json.Unmarshal([]byte(m.Applications.ValueString()), &file.Applications); err != nil {
		return file, fmt.Errorf("a list of applications is wanted, as jsonencode([…]) writes it: %w", err)
	}
	for i, application := range file.Applications {
		header, ok := application["?"].(map[string]any)
		if !ok || header["type"] == nil {
			return file, fmt.Errorf("applications[%d] does not say what it is: it needs \"?\" = { type = …, id = … }", i)
		}
	}
	if networks := m.DefaultNetworks.ValueString(); networks != "" {
		if err := json.Unmarshal([]byte(networks), &file.DefaultNetworks); err != nil {
			return file, fmt.Errorf("default_networks is no object: %w", err)
		}
	}
	return file, nil
}

func (r *environmentResource) Create(ctx context.Context, request resource.CreateRequest, response *resource.CreateResponse) {
	var wanted environmentModel
	response.Diagnostics.Append(request.Plan.Get(ctx, &wanted)...)
	if response.Diagnostics.HasError() {
		return
	}
	name := wanted.Name.ValueString()
	switch has, err := r.api.Environments().Get(ctx, name); {
	case err == nil:
		response.Diagnostics.AddAttributeError(path.Root("name"), "There is an environment "+name+" already",
			fmt.Sprintf("It was not made by this configuration and stays as it is. Import it (terraform import … %s), or choose another name.", has.ID))
		return
	case !gone(err):
		refused(&response.Diagnostics, "The environment "+name+" cannot be looked for", err)
		return
	}
	file, err := wanted.file()
	if err != nil {
		response.Diagnostics.AddAttributeError(path.Root("applications"), "The applications cannot be read", err.Error())
		return
	}
	id, err := r.api.Files().DeployNew(ctx, file)
	if err != nil {
		refused(&response.Diagnostics, "The environment "+name+" cannot be deployed", err)
	}
	if id == "" {
		return
	}
	// It is there from now on, whatever comes of its deployment.
	wanted.ID, wanted.Status, wanted.Preview = types.StringValue(id), types.StringValue(statusDeploying), types.StringNull()
	response.Diagnostics.Append(response.State.Set(ctx, wanted)...)
	if response.Diagnostics.HasError() {
		return
	}
	wanted.Status = r.await(ctx, wanted, &response.Diagnostics)
	response.Diagnostics.Append(response.State.Set(ctx, wanted)...)
}

// redeploy begins to deploy the wanted state of an existing environment, and returns whether it began. shown is the Plan of the preview, "" for none: the deployment has no other
// effects.
func (r *environmentResource) redeploy(ctx context.Context, wanted environmentModel, shown string, diagnostics *diag.Diagnostics) bool {
	file, err := wanted.file()
	if err != nil {
		diagnostics.AddAttributeError(path.Root("applications"), "The applications cannot be read", err.Error())
		return false
	}
	var allowed []string
	diagnostics.Append(wanted.AllowDestroy.ElementsAs(ctx, &allowed, false)...)
	if diagnostics.HasError() {
		return false
	}
	if err := r.api.Files().DeployIntoShown(ctx, wanted.ID.ValueString(), file, shown, allowed...); err != nil {
		refused(diagnostics, "The environment "+file.Name+" cannot be deployed", err)
		return false
	}
	return true
}

// await waits for the newest deployment and returns the environment's status; a deployment that failed is an error with the reports about the cause.
func (r *environmentResource) await(ctx context.Context, wanted environmentModel, diagnostics *diag.Diagnostics) types.String {
	id, name := wanted.ID.ValueString(), wanted.Name.ValueString()
	newest, err := r.api.Deployments().Newest(ctx, id)
	if err != nil {
		refused(diagnostics, "The deployment of "+name+" cannot be followed", err)
		return types.StringValue(statusDeploying)
	}
	state, err := r.api.Deployments().Follow(ctx, newest.ID, func(client.Event) error { return nil })
	if err != nil {
		refused(diagnostics, "The deployment of "+name+" goes on, and cannot be followed", err)
		return types.StringValue(statusDeploying)
	}
	if client.Succeeded(state) {
		return types.StringValue(statusReady)
	}
	var said []string
	reports, err := r.api.Deployments().Reports(ctx, id, newest.ID)
	for _, report := range reports {
		if report.Level == "error" {
			said = append(said, report.Text)
		}
	}
	if err != nil {
		said = append(said, err.Error())
	}
	diagnostics.AddError("The deployment of "+name+" ended as "+state,
		strings.Join(append(said, "What was made stays. The next apply deploys it again; where this was the first one, say first that it is to stay: terraform untaint."), "\n"))
	return types.StringValue("deploy failure")
}

func (r *environmentResource) Read(ctx context.Context, request resource.ReadRequest, response *resource.ReadResponse) {
	var known environmentModel
	response.Diagnostics.Append(request.State.Get(ctx, &known)...)
	if response.Diagnostics.HasError() {
		return
	}
	found, err := r.api.Environments().Get(ctx, known.ID.ValueString())
	if gone(err) {
		response.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		refused(&response.Diagnostics, "The environment "+known.Name.ValueString()+" cannot be read", err)
		return
	}
	known.Name, known.Status = types.StringValue(found.Name), types.StringValue(found.Status)
	if found.Status == statusPending { // another user's draft changes nothing that runs
		known.Status = types.StringValue(statusReady)
	}
	if known.Protected.IsNull() { // it is being imported
		known.Protected = types.BoolValue(true)
	}
	if r.differs(ctx, known) {
		model, err := json.Marshal(found.Services)
		if err != nil {
			refused(&response.Diagnostics, "The applications of "+found.Name+" cannot be written down", err)
			return
		}
		known.Applications = jsontypes.NewNormalizedValue(string(model))
	}
	response.Diagnostics.Append(response.State.Set(ctx, known)...)
}

// differs is true if the applications differ from the applied ones.
func (r *environmentResource) differs(ctx context.Context, known environmentModel) bool {
	if known.Applications.IsNull() {
		return true
	}
	file, err := known.file()
	if err != nil {
		return true
	}
	preview, err := r.api.Files().Preview(ctx, known.ID.ValueString(), file)
	return err == nil && len(preview.Changes) > 0 // during a deployment there is no preview
}

func (r *environmentResource) Update(ctx context.Context, request resource.UpdateRequest, response *resource.UpdateResponse) {
	var known, wanted environmentModel
	response.Diagnostics.Append(request.State.Get(ctx, &known)...)
	response.Diagnostics.Append(request.Plan.Get(ctx, &wanted)...)
	if response.Diagnostics.HasError() {
		return
	}
	if !wanted.Name.Equal(known.Name) {
		if err := r.api.Environments().Rename(ctx, known.ID.ValueString(), wanted.Name.ValueString()); err != nil {
			refused(&response.Diagnostics, "The environment "+known.Name.ValueString()+" cannot be renamed", err)
			return
		}
		known.Name = wanted.Name
		response.Diagnostics.Append(response.State.Set(ctx, known)...)
	}
	wanted.ID = known.ID
	if wanted.Preview.IsUnknown() {
		wanted.Preview = types.StringNull()
	}
	if wanted.Status.IsUnknown() {
		private, diagnostics := request.Private.GetKey(ctx, previewKey)
		response.Diagnostics.Append(diagnostics...)
		var shown string
		if len(private) > 0 {
			if err := json.Unmarshal(private, &shown); err != nil {
				response.Diagnostics.AddError("The plan cannot be read", "Plan again, and apply that: "+err.Error())
			}
		}
		if response.Diagnostics.HasError() || !r.redeploy(ctx, wanted, shown, &response.Diagnostics) {
			return
		}
		wanted.Status = types.StringValue(statusDeploying)
		response.Diagnostics.Append(response.State.Set(ctx, wanted)...)
		wanted.Status = r.await(ctx, wanted, &response.Diagnostics)
	}
	response.Diagnostics.Append(response.State.Set(ctx, wanted)...)
}

func (r *environmentResource) Delete(ctx context.Context, request resource.DeleteRequest, response *resource.DeleteResponse) {
	var known environmentModel
	response.Diagnostics.Append(request.State.Get(ctx, &known)...)
	if response.Diagnostics.HasError() {
		return
	}
	name := known.Name.ValueString()
	if known.Protected.ValueBool() {
		response.Diagnostics.AddAttributeError(path.Root("deletion_protection"), "The environment "+name+" is protected",
			"Nothing was deleted. To delete it with its servers and volumes, set deletion_protection = false and apply that first. "+
				"Where a failed deployment has marked it to be made anew, say that it is to stay: terraform untaint.")
		return
	}
	id := known.ID.ValueString()
	err := r.api.Environments().Delete(ctx, id, false)
	if err == nil {
		err = r.api.Environments().WaitDeleted(ctx, id)
	}
	if err != nil && !gone(err) {
		refused(&response.Diagnostics, "The environment "+name+" cannot be deleted", err)
	}
}

func (r *environmentResource) ImportState(ctx context.Context, request resource.ImportStateRequest, response *resource.ImportStateResponse) {
	found, err := r.api.Environments().Get(ctx, request.ID)
	if err != nil {
		refused(&response.Diagnostics, "There is nothing to import", err)
		return
	}
	response.Diagnostics.Append(response.State.SetAttribute(ctx, path.Root("id"), found.ID)...)
	response.Diagnostics.Append(response.State.SetAttribute(ctx, path.Root("name"), found.Name)...)
}

// gone is true if the answer is 404.
func gone(err error) bool { return client.IsStatus(err, http.StatusNotFound) }
