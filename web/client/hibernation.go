package client

import (
	"context"
	"net/http"
	"time"
)

// Hibernation is whether an environment sleeps.
type Hibernation struct {
	State        string          `json:"state" yaml:"state"` // awake, hibernating, asleep or waking
	Since        *time.Time      `json:"since" yaml:"since"` // nil for an environment that never slept
	DeploymentID string          `json:"deployment_id" yaml:"deployment_id"`
	Servers      []StoppedServer `json:"servers" yaml:"servers"` // that start when it wakes

	Schedule *HibernationSchedule `json:"schedule" yaml:"schedule"` // nil for none
}

// HibernationSchedule is when an environment sleeps and wakes by itself.
type HibernationSchedule struct {
	Zone      string     `json:"zone" yaml:"zone"`   // of IANA, such as Europe/Berlin
	Sleep     []string   `json:"sleep" yaml:"sleep"` // cron expressions: minute, hours, *, *, weekdays
	Wake      []string   `json:"wake" yaml:"wake"`
	UserName  string     `json:"user_name" yaml:"user_name"` // the user that has set it
	Updated   time.Time  `json:"updated" yaml:"updated"`
	NextSleep *time.Time `json:"next_sleep" yaml:"next_sleep"` // in its zone; nil where it has no such times
	NextWake  *time.Time `json:"next_wake" yaml:"next_wake"`
	Delegated bool       `json:"delegated" yaml:"delegated"` // whether Burano may carry it out
}

// StoppedServer is a server that a hibernation stops.
type StoppedServer struct {
	ID      string `json:"id" yaml:"id"`
	Name    string `json:"name" yaml:"name"`
	Role    string `json:"role" yaml:"role"`       // of a node: master, minion or gateway
	Cluster string `json:"cluster" yaml:"cluster"` // the name of its cluster
}

// HibernationPlan is the effect of hibernating an environment, or of waking one that sleeps.
type HibernationPlan struct {
	Does      string          `json:"does" yaml:"does"` // hibernate or wake
	Servers   []StoppedServer `json:"servers" yaml:"servers"`
	Obstacles []string        `json:"obstacles" yaml:"obstacles"` // the reasons to refuse it
	Notes     []string        `json:"notes" yaml:"notes"`
}

// Hibernations are the calls that stop the servers of environments, and start them again.
type Hibernations struct{ client *Client }

// Hibernations returns the calls that stop the servers of environments, and start them again.
func (c *Client) Hibernations() Hibernations { return Hibernations{c} }

func hibernationPath(environment string) string {
	return "/burano/v1/environments/" + environment + "/hibernation"
}

// Get shows whether an environment sleeps.
func (c Hibernations) Get(ctx context.Context, environment string) (Hibernation, error) {
	var found Hibernation
	return found, c.client.Call(ctx, http.MethodGet, hibernationPath(environment), nil, &found)
}

// SetSchedule sets when an environment sleeps and wakes by itself.
func (c Hibernations) SetSchedule(ctx context.Context, environment string, wanted HibernationSchedule) (Hibernation, error) {
	var set Hibernation
	body := map[string]any{"zone": wanted.Zone, "sleep": append([]string{}, wanted.Sleep...), "wake": append([]string{}, wanted.Wake...)}
	return set, c.client.Call(ctx, http.MethodPut, hibernationPath(environment)+"/schedule", body, &set)
}

// DropSchedule ends the schedule of an environment, which stays as it is.
func (c Hibernations) DropSchedule(ctx context.Context, environment string) error {
	return c.client.Call(ctx, http.MethodDelete, hibernationPath(environment)+"/schedule", nil, nil)
}

// Preview shows the effect of hibernating an environment, or of waking one that sleeps.
func (c Hibernations) Preview(ctx context.Context, environment string) (HibernationPlan, error) {
	var plan HibernationPlan
	return plan, c.client.Call(ctx, http.MethodGet, hibernationPath(environment)+"/preview", nil, &plan)
}

// Hibernate begins to stop the servers of an environment, and returns the deployment's id.
func (c Hibernations) Hibernate(ctx context.Context, environment string) (deployment string, err error) {
	return c.begin(ctx, environment, "hibernate")
}

// Wake begins to start the servers of an environment, and returns the deployment's id.
func (c Hibernations) Wake(ctx context.Context, environment string) (deployment string, err error) {
	return c.begin(ctx, environment, "wake")
}

func (c Hibernations) begin(ctx context.Context, environment, does string) (string, error) {
	var answer struct {
		Task string `json:"task_id"`
	}
	err := c.client.Call(ctx, http.MethodPost, "/burano/v1/environments/"+environment+"/"+does, nil, &answer)
	return answer.Task, err
}
