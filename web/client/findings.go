package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Finding is something in an environment that is not as it should be.
type Finding struct {
	ID            string     `json:"id" yaml:"id"`
	EnvironmentID string     `json:"environment_id" yaml:"environment_id"`
	Duty          string     `json:"duty" yaml:"duty"`           // the duty of the finding
	ObjectID      string     `json:"object_id" yaml:"object_id"` // of the model; "" for the environment
	Kind          string     `json:"kind" yaml:"kind"`
	Subject       string     `json:"subject" yaml:"subject"` // within the object, such as a node
	Severity      string     `json:"severity" yaml:"severity"`
	Text          string     `json:"text" yaml:"text"`
	Mends         string     `json:"mends" yaml:"mends"`
	Remedies      []Remedy   `json:"remedies" yaml:"remedies"` // the same for programs
	Since         time.Time  `json:"since" yaml:"since"`
	Closed        *time.Time `json:"closed" yaml:"closed"` // nil while it is open
	Repairs       int64      `json:"repairs" yaml:"repairs"`
	DeploymentID  string     `json:"deployment_id" yaml:"deployment_id"` // of the last repair; "" for none
	NextRepair    *time.Time `json:"next_repair" yaml:"next_repair"`
}

// Remedy is a way to mend a finding.
type Remedy struct {
	Kind string `json:"kind" yaml:"kind"` // words with dashes, such as reboot-node
	Node string `json:"node" yaml:"node"` // "" for none
}

// Findings lists the findings of an environment, or of all of the project when that is "", the worst first; with closed also closed ones.
func (c Environments) Findings(ctx context.Context, environment string, closed bool) ([]Finding, error) {
	path := "/burano/v1/findings"
	if environment != "" {
		path = "/burano/v1/environments/" + environment + "/findings"
	}
	var all []Finding
	query := url.Values{"limit": {"1000"}}
	if closed {
		query.Set("closed", "true")
	}
	for {
		var page struct {
			Findings []Finding `json:"findings"`
			Next     string    `json:"next_marker"`
		}
		if err := c.client.Call(ctx, http.MethodGet, path+"?"+query.Encode(), nil, &page); err != nil {
			return nil, err
		}
		if all = append(all, page.Findings...); page.Next == "" {
			return all, nil
		}
		query.Set("marker", page.Next)
	}
}
