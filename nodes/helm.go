package nodes

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/memory"
	"github.com/burano/burano/nodes/ssh"
)

// Helm releases are worked on by the program helm-release of a master's image (images/modules/helm): a chart's templates run there.

//go:embed scripts/helm-release.sh
var helmReleaseScript string

// HelmRequest is a request to change a Helm release.
type HelmRequest struct {
	Action    string         `json:"action"` // deploy, rollback, uninstall, or, which change nothing, diff and status
	Name      string         `json:"name"`
	Namespace string         `json:"namespace"`
	Owner     string         `json:"owner"`            // the id of the object whose release it is; those of others are refused
	Chart     []byte         `json:"chart,omitempty"`  // an archive (.tgz), for deploy and diff
	Values    map[string]any `json:"values,omitempty"` // for deploy and diff
	Timeout   int            `json:"timeout"`          // seconds that each wait of Helm may take: for hooks, and for readiness
}

// HelmAnswer is the result of a request.
type HelmAnswer struct {
	Error      string         `json:"error"`    // "" when it went well
	Revision   int            `json:"revision"` // the newest; 0 where there is no release
	Status     string         `json:"status"`   // Helm's: deployed, failed, ...
	Changed    bool           `json:"changed"`  // whether there was something to do
	Chart      string         `json:"chart"`    // name-version
	AppVersion string         `json:"appVersion"`
	Values     map[string]any `json:"values"`
	Notes      string         `json:"notes"`
	Back       int            `json:"back"`       // the revision that a rollback went back to
	OtherChart bool           `json:"otherChart"` // which had another chart than the one before
	Pods       []HelmPod      `json:"pods"`       // those that are not ready, with an error
	Logs       string         `json:"logs"`       // of hooks that say that they are to be seen
	// Changes are the changes of a deployment in Kubernetes, for a diff, and MoreChanges is the number of further ones.
	Changes     []HelmChange `json:"changes"`
	MoreChanges int          `json:"moreChanges"`
}

// HelmChange is an object of Kubernetes that a deployment of a release would add, change or remove.
type HelmChange struct {
	What      string      `json:"what"` // added, changed or removed
	Kind      string      `json:"kind"`
	Namespace string      `json:"namespace"` // "" where the chart does not say it
	Name      string      `json:"name"`
	Fields    []HelmField `json:"fields"` // of a changed object
	More      int         `json:"more"`   // of its fields, besides
}

// HelmField is a part of an object that would change; nil is an absent value. The values of Secrets are masked.
type HelmField struct {
	Path   string `json:"path"` // such as spec.template.spec.containers[web].image
	Before any    `json:"before"`
	After  any    `json:"after"`
}

// HelmPod is a pod of a release.
type HelmPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// helmMissing is the exit code of the script where the image has no such program.
const helmMissing = 86

// helmWaits is how many waits of Helm one request may have: for custom resources, hooks before and after, and readiness.
const helmWaits = 4

// ErrNoDiff is that the program of the master's image is older than diffs.
var ErrNoDiff = errors.New("the image of the cluster's master is older than previews of Helm releases: upgrade the cluster to a newer image (action upgrade)")

// ofOlder is how a program that is older than diffs says that it knows none.
const ofOlder = "the action is none of deploy, rollback"

// How large the answer of a master's program may be, in bytes and in memory. It has the values of a release, which Kubernetes keeps in a Secret of 1 MiB,
// compressed.
const (
	mostHelm        = 16 << 20
	mostHelmDecoded = 256 << 20
)

// helmLook is how long the preview of a deployment may take.
const helmLook = 30 * time.Second

// ErrNoHelm is that no master's image has the program for Helm releases.
var ErrNoHelm = errors.New("the image of the cluster's master is older than Helm releases: upgrade the cluster to a newer image (action upgrade), and deploy again")

// Helm does something with a release, on the first master that answers. A release that did not come up is no error here, but one of the answer.
func (c *kubernetesAPI) Helm(ctx context.Context, request HelmRequest) (HelmAnswer, error) {
	api, err := c.Kubernetes(ctx)
	if err != nil {
		return HelmAnswer{}, err
	}
	type access struct {
		Host        string `json:"host"`
		ServerName  string `json:"serverName"`
		Authority   []byte `json:"authority"`
		Certificate []byte `json:"certificate"`
		Key         []byte `json:"key"`
	}
	input, err := json.Marshal(struct {
		HelmRequest
		API access `json:"api"`
	}{request, access{api.Host, api.ServerName, api.CAData, api.CertData, api.KeyData}})
	if err != nil {
		return HelmAnswer{}, fmt.Errorf("write the values of Helm release %s: %w", request.Name, err)
	}
	client, err := c.firstMaster(ctx)
	if err != nil {
		return HelmAnswer{}, err
	}
	limit, lock := helmWaits*time.Duration(request.Timeout)*time.Second+time.Minute, request.Namespace+"."+request.Name
	if request.Action == "diff" {
		limit, lock = helmLook, ""
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
	defer cancel()
	held := memory.Of(ctx).Answer()
	defer held.End()
	output := &door.Buffer{Limit: mostHelm, What: "the answer about Helm release " + request.Name, Grow: held.Grow}
	err = client.Stream(ctx, ssh.Job{
		Name: "Helm release " + request.Name, Script: helmReleaseScript, Input: bytes.NewReader(input), Stdout: output,
		Args: []string{lock, strconv.Itoa(int(limit.Seconds()))},
	})
	var exit *ssh.ExitError
	if errors.As(err, &exit) && exit.Code == helmMissing {
		return HelmAnswer{}, ErrNoHelm
	}
	if err != nil {
		return HelmAnswer{}, err
	}
	var answer HelmAnswer
	if err := door.DecodeJSON(bytes.NewReader(output.Bytes()), &answer, mostHelm, mostHelmDecoded, output.What); err != nil {
		return HelmAnswer{}, fmt.Errorf("read what became of Helm release %s: %w", request.Name, err)
	}
	if request.Action == "diff" && strings.HasPrefix(answer.Error, ofOlder) {
		return HelmAnswer{}, ErrNoDiff
	}
	return answer, nil
}

// firstMaster connects to the first master that answers.
func (c *kubernetesAPI) firstMaster(ctx context.Context) (*ssh.Client, error) {
	masters := c.masters()
	if len(masters) == 1 {
		return c.connect(ctx, masters[0])
	}
	var failures []error
	for _, master := range masters {
		reach, cancel := context.WithTimeout(ctx, apiReach)
		client, err := c.connect(reach, master)
		cancel()
		if err == nil {
			return client, nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", master.Name, err))
	}
	return nil, fmt.Errorf("no master answers: %w", errors.Join(failures...))
}
