package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/burano/burano/catalog"
)

// Planned is the effect of applying a document.
type Planned struct {
	Kind string
	Name string
	// Change is added, changed, or "" where nothing differs from the document.
	Change string
	// Values are what would be other than it is: of packages also the files, by digests of their contents. Things that are added have none.
	Values []Value
	// Preview is that of an environment.
	Preview *Preview
	// EnvironmentID is that of an environment which is there, and after Apply of each.
	EnvironmentID string

	apply func(ctx context.Context) error
}

const (
	added   = "added"
	changed = "changed"
)

// Apply carries out the plans.
func (p *Planned) Apply(ctx context.Context) error {
	if p.Change == "" {
		return nil
	}
	if err := p.apply(ctx); err != nil {
		return fmt.Errorf("%s %s: %w", p.Kind, p.Name, err)
	}
	return nil
}

// Documents are the calls that apply documents: plans, and the record of applied things.
type Documents struct{ client *Client }

// Documents returns the calls that apply documents.
func (c *Client) Documents() Documents { return Documents{c} }

// Plan compares documents with the project. Nothing is done, but drafts of environments are made and dropped. The plans come in the order
// in which they can be applied: quotas, packages with those that they require and the catalog does not have, templates, environments.
// allowDestroy is as for Sessions.Deploy.
func (c Documents) Plan(ctx context.Context, finder Finder, documents []Document, allowDestroy ...string) ([]*Planned, error) {
	project, err := c.client.Projects().own(ctx)
	if err != nil {
		return nil, err
	}
	packages, err := c.planPackages(ctx, finder, documents)
	if err != nil {
		return nil, err
	}
	plans := map[string][]*Planned{KindPackage: packages}
	newPackages := slices.ContainsFunc(packages, func(p *Planned) bool { return p.Change != "" })
	for _, one := range documents {
		var planned *Planned
		var err error
		switch {
		case one.Quota != nil:
			planned, err = c.planQuota(ctx, *one.Quota, project)
		case one.Template != nil:
			planned, err = c.planTemplate(ctx, *one.Template, project)
		case one.Environment != nil:
			planned, err = c.planEnvironment(ctx, one, newPackages, allowDestroy)
		default:
			continue
		}
		if err != nil {
			return nil, located(one, err)
		}
		plans[one.Kind] = append(plans[one.Kind], planned)
	}
	return slices.Concat(plans[KindQuota], plans[KindPackage], plans[KindTemplate], plans[KindEnvironment]), nil
}

// atPlace is an error that begins with a place already.
type atPlace struct{ error }

// located has an error begin with where its document is.
func located(document Document, err error) error {
	if errors.As(err, &atPlace{}) {
		return err
	}
	return atPlace{fmt.Errorf("%s: %s: %w", document.Place(""), strings.TrimSpace(document.Kind+" "+document.Name), err)}
}

func (c Documents) planQuota(ctx context.Context, wanted QuotaFile, own string) (*Planned, error) {
	project := wanted.Project
	if project == "" {
		project = own
	}
	found, err := c.client.Projects().Quotas(ctx, project)
	if err != nil {
		return nil, err
	}
	planned := &Planned{Kind: KindQuota, Name: project}
	limits := map[string]int64{}
	for _, resource := range slices.Sorted(maps.Keys(wanted.Limits)) {
		limit, there := found.Quotas[resource], int64(wanted.Limits[resource])
		if _, known := found.Quotas[resource]; !known {
			return nil, fmt.Errorf("there is no quota of %q: there are those of %s", resource, strings.Join(slices.Sorted(maps.Keys(found.Quotas)), ", "))
		}
		if limit.Default || limit.Limit != there {
			limits[resource] = there
			planned.Values = append(planned.Values, Value{Name: resource, Before: limit.Limit, After: there})
		}
	}
	if len(limits) > 0 {
		planned.Change = changed
		planned.apply = func(ctx context.Context) error {
			_, err := c.client.Projects().SetQuotas(ctx, project, limits)
			return err
		}
	}
	return planned, nil
}

func (c Documents) planPackages(ctx context.Context, finder Finder, documents []Document) ([]*Planned, error) {
	described, asked := map[string]Document{}, []LocalPackage{}
	for _, one := range documents {
		if one.Package == nil {
			continue
		}
		found, err := finder.Find(ctx, one.Package.Path)
		if err != nil {
			return nil, atPlace{fmt.Errorf("%s: %w", one.Place("path"), err)}
		}
		if other, twice := described[found.Name()]; twice {
			return nil, fmt.Errorf("%s and %s are both the package %s", other.Place(""), one.Place(""), found.Name())
		}
		described[found.Name()] = one
		asked = append(asked, found)
	}
	ordered, err := finder.WithRequired(ctx, asked, c.client.Packages().Has)
	if err != nil {
		return nil, err
	}
	var plans []*Planned
	for _, one := range ordered {
		document, named := described[one.Name()]
		if !named { // the catalog does not have it
			document = Document{Kind: KindPackage, Name: one.Name(), File: one.From, Package: &PackageFile{}}
		}
		planned, err := c.planPackage(ctx, *document.Package, one)
		if err != nil {
			return nil, located(document, err)
		}
		plans = append(plans, planned)
	}
	return plans, nil
}

