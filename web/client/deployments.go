package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// Deployment is one run over an environment: of its deploy method, of an action, or of its deletion.
type Deployment struct {
	ID            string          `json:"id" yaml:"id"`
	EnvironmentID string          `json:"environment_id" yaml:"environment_id"`
	State         string          `json:"state" yaml:"state"`
	Started       string          `json:"started" yaml:"started"`
	Finished      *string         `json:"finished" yaml:"finished"`
	Action        json.RawMessage `json:"action" yaml:"-"`
}

// Method is the name of the run: the method of an action, or the deletion of the environment.
func (d Deployment) Method() string {
	var action *struct {
		Method string `json:"method"`
	}
	if json.Unmarshal(d.Action, &action) != nil || action == nil {
		return "delete"
	}
	return action.Method
}

// Report is one line of a deployment's log.
type Report struct {
	ID       string `json:"id" yaml:"id"`
	Task     string `json:"task_id" yaml:"task_id"`
	EntityID string `json:"entity_id" yaml:"entity_id"` // of the object that reports
	Entity   string `json:"entity" yaml:"entity"`
	Level    string `json:"level" yaml:"level"` // info, warning or error
	Text     string `json:"text" yaml:"text"`
	Details  any    `json:"details" yaml:"details"`
	Created  string `json:"created" yaml:"created"`
	Updated  string `json:"updated" yaml:"updated"`
}

// pageSize is how many of a list are asked for at a time.
const pageSize = 200

// Deployments are the calls about deployments and their reports.
type Deployments struct{ client *Client }

// Deployments returns the calls about deployments and their reports.
func (c *Client) Deployments() Deployments { return Deployments{c} }

// List lists the deployments of an environment, by its id, or of the whole project when that is ""; the newest comes first. It lists at most limit;
// 0 is all.
func (c Deployments) List(ctx context.Context, environment string, limit int) ([]Deployment, error) {
	path := "/v1/deployments"
	if environment != "" {
		path = "/v1/environments/" + environment + "/deployments"
	}
	all := []Deployment{}
	for marker := ""; ; {
		size := pageSize
		if limit > 0 {
			size = min(size, limit-len(all))
		}
		var answer struct {
			Deployments []Deployment `json:"deployments"`
			Next        string       `json:"next_marker"`
		}
		query := url.Values{"limit": {strconv.Itoa(size)}}
		if marker != "" {
			query.Set("marker", marker)
		}
		if err := c.client.Call(ctx, http.MethodGet, path+"?"+query.Encode(), nil, &answer); err != nil {
			return nil, err
		}
		all, marker = append(all, answer.Deployments...), answer.Next
		if marker == "" || len(all) == limit {
			return all, nil
		}
	}
}

// Newest is the deployment of an environment that was started last.
func (c Deployments) Newest(ctx context.Context, environment string) (Deployment, error) {
	newest, err := c.List(ctx, environment, 1)
	if err == nil && len(newest) == 0 {
		err = errors.New("nothing was ever deployed in this environment")
	}
	if err != nil {
		return Deployment{}, err
	}
	return newest[0], nil
}

// Get finds a deployment by its id, or the newest one of an environment that is named instead.
func (c Deployments) Get(ctx context.Context, name string) (Deployment, error) {
	var found Deployment
	err := c.client.Call(ctx, http.MethodGet, "/burano/v1/deployments/"+url.PathEscape(name), nil, &found)
	if !IsStatus(err, http.StatusNotFound) {
		return found, err
	}
	environment, err := c.client.Environments().Get(ctx, name)
	if IsStatus(err, http.StatusNotFound) {
		return Deployment{}, fmt.Errorf("the project has neither a deployment nor an environment %q: `burano deployment list` shows its deployments", name)
	}
	if err != nil {
		return Deployment{}, err
	}
	return c.Newest(ctx, environment.ID)
}

// Reports returns the reports of a deployment so far.
func (c Deployments) Reports(ctx context.Context, environment, deployment string) ([]Report, error) {
	var answer struct {
		Reports []Report `json:"reports"`
	}
	err := c.client.Call(ctx, http.MethodGet, "/v1/environments/"+environment+"/deployments/"+deployment, nil, &answer)
	return answer.Reports, err
}

// Step is a native step of a deployment.
type Step struct {
	ID       string   `json:"id" yaml:"id"`
	Object   string   `json:"object" yaml:"object"`
	Class    string   `json:"class" yaml:"class"`
	Name     string   `json:"name" yaml:"name"`
	Started  string   `json:"started" yaml:"started"`
	Finished *string  `json:"finished" yaml:"finished"`
	Seconds  *float64 `json:"seconds" yaml:"seconds"` // nil while it runs
	Error    *string  `json:"error" yaml:"error"`
	WaitsFor []string `json:"waits_for" yaml:"waits_for"` // ids of steps
}

// Steps lists the native steps of a deployment in the order of their start.
func (c Deployments) Steps(ctx context.Context, deployment string) ([]Step, error) {
	var answer struct {
		Steps []Step `json:"steps"`
	}
	err := c.client.Call(ctx, http.MethodGet, "/burano/v1/deployments/"+deployment+"/steps", nil, &answer)
	return answer.Steps, err
}

// ObjectReports returns the newest reports of an object, and of its content, in all runs over its environment, newest first; at most limit.
func (c Deployments) ObjectReports(ctx context.Context, environment, object string, limit int) ([]Report, error) {
	var answer struct {
		Reports []Report `json:"reports"`
	}
	query := url.Values{"object": {object}, "limit": {strconv.Itoa(limit)}}
	err := c.client.Call(ctx, http.MethodGet, "/burano/v1/environments/"+environment+"/reports?"+query.Encode(), nil, &answer)
	return answer.Reports, err
}

// Cancel cancels a deployment; its created resources stay.
func (c Deployments) Cancel(ctx context.Context, deployment string) error {
	return c.client.Call(ctx, http.MethodPost, "/burano/v1/deployments/"+deployment+"/cancel", nil, nil)
}

// Retry runs the last deployment of an environment again, which has failed. It returns the id of the new one.
func (c Deployments) Retry(ctx context.Context, deployment string) (id string, err error) {
	var started struct {
		Task string `json:"task_id"`
	}
	err = c.client.Call(ctx, http.MethodPost, "/burano/v1/deployments/"+deployment+"/retry", nil, &started)
	return started.Task, err
}
