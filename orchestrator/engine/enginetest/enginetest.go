// Package enginetest has the common parts of tests of the engine and of the API over it. They are two small packages with Go bodies that can be watched
// and paused, and a cloud that only keeps trusts.
package enginetest

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/openstack"
)

//go:embed packages
var folders embed.FS

// Packages are an io.murano with Environment, Application and NeutronNetwork, and org.golden.Hello.
func Packages() ([]*catalog.Package, error) {
	var packages []*catalog.Package
	for _, name := range []string{"io.murano", "org.golden.Hello"} {
		folder, err := fs.Sub(folders, "packages/"+name)
		if err != nil {
			return nil, err
		}
		p, err := catalog.ReadEmbedded(folder)
		if err != nil {
			return nil, fmt.Errorf("read the test package %s: %w", name, err)
		}
		packages = append(packages, p)
	}
	return packages, nil
}

// Source finds the classes of packages, of the newest version where there are several, for every project.
func Source(packages []*catalog.Package) func(projectID string) muranopl.Source {
	return func(string) muranopl.Source { return catalog.Shelf(packages) }
}

// World is the state that the Go bodies of the test packages change.
type World struct {
	mutex sync.Mutex
	log   []string
	gates map[string]chan struct{}
}

// NewWorld makes a World in which nothing happened.
func NewWorld() *World { return &World{gates: map[string]chan struct{}{}} }

// Log has the events so far: "begin deploy <name>", "deploy <name>", "destroy <name>", …, and "stop <event>" where a task was cancelled while it was
// paused.
func (w *World) Log() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return slices.Clone(w.log)
}

func (w *World) did(what string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.log = append(w.log, what)
}

// Hold pauses the event of that name in Log, before it happens, until open is called or its task is cancelled.
func (w *World) Hold(what string) (open func()) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	gate := make(chan struct{})
	w.gates[what] = gate
	return sync.OnceFunc(func() {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		delete(w.gates, what)
		close(gate)
	})
}

func (w *World) pass(ctx context.Context, what string) error {
	w.did("begin " + what)
	w.mutex.Lock()
	gate := w.gates[what]
	w.mutex.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			w.did("stop " + what)
			return fmt.Errorf("%s: %w", what, context.Cause(ctx))
		}
	}
	return nil
}

// Natives are the Go bodies of the test packages over the world.
func (w *World) Natives(r *engine.Runtime) muranopl.Natives {
	return muranopl.Natives{
		"io.murano": {"io.murano.Environment": {
			"deploy": func(ctx context.Context, call muranopl.Call) (any, error) {
				var errs []error
				for _, application := range call.Object.Objects("applications") {
					_, err := call.Interpreter.Invoke(ctx, application, "deploy", nil)
					if err == nil {
						r.Deployed(application)
					}
					errs = append(errs, err)
				}
				return nil, errors.Join(errs...)
			},
			".destroy": func(context.Context, muranopl.Call) (any, error) {
				w.did("destroy environment")
				return nil, nil
			},
		}},
		"org.golden.Hello": {"org.golden.Hello": {
			"deploy": func(ctx context.Context, call muranopl.Call) (any, error) { return nil, w.deploy(ctx, r, call) },
			".destroy": func(ctx context.Context, call muranopl.Call) (any, error) {
				name := call.Object.Text("name")
				if err := w.pass(ctx, "destroy "+name); err != nil {
					return nil, err
				}
				if call.Object.Bool("failDestroy") {
					return nil, errors.New("asked to fail")
				}
				w.did("destroy " + name)
				return nil, nil
			},
			"mend": func(ctx context.Context, call muranopl.Call) (any, error) {
				for _, step := range []string{"first", "second"} {
					what := step + " of " + call.Object.Text("name")
					err := r.Step(ctx, call.Object, step, func(ctx context.Context) error {
						if err := w.pass(ctx, what); err != nil {
							return err
						}
						w.did(what)
						return nil
					})
					if err != nil {
						return nil, err
					}
				}
				return nil, call.Object.Set("result", "mended")
			},
			"boom": func(context.Context, muranopl.Call) (any, error) {
				return nil, errors.New("action failed on purpose")
			},
			"shout": func(ctx context.Context, call muranopl.Call) (any, error) {
				what := call.Object.Text("greeting") + fmt.Sprint(call.Args["suffix"])
				return what, r.Step(ctx, call.Object, "shout "+what, func(context.Context) error { return nil })
			},
		}},
	}
}

