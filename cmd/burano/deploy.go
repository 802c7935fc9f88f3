package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// pollInterval is how often it is asked whether an environment is gone.
const pollInterval = 300 * time.Millisecond

// cleanupTimeout is for taking back what was begun, after an interrupt too.
const cleanupTimeout = 10 * time.Second

// deployment is a deployment as the API tells it.
type deployment struct {
	ID    string `json:"id"`
	State string `json:"state"`
}

// report is one line of a deployment's log.
type report struct {
	Level   string `json:"level"`
	Text    string `json:"text"`
	Created string `json:"created"`
}

func deployCommand(connection *connection) *cobra.Command {
	var follow, dryRun bool
	command := &cobra.Command{
		Use:   "deploy FILE",
		Short: "Deploy an environment with its applications, as a YAML file describes them",
		Long: `Deploy makes the environment that FILE names when the project has none of that name, replaces its applications by those
of the file, and deploys it. Deploying an unchanged file again changes nothing that runs.

The file has a name and a list of applications, each an object model as Murano's API takes it; ids may be any readable
names, and an application refers to another by them:

  name: demo
  applications:
    - "?": {type: com.mirantis.docker.kubernetes.KubernetesCluster, id: cluster}
      name: cluster
      …
    - "?": {type: com.mirantis.docker.kubernetes.KubernetesPod, id: pod}
      kubernetesCluster: cluster
      …`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			described, err := readEnvironmentFile(args[0])
			if err != nil {
				return err
			}
			client, err := connection.connect(command.Context())
			if err != nil {
				return err
			}
			if dryRun {
				return client.wouldDeploy(command.Context(), described, command.OutOrStdout())
			}
			if follow {
				if err := client.followOthers(command.Context(), described.Name, command.OutOrStdout()); err != nil {
					return err
				}
			}
			environment, err := client.deploy(command.Context(), described)
			if err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "environment %s (%s) is being deployed\n", described.Name, environment)
			if !follow {
				return nil
			}
			return client.follow(command.Context(), environment, command.OutOrStdout())
		},
	}
	command.Flags().BoolVarP(&follow, "follow", "f", false, "show the deployment's reports as they come; the exit code tells how it ended")
	command.Flags().BoolVar(&dryRun, "dry-run", false, "show what would be added, changed and removed, and what is wrong with the file; do nothing")
	return command
}

// environmentFile is what `burano deploy` reads.
type environmentFile struct {
	Name            string           `yaml:"name"`
	DefaultNetworks map[string]any   `yaml:"defaultNetworks"`
	Applications    []map[string]any `yaml:"applications"`
}

func readEnvironmentFile(path string) (environmentFile, error) {
	var file environmentFile
	data, err := os.ReadFile(path)
	if err != nil {
		return file, err
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(data)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		return file, fmt.Errorf("%s: %w", path, err)
	}
	if file.Name == "" {
		return file, fmt.Errorf("%s: no name: give the environment one with a top-level `name:`", path)
	}
	for i, application := range file.Applications {
		header, ok := application["?"].(map[string]any)
		if !ok || header["type"] == nil {
			return file, fmt.Errorf("%s: applications[%d] does not say what it is: it needs \"?\": {type: …, id: …}", path, i)
		}
	}
	return file, nil
}

// deploy brings the environment to what the file says and returns its id.
func (c *client) deploy(ctx context.Context, file environmentFile) (id string, err error) {
	existing, err := c.environment(ctx, file.Name)
	isNew := isStatus(err, http.StatusNotFound)
	if isNew {
		body := map[string]any{"name": file.Name}
		if file.DefaultNetworks != nil {
			body["defaultNetworks"] = file.DefaultNetworks
		}
		err = c.call(ctx, http.MethodPost, "/v1/environments", body, &existing)
	}
	if err != nil {
		return "", err
	}
	session, err := c.draft(ctx, existing.ID, file, "?validate=true")
	if err != nil && isNew {
		// Nothing was ever deployed in it: it goes at once.
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		err = errors.Join(err, c.call(cleanup, http.MethodDelete, "/v1/environments/"+existing.ID, nil, nil))
	}
	if err != nil {
		return "", err
	}
	if err := c.call(ctx, http.MethodPost, "/v1/environments/"+existing.ID+"/sessions/"+session+"/deploy", nil, nil); err != nil {
		return "", errors.Join(err, c.dropDraft(ctx, existing.ID, session))
	}
	return existing.ID, nil
}

