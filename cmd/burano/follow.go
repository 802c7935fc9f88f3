package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/burano/burano/web/client"
)

// failedDeployment is a deployment that did not end well.
type failedDeployment struct{ state string }

func (f *failedDeployment) Error() string { return "the deployment ended in state " + f.state }

// followNewest prints the reports of the environment's newest deployment as they come, until it ends; a deployment that did not end
// well is an error.
func followNewest(ctx context.Context, api *client.Client, environment string, output io.Writer) error {
	current, err := api.NewestDeployment(ctx, environment)
	if err != nil {
		return err
	}
	return follow(ctx, api, current.ID, output)
}

// follow is followNewest for one certain deployment, which may be an action's.
func follow(ctx context.Context, api *client.Client, deployment string, output io.Writer) error {
	state, err := api.Follow(ctx, deployment, func(event client.Event) error {
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

// followOthers waits for a deployment of the environment that another user or command began, such as a command that was interrupted. It does not matter
// how that deployment ends.
func followOthers(ctx context.Context, api *client.Client, name string, output io.Writer) error {
	existing, err := api.Environment(ctx, name)
	if client.IsStatus(err, http.StatusNotFound) {
		return nil
	}
	if err != nil || existing.Status != "deploying" {
		return err
	}
	fmt.Fprintf(output, "environment %s is being deployed already: waiting for this to end\n", name)
	var ended *failedDeployment
	if err := followNewest(ctx, api, existing.ID, output); !errors.As(err, &ended) {
		return err
	}
	return nil
}