func (w *World) deploy(ctx context.Context, r *engine.Runtime, call muranopl.Call) error {
	name := call.Object.Text("name")
	if _, done, err := r.Attribute(ctx, call.Object, "deployed"); err != nil || done {
		return err
	}
	if err := r.Report(ctx, call.Object, engine.LevelInfo, "Deploying "+name, ""); err != nil {
		return err
	}
	err := r.Step(ctx, call.Object, "say", func(ctx context.Context) error {
		if err := w.pass(ctx, "deploy "+name); err != nil {
			return err
		}
		if call.Object.Bool("fail") {
			return errors.New("asked to fail")
		}
		w.did("deploy " + name)
		return r.SetSecret(ctx, "key of "+name, []byte("secret of "+name))
	})
	if err != nil {
		return err
	}
	for _, part := range call.Object.Objects("parts") {
		if _, err := call.Interpreter.Invoke(ctx, part, "deploy", nil); err != nil {
			return err
		}
	}
	if err := call.Object.Set("result", call.Object.Text("greeting")+" world"); err != nil {
		return err
	}
	return r.SetAttribute(ctx, call.Object, "deployed", true)
}

// Cloud keeps trusts and nothing else.
type Cloud struct {
	mutex    sync.Mutex
	trusts   map[string]Trust
	made     int
	broken   error
	slow     *slowness
	heatHas  map[string]bool // trusts that Heat has passed on
	changing map[string]bool // stacks
}

// Trust has the parameters of a trust.
type Trust struct {
	UserID  string
	Roles   []string
	Expires time.Time
}

// slowness holds up the makings of trusts.
type slowness struct{ begun, release chan struct{} }

// NewCloud makes a Cloud without trusts.
func NewCloud() *Cloud {
	return &Cloud{trusts: map[string]Trust{}, heatHas: map[string]bool{}, changing: map[string]bool{}}
}

// Break makes every call fail with err until it is nil again.
func (c *Cloud) Break(err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.broken = err
}

// Slow holds up the makings of trusts until release; begun gets a value for each that waits.
func (c *Cloud) Slow() (begun <-chan struct{}, release func()) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	slow := &slowness{begun: make(chan struct{}, 10), release: make(chan struct{})}
	c.slow = slow
	return slow.begun, func() {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		c.slow = nil
		close(slow.release)
	}
}

// PassOn sets whether Heat keeps a trust that was made through this one.
func (c *Cloud) PassOn(id string, passed bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.heatHas[id] = passed
}

// Change sets whether Heat is changing a stack.
func (c *Cloud) Change(stack string, changing bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.changing[stack] = changing
}

// Trusts counts the trusts that are there, and all that were ever made.
func (c *Cloud) Trusts() (there, made int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return len(c.trusts), c.made
}

// Trust returns a trust; false when it is not there. The first one is called trust-1.
func (c *Cloud) Trust(id string) (Trust, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	trust, there := c.trusts[id]
	return trust, there
}