// draft opens a session of an environment with the file's applications. The query may ask the server to check them.
func (c *client) draft(ctx context.Context, id string, file environmentFile, query string) (session string, err error) {
	var opened sessionRow
	if err := c.call(ctx, http.MethodPost, "/v1/environments/"+id+"/configure", nil, &opened); err != nil {
		return "", err
	}
	err = c.call(ctx, http.MethodPut, "/v1/environments/"+id+"/services"+query, withStableIDs(id, file.Applications), nil, "X-Configuration-Session", opened.ID)
	if err != nil {
		return "", errors.Join(err, c.dropDraft(ctx, id, opened.ID))
	}
	return opened.ID, nil
}

// dropDraft deletes a session, so that the environment is not left with a draft that nobody will come back to.
func (c *client) dropDraft(ctx context.Context, id, session string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return c.call(ctx, http.MethodDelete, "/v1/environments/"+id+"/sessions/"+session, nil, nil)
}

// wouldDeploy prints what deploy would do, by a draft that is dropped again.
func (c *client) wouldDeploy(ctx context.Context, file environmentFile, out io.Writer) error {
	existing, err := c.environment(ctx, file.Name)
	if isStatus(err, http.StatusNotFound) {
		fmt.Fprintf(out, "environment %s would be made, with %d applications; they are checked when they are deployed\n", file.Name, len(file.Applications))
		return nil
	}
	if err != nil {
		return err
	}
	session, err := c.draft(ctx, existing.ID, file, "")
	if err != nil {
		return err
	}
	var answer preview
	err = c.call(ctx, http.MethodGet, "/burano/v1/environments/"+existing.ID+"/sessions/"+session+"/preview", nil, &answer)
	if err := errors.Join(err, c.dropDraft(ctx, existing.ID, session)); err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	answer.print(table)
	return errors.Join(table.Flush(), answer.err())
}

// withStableIDs replaces the readable ids of objects, and the references to them, by ids that are unique but the same each time
// for one environment. Objects without an id get one from their place in the file.
func withStableIDs(environment string, applications []map[string]any) []any {
	space := uuid.NewSHA1(uuid.NameSpaceURL, []byte("burano:environment:"+environment))
	ids := map[string]string{}
	identify := func(name string) string {
		if _, err := uuid.Parse(name); err == nil {
			return name
		}
		if ids[name] == "" {
			ids[name] = strings.ReplaceAll(uuid.NewSHA1(space, []byte(name)).String(), "-", "")
		}
		return ids[name]
	}
	var collect func(value any, path string)
	collect = func(value any, path string) {
		switch value := value.(type) {
		case map[string]any:
			if header, ok := value["?"].(map[string]any); ok {
				name, _ := header["id"].(string)
				if name == "" {
					name = path
				}
				header["id"] = identify(name)
			}
			for key, inner := range value {
				if key != "?" {
					collect(inner, path+"/"+key)
				}
			}
		case []any:
			for i, inner := range value {
				collect(inner, fmt.Sprintf("%s/%d", path, i))
			}
		}
	}
	result := make([]any, len(applications))
	for i, application := range applications {
		collect(application, fmt.Sprintf("/%d", i))
		result[i] = application
	}
	// Only a whole string that is some object's readable id, under a key that is not a name, is a reference to it.
	var refer func(value any, key string) any
	refer = func(value any, key string) any {
		switch value := value.(type) {
		case map[string]any:
			for key, inner := range value {
				if key != "?" {
					value[key] = refer(inner, key)
				}
			}
		case []any:
			for i, inner := range value {
				value[i] = refer(inner, key)
			}
		case string:
			if id, ok := ids[value]; ok && key != "name" {
				return id
			}
		}
		return value
	}
	return refer(result, "").([]any)
}

// followOthers waits for a deployment of the environment that somebody else has begun, such as a command that was interrupted. How
// that one ends does not matter.
func (c *client) followOthers(ctx context.Context, name string, output io.Writer) error {
	existing, err := c.environment(ctx, name)
	if isStatus(err, http.StatusNotFound) {
		return nil
	}
	if err != nil || existing.Status != "deploying" {
		return err
	}
	fmt.Fprintf(output, "environment %s is being deployed already: waiting for this to end\n", name)
	var ended *failedDeployment
	if err := c.follow(ctx, existing.ID, output); !errors.As(err, &ended) {
		return err
	}
	return nil
}

func (c *client) deployments(ctx context.Context, environment string) ([]deployment, error) {
	var answer struct {
		Deployments []deployment `json:"deployments"`
	}
	err := c.call(ctx, http.MethodGet, "/v1/environments/"+environment+"/deployments", nil, &answer)
	return answer.Deployments, err
}

// newestDeployment returns the deployment that was started last.
func (c *client) newestDeployment(ctx context.Context, environment string) (deployment, error) {
	all, err := c.deployments(ctx, environment)
	if err != nil {
		return deployment{}, err
	}
	if len(all) == 0 {
		return deployment{}, errors.New("nothing was ever deployed in this environment")
	}
	return all[0], nil
}
