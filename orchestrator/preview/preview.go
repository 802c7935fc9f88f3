// Package preview says what a deployment of a model will do to what is there, and what of that ends something: the same answer is shown before a deployment and
// is asked for when it begins.
package preview

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/openstack"
)

// Plan is the effect of a deployment.
type Plan struct {
	Changes []Change
	Effects []string // its further effects and their costs, in sentences
	Notes   []string // properties of the model that have no effect, in sentences
	Losses  []Loss   // deletions in the cloud
	// Kubernetes are its additions, changes and removals in clusters; computed for people only.
	Kubernetes []KubernetesChange
	Problems   []muranopl.Problem // for which it would do nothing
	// Consents are the losses that a deployment must be allowed by name.
	Consents []Consent
	// After is the model as it would be, in the API's form.
	After map[string]any
	// Token has all effects that the plan shows: losses and replacements, and, after Draft.Of, the objects of the draft. It is text for a query.
	Token    string
	replaced []Note
	written  []part
}

// Note is a sentence about an object of a model.
type Note struct{ ObjectID, Text string }

// Consent is a loss for which a deployment is refused unless the object, or all of its claims, may go.
type Consent struct {
	ObjectID, Name, Text string
	Claims               []string // names of claims that lose their application; none where the object itself goes
}

// Loss is a server, a volume or a stack of a Heat template that a deployment would delete with all that is on it.
type Loss struct {
	Kind             string // server, volume or stack
	ObjectID, Object string // the object that it belongs to, and its name
	CloudID          string // of a server or volume where the object knows it, of a stack its name
}

// KubernetesChange is an object of Kubernetes that a deployment would add, change or remove.
type KubernetesChange struct {
	ObjectID, Object string // the object of the model that it belongs to, and its name
	What             string // added, changed or removed
	Kind             string
	Namespace, Name  string            // the namespace may be ""
	Fields           []KubernetesField // of a changed object
	More             int               // of its fields, besides
}

// KubernetesField is a changed part of an object of Kubernetes; nil means that the part is absent. Secrets are masked.
type KubernetesField struct {
	Path          string // such as spec.template.spec.containers[web].image
	Before, After any
}

// Foreseen are the statements of a model's classes about its deployment.
type Foreseen struct {
	Kept    []openstack.Kept // the servers and volumes of the environment's stack
	Effects []string         // as in Plan
	Notes   []string         // as in Plan
	// Refused are objects that the model describes wrongly. A deployment would do nothing for them.
	Refused []Note
	// Servers are changes for which it would rebuild, resize or replace servers that are there, and is refused.
	Servers []*openstack.ServerChange
	// Replaced are the objects that others replace.
	Replaced   []Note
	Consents   []Consent // without Name
	Kubernetes []KubernetesChange
	// Model is the model with the parts that its classes add when it is loaded, and Computed are the properties in it that code gives, by the
	// objects' ids; nil if nothing was deployed before.
	Model    map[string]any
	Computed map[string][]string
	// OnChange is the declared effect of a change of a property of an object, by the object's id; nil where the classes were not asked.
	OnChange func(objectID, property string) muranopl.OnChange
}

// Of compares the model that was deployed last, nil for none, with the model that is to be, both in the API's form.
func Of(before, after map[string]any, foreseen Foreseen) Plan {
	plan := Plan{Changes: Changes(before, after, foreseen.Computed), Effects: foreseen.Effects, Notes: foreseen.Notes, Kubernetes: foreseen.Kubernetes, After: after, replaced: foreseen.Replaced}
	for i := range plan.Changes {
		plan.Changes[i].declare(foreseen.OnChange)
	}
	plan.Losses = losses(before, plan.Changes, foreseen.Kept)
	had, has := Objects(before), Objects(after)
	problem := func(object Object, text string) {
		plan.Problems = append(plan.Problems, muranopl.Problem{Path: object.Path, Class: object.Type, Wanted: text})
	}
	for _, one := range foreseen.Refused {
		problem(has[one.ObjectID], one.Text)
	}
	for _, one := range foreseen.Servers {
		problem(ownerOf(has, one.Resource), one.Error())
	}
	for _, one := range foreseen.Consents {
		if one.Name = has[one.ObjectID].Name; one.Name == "" {
			one.Name = had[one.ObjectID].Name
		}
		plan.Consents = append(plan.Consents, one)
	}
	for _, one := range plan.Changes {
		if had[one.ID].isCluster() && slices.Contains(one.Properties, "name") {
			plan.Effects = append(plan.Effects, fmt.Sprintf("cluster %s is called %s from now on, and so is its API: kubeconfigs that were downloaded before stop working, and are to be downloaded again",
				had[one.ID].Name, one.Name))
		}
	}
	for _, one := range DestroyedClusters(before, after) {
		plan.Effects = append(plan.Effects, one.Destroyed())
		plan.Consents = append(plan.Consents, Consent{ObjectID: one.ID, Name: one.Name, Text: one.Destroyed()})
	}
	plan.Token = tokenForm + shortened(plan.ends())
	return plan
}

// Refusal is a fault with all reasons why the deployment is refused: its problems, losses without a consent (by id or name), and deeds that the plan
// with the given token did not show ("" for none).
func (p Plan) Refusal(allowed []string, token string) error {
	var all []error
	for _, one := range p.Problems {
		all = append(all, fault.New(fault.Invalid, "%s", one.Wanted))
	}
	return errors.Join(append(all, p.Unconfirmed(allowed, token))...)
}

// Unconfirmed is Refusal without the problems.
func (p Plan) Unconfirmed(allowed []string, token string) error {
	var all []error
	for _, one := range p.Missing(allowed) {
		all = append(all, fault.New(fault.Conflict, "%s. Nothing was done. Undo this part of the change, or allow it: burano deploy --allow-destroy %s, or allow_destroy=%s in the API",
			one.Text, cmp.Or(one.Name, one.ObjectID), one.ObjectID))
	}
	if token == "" {
		return errors.Join(all...)
	}
	unseen, known := p.unseen(token)
	switch {
	case !known:
		all = append(all, fault.New(fault.Conflict, "What the deployment does was shown by another version of Burano. Nothing was done. Look at the preview again, and deploy anew"))
	case len(unseen) > 0:
		all = append(all, fault.New(fault.Conflict, "The deployment does more than was shown, since something has changed: %s. Nothing was done. Look at the preview again, and deploy anew",
			strings.Join(unseen, "; ")))
	}
	return errors.Join(all...)
}

// Missing are the consents of a plan that the given ids and names do not contain.
func (p Plan) Missing(allowed []string) (missing []Consent) {
	may := func(name string) bool { return name != "" && slices.Contains(allowed, name) }
	for _, one := range p.Consents {
		claims := len(one.Claims) > 0 && !slices.ContainsFunc(one.Claims, func(claim string) bool { return !may(claim) })
		if !may(one.ObjectID) && !may(one.Name) && !claims {
			missing = append(missing, one)
		}
	}
	return missing
}
