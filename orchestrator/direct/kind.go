package direct

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/burano/burano/catalog/hot"
	"github.com/burano/burano/orchestrator/openstack"
)

// kind has the operations on resources of one type.
type kind struct {
	properties map[string]property
	aliases    map[string]string // older names of properties
	// check refuses impossible properties before any resource is made; properties that are not known yet are later{}. It may be nil.
	check func(ctx context.Context, j *job) error
	// create makes the resource and returns when it is ready. It is called again, with the same resource, after it was interrupted.
	create func(ctx context.Context, j *job) error
	// lookup finds the result of a former request, "" when there is none; nil for a resource without a physical one.
	lookup func(ctx context.Context, j *job) (string, error)
	// update gives it the job's properties; differing are the names of the changed ones.
	update func(ctx context.Context, j *job, differing []string) error
	// remove deletes the physical resource, and returns when it is gone; a missing one is fine.
	remove func(ctx context.Context, j *job) error
	// attributes are the values of get_attr.
	attributes func(ctx context.Context, j *job) (map[string]any, error)
	// reference is the value of get_resource; the physical id when nil.
	reference func(j *job) any
	// adopt derives create's notes from Heat's attributes of a resource that Heat has made; may be nil.
	adopt   func(one *resource, attributes map[string]any)
	adopted func(one *resource)
	// alone is true for a replacement where the old resource must go before the new one comes; may be nil.
	alone func(was, is map[string]any) bool
	// precious ones are never replaced, because their data would be lost.
	precious bool
}

// The types that are named elsewhere.
const (
	typeServer          = "OS::Nova::Server"
	typePort            = "OS::Neutron::Port"
	typeSubnet          = "OS::Neutron::Subnet"
	typeRouter          = "OS::Neutron::Router"
	typeRouterInterface = "OS::Neutron::RouterInterface"
	typeFloatingIP      = "OS::Neutron::FloatingIP"
	typeAssociation     = "OS::Neutron::FloatingIPAssociation"
	typeVolume          = "OS::Cinder::Volume"
	typeRule            = "OS::Neutron::SecurityGroupRule"
)

// kinds are the types of resources that are made without Heat.
var kinds map[string]kind

func init() { // some of them look each other up
	kinds = map[string]kind{
		"OS::Heat::RandomString": randomString, "OS::Heat::Value": value, "OS::Heat::None": none,
		"OS::Neutron::Net": network, typeSubnet: subnet, typePort: port, typeRouter: router, typeRouterInterface: routerInterface,
		typeFloatingIP: floatingIP, typeAssociation: association, "OS::Neutron::SecurityGroup": securityGroup, typeRule: securityGroupRule,
		typeServer: server, "OS::Nova::KeyPair": keyPair, "OS::Nova::ServerGroup": serverGroup,
		typeVolume: volume, "OS::Cinder::VolumeAttachment": volumeAttachment,
	}
}

// property is one property of a type.
type property struct {
	form     form
	required bool
	fallback any
	changes  bool // in place, where openstack.EffectOf does not know the type
}

// inPlace is true if the property of an existing resource can change. Changes that cost a server data are refused before (the guard in
// orchestrator/openstack), so that a remaining change replaces a server that does not run.
func (p property) inPlace(kind, name string) bool {
	switch openstack.EffectOf(kind, name) {
	case openstack.InPlace, openstack.Replugged, openstack.Readdressed:
		return true
	}
	return p.changes
}

// form is the type of a property's values.
type form int

const (
	anything form = iota
	words
	number
	truth
	list
	object
)

func (f form) convert(value any) (any, error) {
	switch f {
	case words:
		return hot.Text(value), nil
	case number:
		made, err := strconv.ParseFloat(hot.Text(value), 64)
		if err != nil || made != math.Trunc(made) {
			return nil, wrong("%q is no whole number", hot.Text(value))
		}
		return made, nil
	case truth:
		is, ok := hot.Boolean(value)
		if !ok {
			return nil, wrong("%q is neither true nor false", hot.Text(value))
		}
		return is, nil
	case list:
		made, ok := value.([]any)
		if !ok {
			return nil, wrong("%s is no list", hot.Text(value))
		}
		return made, nil
	case object:
		made, ok := value.(map[string]any)
		if !ok {
			return nil, wrong("%s is no map", hot.Text(value))
		}
		return made, nil
	}
	return value, nil
}

// renamed are properties under the names that they have today.
func (k kind) renamed(properties map[string]any) map[string]any {
	made := map[string]any{}
	for name, value := range properties {
		if today, ok := k.aliases[name]; ok {
			name = today
		}
		made[name] = value
	}
	return made
}