// CreateTrust makes a trust, unless the caller's token is an application credential's.
func (c *Cloud) CreateTrust(ctx context.Context, caller identity.Caller, roles []string, expires time.Time) (string, []string, error) {
	c.mutex.Lock()
	slow := c.slow
	c.mutex.Unlock()
	if slow != nil {
		slow.begun <- struct{}{}
		select {
		case <-slow.release:
		case <-ctx.Done():
			return "", nil, context.Cause(ctx)
		}
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch {
	case c.broken != nil:
		return "", nil, c.broken
	case caller.Credential != nil:
		return "", nil, fault.New(fault.Forbidden, "Keystone lets this caller make no trust for Burano")
	}
	c.made++
	id := fmt.Sprintf("trust-%d", c.made)
	c.trusts[id] = Trust{UserID: caller.UserID, Roles: roles, Expires: expires}
	return id, roles, nil
}

// Missing returns the roles that are not held: here none implies another.
func (c *Cloud) Missing(_ context.Context, wanted, held []string) ([]string, error) {
	return slices.DeleteFunc(slices.Clone(wanted), func(role string) bool { return slices.Contains(held, role) }), nil
}

// DeleteTrust ends a trust.
func (c *Cloud) DeleteTrust(_ context.Context, id string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.broken != nil {
		return c.broken
	}
	delete(c.trusts, id)
	return nil
}

// HasTrust is true if a trust is there.
func (c *Cloud) HasTrust(_ context.Context, id string) (bool, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	_, there := c.trusts[id]
	return there, c.broken
}

// PassedOn returns PassOn's value.
func (c *Cloud) PassedOn(_ context.Context, id string) (bool, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.heatHas[id], c.broken
}

// Changing returns Change's value.
func (c *Cloud) Changing(_ context.Context, _ string, stacks []string) (bool, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.ContainsFunc(stacks, func(stack string) bool { return c.changing[stack] }), c.broken
}

// ServiceUser is the user that projects give a role to.
func (c *Cloud) ServiceUser() openstack.Named {
	return openstack.Named{ID: "u-burano", Name: "burano", Domain: "Default"}
}

// LetIn makes a trust of the service user's; managers and administrators may.
func (c *Cloud) LetIn(_ context.Context, caller identity.Caller, _ string, roles []string, former string) (string, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !caller.Admin && !slices.Contains(caller.Roles, "manager") {
		return "", fault.New(fault.Forbidden, "Keystone does not let you give roles")
	}
	if _, there := c.trusts[former]; there {
		return former, nil
	}
	c.made++
	id := fmt.Sprintf("trust-%d", c.made)
	c.trusts[id] = Trust{UserID: "u-burano", Roles: roles}
	return id, nil
}

// LetOut ends the trusts of the service user's.
func (c *Cloud) LetOut(_ context.Context, caller identity.Caller, _ string, _ []string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !caller.Admin && !slices.Contains(caller.Roles, "manager") {
		return fault.New(fault.Forbidden, "Keystone does not let you take roles")
	}
	maps.DeleteFunc(c.trusts, func(_ string, trust Trust) bool { return trust.UserID == "u-burano" })
	return nil
}

// WorksIn is true if a trust is there.
func (c *Cloud) WorksIn(_ context.Context, trustID string) (bool, error) {
	_, there := c.Trust(trustID)
	return there, nil
}

// CheckCredential knows the application credential "mine" of user u-demo in project p-demo, with the secret "shh".
func (c *Cloud) CheckCredential(_ context.Context, id, secret string) (identity.Caller, time.Time, error) {
	if id != "mine" || secret != "shh" {
		return identity.Caller{}, time.Time{}, fault.New(fault.Unauthorized, "Keystone takes no such application credential and secret")
	}
	return identity.Caller{UserID: "u-demo", ProjectID: "p-demo", Roles: []string{"member"}}, time.Time{}, nil
}

// errNoProjects is the error of every attempt to work in the cloud.
var errNoProjects = errors.New("the test cloud has no projects")

// Project always fails: this cloud has no projects. Keystone refuses a trust that is not there.
func (c *Cloud) Project(_ context.Context, id string) (*openstack.Project, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if _, there := c.trusts[id]; !there {
		return nil, fmt.Errorf("sign in through trust %s: %w", id, openstack.ErrRefused)
	}
	return nil, errNoProjects
}

// ProjectByCredential always fails, as Project does.
func (c *Cloud) ProjectByCredential(context.Context, string, string) (*openstack.Project, error) {
	return nil, errNoProjects
}
