package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// cleanupTime is the time to undo begun work, after an interrupt too.
const cleanupTime = 10 * time.Second

// Session is a draft of an environment.
type Session struct {
	ID      string `json:"id" yaml:"id"`
	State   string `json:"state" yaml:"state"`
	Version int64  `json:"version" yaml:"version"`
	Created string `json:"created" yaml:"created"`
	Updated string `json:"updated" yaml:"updated"`
}

// Sessions are the calls about sessions, which are drafts of an environment.
type Sessions struct{ client *Client }

// Sessions returns the calls about sessions.
func (c *Client) Sessions() Sessions { return Sessions{c} }

// Configure opens a session, which begins with the deployed model of the environment.
func (c Sessions) Configure(ctx context.Context, environment string) (Session, error) {
	var opened Session
	return opened, c.client.Call(ctx, http.MethodPost, "/v1/environments/"+environment+"/configure", nil, &opened)
}

// Get shows a session.
func (c Sessions) Get(ctx context.Context, environment, id string) (Session, error) {
	var found Session
	return found, c.client.Call(ctx, http.MethodGet, "/v1/environments/"+environment+"/sessions/"+id, nil, &found)
}

// Draft is an open session, as everybody in the project may know of it.
type Draft struct {
	ID       string `json:"id" yaml:"id"` // "" when it is another user's
	UserID   string `json:"user_id" yaml:"user_id"`
	UserName string `json:"user_name" yaml:"user_name"`
	Own      bool   `json:"own" yaml:"own"`
	Outdated bool   `json:"outdated" yaml:"outdated"` // it can no longer be deployed
	Rejected bool   `json:"rejected" yaml:"rejected"` // its deployment was, before it changed anything
	Version  int64  `json:"version" yaml:"version"`
	Created  string `json:"created" yaml:"created"`
	Updated  string `json:"updated" yaml:"updated"`
}

// Drafts lists the open sessions of an environment.
func (c Sessions) Drafts(ctx context.Context, environment string) ([]Draft, error) {
	var answer struct {
		Sessions []Draft `json:"sessions"`
	}
	err := c.client.Call(ctx, http.MethodGet, "/burano/v1/environments/"+environment+"/sessions", nil, &answer)
	return answer.Sessions, err
}

// Delete throws a draft away.
func (c Sessions) Delete(ctx context.Context, environment, id string) error {
	return c.client.Call(ctx, http.MethodDelete, "/v1/environments/"+environment+"/sessions/"+id, nil, nil)
}

// Deploy begins to deploy a draft. Deployments.Newest and Follow show how it goes. Clusters that the draft no longer has go only when
// allowDestroy has their ids or names.
func (c Sessions) Deploy(ctx context.Context, environment, id string, allowDestroy ...string) error {
	return c.deployShown(ctx, environment, id, "", source{}, allowDestroy)
}

// deployShown is Sessions.Deploy after a preview, whose Plan it is ("" for none), for a draft of a file, which the environment's history names.
func (c Sessions) deployShown(ctx context.Context, environment, id, plan string, file source, allowDestroy []string) error {
	query := url.Values{}
	if len(allowDestroy) > 0 {
		query["allow_destroy"] = allowDestroy
	}
	if plan != "" {
		query.Set("plan", plan)
	}
	if file.name != "" {
		query.Set("file", file.name)
		query.Set("digest", file.digest)
	}
	path := "/v1/environments/" + environment + "/sessions/" + id + "/deploy?" + query.Encode()
	return c.client.Call(ctx, http.MethodPost, strings.TrimSuffix(path, "?"), nil, nil)
}

// SetApplications replaces the applications of a session's draft by object models. With validate the server checks them against their
// classes at once, and refuses applications that could not be deployed.
func (c Sessions) SetApplications(ctx context.Context, environment, session string, applications []any, validate bool) error {
	query := ""
	if validate {
		query = "?validate=true"
	}
	return c.client.Call(ctx, http.MethodPut, "/v1/environments/"+environment+"/services"+query, applications, nil, ofSession(session)...)
}

// Preview is the preview of a draft's deployment.
type Preview struct {
	Changes []Change `json:"changes"`
	Means   []string `json:"means"` // further effects and their costs, in sentences
	Notes   []string `json:"notes"` // values that stay although the model has others
	Losses  []Loss   `json:"losses"`
	// Kubernetes are the objects that it would add, change and remove in clusters.
	Kubernetes []KubernetesChange `json:"kubernetes"`
	Problems   []Problem          `json:"problems"` // with any, the deployment would fail at once
	// Consents are losses for which the deployment is refused unless it names their objects (allowDestroy of Sessions.Deploy).
	Consents []Consent `json:"consents"`
	// Plan identifies everything that the preview shows, for the deployment.
	Plan string `json:"plan"`
}