func (c Documents) planPackage(ctx context.Context, wanted PackageFile, local LocalPackage) (*Planned, error) {
	planned := &Planned{Kind: KindPackage, Name: local.Name()}
	own, err := c.client.Packages().List(ctx, url.Values{"owned": {"true"}, "include_disabled": {"true"}, "fqn": {local.Name()}})
	if err != nil {
		return nil, err
	}
	options := UploadOptions{Categories: wanted.Categories, Tags: wanted.Tags}
	if wanted.Public != nil {
		options.Public = *wanted.Public
	}
	disable := func(ctx context.Context, id string) error {
		_, err := c.client.Packages().Update(ctx, id, PackageChange{"enabled", false})
		return err
	}
	if len(own) == 0 {
		planned.Change = added
		planned.apply = func(ctx context.Context) error {
			err := c.client.Packages().Upload(ctx, local.Name(), local.Zip, options)
			if err != nil || wanted.Enabled == nil || *wanted.Enabled {
				return err
			}
			made, err := c.client.Packages().Get(ctx, local.Name())
			if err != nil {
				return err
			}
			return disable(ctx, made.ID)
		}
		return planned, nil
	}
	there := own[0]
	zip, err := c.client.Packages().Download(ctx, there.ID)
	if err != nil {
		return nil, err
	}
	former, err := catalog.ReadZip(bytes.NewReader(zip), int64(len(zip)))
	if err != nil {
		return nil, fmt.Errorf("read what the catalog has: %w", err)
	}
	files, err := changedFiles(former, local.Package)
	if err != nil {
		return nil, err
	}
	if wanted.Public == nil {
		options.Public = there.Public
	}
	if wanted.Categories == nil {
		options.Categories = there.Categories
	}
	if wanted.Tags == nil { // those that somebody has given it besides its manifest's
		options.Tags = slices.DeleteFunc(slices.Clone(there.Tags), func(tag string) bool { return slices.Contains(former.Tags(), tag) })
	}
	enabled := there.Enabled
	if wanted.Enabled != nil {
		enabled = *wanted.Enabled
	}
	var changes []PackageChange
	differ := func(field string, before, after any) {
		if !reflect.DeepEqual(before, after) {
			planned.Values = append(planned.Values, Value{Name: field, Before: before, After: after})
			changes = append(changes, PackageChange{field, after})
		}
	}
	differ("is_public", there.Public, options.Public)
	differ("enabled", there.Enabled, enabled)
	differ("categories", set(there.Categories), set(options.Categories))
	if wanted.Tags != nil {
		differ("tags", set(there.Tags), set(append(local.Package.Tags(), options.Tags...)))
	}
	planned.Values = append(planned.Values, files...)
	if len(planned.Values) == 0 {
		return planned, nil
	}
	planned.Change = changed
	planned.apply = func(ctx context.Context) error {
		if len(files) == 0 {
			_, err := c.client.Packages().Update(ctx, there.ID, changes...)
			return err
		}
		if err := c.client.Packages().Replace(ctx, local.Name(), local.Zip, options); err != nil || enabled {
			return err
		}
		made, err := c.client.Packages().Get(ctx, local.Name())
		if err != nil {
			return err
		}
		return disable(ctx, made.ID)
	}
	return planned, nil
}

// set is a list sorted, each once, and never nil.
func set(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return append([]string{}, slices.Compact(list)...)
}

// changedFiles are the files of which two packages differ.
func changedFiles(before, after *catalog.Package) ([]Value, error) {
	digest := func(of *catalog.Package, name string) (any, error) {
		if !of.Has(name) {
			return nil, nil
		}
		content, err := of.File(name)
		return fmt.Sprintf("%x", sha256.Sum256(content))[:12], err
	}
	var values []Value
	for _, name := range set(append(before.FileNames(), after.FileNames()...)) {
		was, err := digest(before, name)
		if err != nil {
			return nil, err
		}
		is, err := digest(after, name)
		if err != nil {
			return nil, err
		}
		if was != is {
			values = append(values, Value{Name: name, Before: was, After: is})
		}
	}
	return values, nil
}