// checkNames refuses unknown properties, and finds missing ones.
func (k kind) checkNames(resource string, properties map[string]any) error {
	given := k.renamed(properties)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, known := k.properties[name]; !known {
			return wrong("resource %s: the property %s is not known, or works only with Heat, and this stack is made without it (burano serve --orchestration). "+
				"There are %s", resource, name, strings.Join(slices.Sorted(maps.Keys(k.properties)), ", "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.properties)) {
		if _, there := given[name]; k.properties[name].required && !there {
			return wrong("resource %s: the property %s is missing", resource, name)
		}
	}
	return nil
}

// checkValues refuses values that are known to be of another form.
func (k kind) checkValues(resource string, properties map[string]any) error {
	for name, value := range k.renamed(properties) {
		if _, unknown := value.(later); unknown || value == nil {
			continue
		}
		if _, err := k.properties[name].form.convert(value); err != nil {
			return fmt.Errorf("resource %s: %s: %w", resource, name, err)
		}
	}
	return nil
}

// typed gives properties their forms and fallbacks; properties without a value are left out.
func (k kind) typed(properties map[string]any) (map[string]any, error) {
	made, given := map[string]any{}, k.renamed(properties)
	for name, known := range k.properties {
		value := given[name]
		if value == nil {
			value = known.fallback
		}
		if value == nil {
			if known.required {
				return nil, wrong("the property %s has no value", name)
			}
			continue
		}
		converted, err := known.form.convert(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		made[name] = converted
	}
	return made, nil
}

// job is a resource that is worked on.
type job struct {
	*stack
	resource *resource
	// properties have their forms; properties without a value and a fallback are absent.
	properties map[string]any
}

func (j *job) text(name string) string { return hot.Text(j.properties[name]) }

// name is the property, or a name made of the stack's and the resource's, which no other resource has.
func (j *job) name() string {
	if name := j.text("name"); name != "" {
		return name
	}
	return j.stack.row.Name + "-" + j.resource.Name + "-" + j.resource.ID[:12]
}

func (j *job) keep(ctx context.Context) error { return j.stack.put(ctx, j.resource) }

// known stores the physical id of the resource.
func (j *job) known(ctx context.Context, physicalID string) error {
	j.resource.PhysicalID = physicalID
	return j.keep(ctx)
}

// note stores a value that a type needs of the resource later.
func (j *job) note(ctx context.Context, name, value string) error {
	if j.resource.Data == nil {
		j.resource.Data = map[string]string{}
	}
	j.resource.Data[name] = value
	return j.keep(ctx)
}

// find looks for the physical resource of a former request.
func (j *job) find(ctx context.Context) error {
	lookup := kinds[j.resource.Type].lookup
	if j.resource.PhysicalID != "" || !j.resource.Asked || lookup == nil {
		return nil
	}
	id, err := lookup(ctx, j)
	if err != nil || id == "" {
		return err
	}
	return j.known(ctx, id)
}

// make sends the request for the resource once: lookup finds the result of an earlier request whose answer was lost.
func (j *job) make(ctx context.Context, service string, ask func(ctx context.Context) (id string, err error)) error {
	if j.resource.PhysicalID != "" {
		return nil
	}
	before := j.resource.Asked
	if !before {
		j.resource.Asked = true
		if err := j.keep(ctx); err != nil {
			return err
		}
	}
	return patiently(ctx, service, before, func(ctx context.Context) (bool, error) {
		err := j.find(ctx)
		return j.resource.PhysicalID != "", err
	}, func(ctx context.Context) error {
		id, err := ask(ctx)
		if err != nil {
			return err
		}
		return j.known(ctx, id)
	})
}

// patiently asks for something that is not there yet: it is looked for first when it was asked for before, and from the second try on.
func patiently(ctx context.Context, service string, before bool, there func(context.Context) (bool, error), ask func(context.Context) error) error {
	tries := 0
	return openstack.Patiently(ctx, service, func(ctx context.Context) error {
		if tries++; tries > 1 || before {
			if is, err := there(ctx); err != nil || is {
				return err
			}
		}
		return openstack.Contested(ask(ctx), tries)
	})
}

// call makes one call of a service; answer may be nil.
func call(ctx context.Context, client *gophercloud.ServiceClient, method, path string, body, answer any) error {
	options := &gophercloud.RequestOpts{JSONResponse: answer, OkCodes: []int{200, 201, 202, 204}}
	if body != nil {
		options.JSONBody = body
	}
	response, err := client.Request(ctx, method, client.ServiceURL(path), options)
	if response != nil && answer == nil {
		_ = response.Body.Close()
	}
	return err
}

// gentle accepts the answer "not found" as a success.
func gentle(err error) error {
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// said is an error in the words of the service, where it has some.
func said(err error) string {
	var unexpected gophercloud.ErrUnexpectedResponseCode
	if !errors.As(err, &unexpected) {
		return err.Error()
	}
	var answer map[string]any
	if json.Unmarshal(unexpected.Body, &answer) != nil {
		return err.Error()
	}
	for _, part := range answer {
		told, _ := part.(map[string]any)
		if message := hot.Text(told["message"]); message != "" {
			return fmt.Sprintf("%s (%d)", message, unexpected.Actual)
		}
	}
	return err.Error()
}

// one finds a thing by its id, or by its name when only one has it.
func one(what, ref string, known []map[string]any) (map[string]any, error) {
	var byName []map[string]any
	for _, candidate := range known {
		if candidate["id"] == ref {
			return candidate, nil
		}
		if candidate["name"] == ref {
			byName = append(byName, candidate)
		}
	}
	switch len(byName) {
	case 1:
		return byName[0], nil
	case 0:
		return nil, wrong("the project sees no %s with the name or id %q", what, ref)
	}
	return nil, wrong("%d of the project's %ss are called %q: write the id of one of them in place of the name", len(byName), what, ref)
}
