package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/burano/burano/web/client"
)

// failedDeployment is a deployment that did not end well.
type failedDeployment struct{ state string }

func (f *failedDeployment) Error() string { return "the deployment ended in state " + f.state }

// FollowNewest prints the reports of the environment's newest deployment as they come, until it ends; a deployment that did not end
// well is an error.
func FollowNewest(ctx context.Context, api *client.Client, environment string, output io.Writer) error {
	current, err := api.Deployments().Newest(ctx, environment)
	if err != nil {
		return err
	}
	return Follow(ctx, api, current.ID, output)
}

// Follow is followNewest for one certain deployment, which may be an action's.
func Follow(ctx context.Context, api *client.Client, deployment string, output io.Writer) error {
	state, err := api.Deployments().Follow(ctx, deployment, func(event client.Event) error {
		if line := event.Report; line != nil {
			fmt.Fprintf(output, "%s  %-7s  %s\n", line.Created, line.Level, line.Text)
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(output, "deployment %s: %s\n", deployment, state)
	if !client.Succeeded(state) {
		return &failedDeployment{state}
	}
	return nil
}

// FollowOthers waits for a deployment of the environment that another user or command began, such as a command that was interrupted. It does not matter
// how that deployment ends.
func FollowOthers(ctx context.Context, api *client.Client, name string, output io.Writer) error {
	existing, err := api.Environments().Get(ctx, name)
	if client.IsStatus(err, http.StatusNotFound) {
		return nil
	}
	if err != nil || existing.Status != "deploying" {
		return err
	}
	fmt.Fprintf(output, "environment %s is being deployed already: waiting for this to end\n", name)
	var ended *failedDeployment
	if err := FollowNewest(ctx, api, existing.ID, output); !errors.As(err, &ended) {
		return err
	}
	return nil
}

// PrintResult prints the result of an action. When only that is asked for, nothing is printed as null, and an action that failed or
// still runs is an error.
func PrintResult(ctx context.Context, api *client.Client, environment, task string, output io.Writer, asked bool) error {
	result, err := api.Actions().Result(ctx, environment, task)
	if err != nil {
		return err
	}
	switch {
	case result.IsException == nil && asked:
		return errors.New("the action has not ended yet")
	case result.IsException != nil && *result.IsException && asked:
		var thrown struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(result.Result, &thrown) != nil || thrown.Message == "" {
			thrown.Message = string(result.Result)
		}
		return fmt.Errorf("the action failed: %s", thrown.Message)
	case result.IsException == nil || *result.IsException || string(result.Result) == "null" && !asked:
		return nil
	}
	return WriteJSON(output, result.Result)
}