func (c Documents) planTemplate(ctx context.Context, wanted TemplateFile, project string) (*Planned, error) {
	planned := &Planned{Kind: KindTemplate, Name: wanted.Name}
	applications, err := c.client.Files().TemplateIDs(ctx, wanted.Name, wanted.Applications)
	if err != nil {
		return nil, err
	}
	rows, err := c.client.Templates().List(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(rows, func(row Template) bool { return row.Name == wanted.Name && row.Project == project })
	if at < 0 {
		options := TemplateOptions{Name: wanted.Name, Applications: applications}
		if wanted.Public != nil {
			options.Public = *wanted.Public
		}
		if wanted.Description != nil {
			options.Description = *wanted.Description
		}
		planned.Change = added
		planned.apply = func(ctx context.Context) error {
			_, err := c.client.Templates().Create(ctx, options)
			return err
		}
		return planned, nil
	}
	there, err := c.client.Templates().Get(ctx, rows[at].ID)
	if err != nil {
		return nil, err
	}
	change := map[string]any{"name": there.Name} // which the API demands
	if wanted.Public != nil && *wanted.Public != there.Public {
		planned.Values, change["is_public"] = append(planned.Values, Value{Name: "public", Before: there.Public, After: *wanted.Public}), *wanted.Public
	}
	if wanted.Description != nil && *wanted.Description != there.Description {
		planned.Values, change["description_text"] = append(planned.Values, Value{Name: "description", Before: there.Description, After: *wanted.Description}), *wanted.Description
	}
	// As the server has read them: numbers and lists are of the same types then.
	var asRead []map[string]any
	text, err := json.Marshal(applications)
	if err == nil {
		err = json.Unmarshal(text, &asRead)
	}
	if err != nil {
		return nil, err
	}
	var others bool
	if wanted.Applications != nil {
		if others, err = c.templateDiffers(ctx, there.ID, applications); err != nil {
			return nil, err
		}
	}
	if others {
		planned.Values = append(planned.Values, Value{Name: "applications", Before: there.Services, After: asRead})
	}
	if len(planned.Values) == 0 {
		return planned, nil
	}
	planned.Change = changed
	planned.apply = func(ctx context.Context) error {
		if len(change) > 1 {
			if err := c.client.Call(ctx, http.MethodPut, "/v1/templates/"+there.ID, change, nil); err != nil {
				return err
			}
		}
		if !others {
			return nil
		}
		return c.client.Call(ctx, http.MethodPut, "/v1/templates/"+there.ID+"/services", applications, nil)
	}
	return planned, nil
}

// templateDiffers asks the server, which alone knows the template's secrets.
func (c Documents) templateDiffers(ctx context.Context, id string, applications []any) (bool, error) {
	var answer struct {
		Changed bool `json:"changed"`
	}
	body := map[string]any{"services": append([]any{}, applications...)}
	return answer.Changed, c.client.Call(ctx, http.MethodPost, "/burano/v1/templates/"+id+"/preview", body, &answer)
}

// planEnvironment compares an environment's document with its deployed model. Where packages are about to change it is looked at again when
// they have, and what is wrong with it until then does not count.
func (c Documents) planEnvironment(ctx context.Context, document Document, newPackages bool, allowDestroy []string) (*Planned, error) {
	wanted := *document.Environment
	planned := &Planned{Kind: KindEnvironment, Name: wanted.Name}
	there, err := c.client.Environments().Get(ctx, wanted.Name)
	isNew := IsStatus(err, http.StatusNotFound)
	if err != nil && !isNew {
		return nil, err
	}
	planned.EnvironmentID = there.ID
	preview, err := c.previewOf(ctx, there.ID, wanted)
	if err != nil {
		return nil, err
	}
	if newPackages {
		preview.Problems, preview.Means = nil, append(preview.Means, "its applications are checked when the packages are there")
	}
	if err := problems(document, preview, allowDestroy); err != nil {
		return nil, err
	}
	planned.Preview = &preview
	switch {
	case isNew:
		planned.Change = added
	case len(preview.Changes) > 0 || strings.HasSuffix(there.Status, "failure"):
		planned.Change = changed
	}
	deploy := func(ctx context.Context, id string) error {
		return c.client.Files().deployInto(ctx, id, wanted, func(ctx context.Context, session string) (string, error) {
			now, err := c.client.Sessions().Preview(ctx, id, session)
			if err == nil {
				err = problems(document, now, allowDestroy)
			}
			if isNew || newPackages { // the plan that was shown was of another environment, or of other packages
				return now.Plan, err
			}
			return preview.Plan, err
		}, allowDestroy)
	}
	planned.apply = func(ctx context.Context) (err error) {
		if isNew {
			planned.EnvironmentID, err = c.client.Files().inNew(ctx, wanted, deploy)
			return err
		}
		return deploy(ctx, planned.EnvironmentID)
	}
	return planned, nil
}

// previewOf is Files.Preview, and Files.PreviewNew for the id "".
func (c Documents) previewOf(ctx context.Context, environment string, wanted EnvironmentFile) (Preview, error) {
	if environment == "" {
		return c.client.Files().PreviewNew(ctx, wanted)
	}
	return c.client.Files().Preview(ctx, environment, wanted)
}

// problems is an error that says for each problem of a preview which line of the document has it, and which losses nobody has allowed.
func problems(document Document, preview Preview, allowDestroy []string) error {
	var all []error
	for _, one := range preview.Problems {
		// The API calls applications services.
		place := document.Place(strings.Replace(one.Path, "services[", "applications[", 1))
		all = append(all, fmt.Errorf("%s: %s", place, strings.TrimSpace(one.Class+" "+one.Message)))
	}
	preview.Problems = nil
	if err := preview.Err(allowDestroy...); err != nil {
		all = append(all, fmt.Errorf("%s: %w", document.Place(""), err))
	}
	if len(all) == 0 {
		return nil
	}
	return atPlace{errors.Join(all...)}
}