// Consent is the loss of an object that must be named.
type Consent struct {
	ObjectID string   `json:"object_id" yaml:"object_id"`
	Name     string   `json:"name"`
	Message  string   `json:"message"`
	Claims   []string `json:"claims"` // of a pod: naming all of them allows it, too
}

// Change is an object that a deployment would add, change or remove.
type Change struct {
	Change     string   `json:"change"` // added, changed or removed
	ID         string   `json:"id"`
	Type       string   `json:"type"`
	Name       string   `json:"name"`
	Path       string   `json:"path"` // "" for the environment itself
	Properties []string `json:"properties"`
	Values     []Value  `json:"values"` // of the same properties
	// Names are the names of the objects in Values, by their ids; of an object without a name the name of a part of it, or its class.
	Names map[string]string `json:"names"`
}

// Value is a property with its present and its new value. Objects appear as their ids; secrets are masked.
type Value struct {
	Name   string `json:"name"`
	Before any    `json:"before"`
	After  any    `json:"after"`
	// Effect is the declared effect of a change: inPlace, rollsPods, nodeByNode, newOnly, refused, loses or none; "" where the class declares none.
	Effect     string `json:"effect,omitempty"`
	EffectText string `json:"effect_text,omitempty" yaml:"effect_text"`
}

// Loss is a server, a volume or a stack of a Heat template that a deployment would delete, with all that is on it.
type Loss struct {
	Kind     string `json:"kind"`
	ObjectID string `json:"object_id" yaml:"object_id"`
	Object   string `json:"object"`                   // its name
	CloudID  string `json:"cloud_id" yaml:"cloud_id"` // of a stack its name
}

// KubernetesChange is an object of Kubernetes that a deployment would add, change or remove.
type KubernetesChange struct {
	Change    string  `json:"change"` // added, changed or removed
	ObjectID  string  `json:"object_id" yaml:"object_id"`
	Object    string  `json:"object"` // the name of the release's object
	Kind      string  `json:"kind"`
	Namespace string  `json:"namespace"` // "" where the chart does not say it
	Name      string  `json:"name"`
	Fields    []Field `json:"fields"` // of a changed object
	More      int     `json:"more"`   // of its fields, besides
}

// Field is a part of an object of Kubernetes with its present and its new value, null where it is absent. Secrets are masked.
type Field struct {
	Path   string `json:"path"`
	Before any    `json:"before"`
	After  any    `json:"after"`
}

// Problem is a place of a model that breaks a rule of a class.
type Problem struct {
	Path    string `json:"path"`
	Class   string `json:"class"`
	Message string `json:"message"`
}

// Err is an error when the deployment would fail at once, with these objects allowed to go.
func (p Preview) Err(allowDestroy ...string) error {
	var refused []error
	if len(p.Problems) > 0 {
		refused = append(refused, fmt.Errorf("it could not be deployed: %s", wrongs(len(p.Problems))))
	}
	for _, one := range p.Consents {
		claims := len(one.Claims) > 0 && !slices.ContainsFunc(one.Claims, func(claim string) bool { return !slices.Contains(allowDestroy, claim) })
		if !slices.Contains(allowDestroy, one.ObjectID) && !slices.Contains(allowDestroy, one.Name) && !claims {
			refused = append(refused, fmt.Errorf("it would not be deployed: %s. Put it back, or allow it with --allow-destroy %s", one.Message, cmp.Or(one.Name, one.ObjectID)))
		}
	}
	return errors.Join(refused...)
}

func wrongs(count int) string {
	if count == 1 {
		return "1 thing is wrong with it"
	}
	return fmt.Sprintf("%d things are wrong with it", count)
}

// Changing reports whether the deployment would change anything.
func (p Preview) Changing() bool {
	return len(p.Changes)+len(p.Means)+len(p.Losses)+len(p.Kubernetes) > 0
}

// Preview returns the preview of the deployment of a session's draft. Nothing is done.
func (c Sessions) Preview(ctx context.Context, environment, session string) (Preview, error) {
	var answer Preview
	return answer, c.client.Call(ctx, http.MethodGet, "/burano/v1/environments/"+environment+"/sessions/"+session+"/preview", nil, &answer)
}

// draft opens a session of an environment with applications.
func (c Sessions) draft(ctx context.Context, environment string, applications []any, validate bool) (session string, err error) {
	opened, err := c.Configure(ctx, environment)
	if err != nil {
		return "", err
	}
	if err := c.SetApplications(ctx, environment, opened.ID, applications, validate); err != nil {
		return "", errors.Join(err, c.dropDraft(ctx, environment, opened.ID))
	}
	return opened.ID, nil
}

// dropDraft deletes a session, so that the environment is not left with a draft that nobody will come back to.
func (c Sessions) dropDraft(ctx context.Context, environment, session string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	return c.Delete(ctx, environment, session)
}
