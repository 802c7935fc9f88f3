package client

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/burano/burano/internal/wait"
)

// Deletion is the effect of deleting an environment.
type Deletion struct {
	Goes  []string `json:"goes"`  // deleted, with all content
	Stays []string `json:"stays"` // not deleted
	// Consents are clusters that go, which whoever deletes must have agreed to.
	Consents []Consent `json:"consents"`
	Busy     *Busy     `json:"busy"` // nil: nothing runs in it
}

// Busy is a task that runs in an environment, so that it cannot be deleted now.
type Busy struct {
	DeploymentID string `json:"deployment_id"`
	Kind         string `json:"kind"` // deployment, deletion, or action and its name
	UserID       string `json:"user_id"`
	UserName     string `json:"user_name"` // "" where it is not known
	Since        string `json:"since"`
}

func (b *Busy) Error() string {
	return fmt.Sprintf("it is busy: a %s of %s runs since %s UTC (deployment %s)", b.Kind, cmp.Or(b.UserName, b.UserID), strings.Replace(b.Since, "T", " ", 1), b.DeploymentID)
}

// Missing are the consents that ids and names of clusters do not give.
func (d Deletion) Missing(allowDestroy []string) (missing []Consent) {
	for _, one := range d.Consents {
		if !slices.Contains(allowDestroy, one.ObjectID) && !slices.Contains(allowDestroy, one.Name) {
			missing = append(missing, one)
		}
	}
	return missing
}

// Deletion previews the deletion of an environment. Nothing is done.
func (c Environments) Deletion(ctx context.Context, environment string) (Deletion, error) {
	var answer Deletion
	return answer, c.client.Call(ctx, http.MethodGet, "/burano/v1/environments/"+environment+"/deletion", nil, &answer)
}

// WaitIdle returns when nothing runs in an environment.
func (c Environments) WaitIdle(ctx context.Context, id string) error {
	return wait.Every(pollInterval).Until(ctx, func(ctx context.Context) error {
		var current Environment
		if err := c.client.Call(ctx, http.MethodGet, "/v1/environments/"+id, nil, &current); err != nil {
			return err
		}
		if current.Status == "deploying" || current.Status == "deleting" {
			return wait.Again(fmt.Errorf("it is %s", current.Status))
		}
		return nil
	})
}
