// Command helm-release performs one operation of Burano on one Helm release, on a master: it reads a JSON object, the request, from standard input and
// writes another, the answer, to standard output. The answer has the release's errors; the exit code is not 0 when there is no answer. Called by the name
// helm it is Helm's own command, for people on a master: one file in the image serves both.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
)

// request is an operation on a release of a cluster.
type request struct {
	Action    string `json:"action"` // deploy, diff, rollback, uninstall or status
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Owner is the id of the object whose release it is; others' releases are left alone.
	Owner   string         `json:"owner"`
	Chart   []byte         `json:"chart"` // an archive (.tgz), for deploy and diff
	Values  map[string]any `json:"values"`
	Timeout int            `json:"timeout"` // seconds that one wait may take
	API     struct {
		Host        string `json:"host"`       // a URL
		ServerName  string `json:"serverName"` // in its certificate
		Authority   []byte `json:"authority"`  // PEM, as the next two
		Certificate []byte `json:"certificate"`
		Key         []byte `json:"key"`
	} `json:"api"`
}

// answer is how it went. Without a release Revision is 0.
type answer struct {
	Error      string         `json:"error,omitempty"`
	Revision   int            `json:"revision"`
	Status     string         `json:"status"` // Helm's, such as deployed
	Changed    bool           `json:"changed"`
	Chart      string         `json:"chart"` // name-version
	AppVersion string         `json:"appVersion"`
	Values     map[string]any `json:"values"` // as they were given
	Notes      string         `json:"notes"`
	// Back is the revision that a rollback went back to, and OtherChart is true when it has another chart than the one before.
	Back       int  `json:"back,omitempty"`
	OtherChart bool `json:"otherChart,omitempty"`
	// Pods are the release's pods that are not ready, for an error.
	Pods []pod `json:"pods,omitempty"`
	// Changes are a deployment's changes in Kubernetes, for a diff, and MoreChanges the number of further ones.
	Changes     []change `json:"changes,omitempty"`
	MoreChanges int      `json:"moreChanges,omitempty"`
	// Logs are the output of hooks with the annotation helm.sh/hook-output-log-policy.
	Logs string `json:"logs,omitempty"`
}

type pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// fieldManager is that of the objects of releases.
const fieldManager = "burano-helm"

// mostText bounds notes, errors and logs in bytes: Burano takes one MiB of output.
const mostText = 64 << 10

func main() {
	if filepath.Base(os.Args[0]) == helmName {
		os.Exit(runHelm())
	}
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(input io.Reader, output io.Writer) error {
	var asked request
	if err := json.NewDecoder(input).Decode(&asked); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	// Helm caches the API server's kinds in files; the next call must not trust them.
	folder, err := os.MkdirTemp("", "helm-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	r, err := open(asked, folder)
	if err != nil {
		return err
	}
	said, err := r.do()
	if err != nil {
		said.Error = end(err.Error())
		if said.Changed && asked.Action != "diff" {
			for _, one := range r.unready() {
				said.Pods = append(said.Pods, pod{one.Namespace, one.Name})
			}
		}
	}
	said.Notes, said.Logs = end(said.Notes), end(r.logs.String())
	return json.NewEncoder(output).Encode(said)
}

// end is the last part of a long text.
func end(text string) string {
	if len(text) > mostText {
		return "… " + text[len(text)-mostText:]
	}
	return text
}

// open connects to the cluster.
func open(asked request, folder string) (*releases, error) {
	flags := genericclioptions.NewConfigFlags(true)
	flags.APIServer, flags.Namespace, flags.CacheDir = &asked.API.Host, &asked.Namespace, &folder
	flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.Host = asked.API.Host
		config.TLSClientConfig = rest.TLSClientConfig{ServerName: asked.API.ServerName, CAData: asked.API.Authority, CertData: asked.API.Certificate, KeyData: asked.API.Key}
		config.QPS, config.Burst, config.UserAgent = 100, 200, fieldManager
		return config
	}
	kube.ManagedFieldsManager = fieldManager
	r := &releases{asked: asked, timeout: time.Duration(asked.Timeout) * time.Second}
	r.config = action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := r.config.Init(flags, asked.Namespace, "secret"); err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	r.config.HookOutputFunc = func(namespace, pod, container string) io.Writer {
		fmt.Fprintf(&r.logs, "container %s of %s/%s:\n", container, namespace, pod)
		return &r.logs
	}
	return r, nil
}

func (r *releases) do() (said answer, err error) {
	switch r.asked.Action {
	case "deploy":
		return r.alone(r.deploy)
	case "rollback":
		return r.alone(r.rollback)
	case "uninstall":
		said, err = r.alone(r.uninstall)
		if err == nil {
			r.forget()
		}
		return said, err
	case "diff":
		return r.diff()
	case "status":
		return r.status()
	}
	return answer{}, errors.New("the action is none of deploy, diff, rollback, uninstall and status")
}

// waits is the number of Helm's waits in one request: for custom resources, hooks before and after, and the readiness of objects.
const waits = 4

// alone runs work under the release's lock, and cancels the wait for its pods once it is in vain.
func (r *releases) alone(work func() (answer, error)) (said answer, err error) {
	lockErr := r.locked(waits*r.timeout, func(ctx context.Context) error {
		watched, giveUp := context.WithCancelCause(ctx)
		defer giveUp(nil)
		r.waits = []kube.WaitOption{kube.WithWaitContext(watched)}
		if r.asked.Action != "uninstall" { // which waits for no pod to become ready
			go r.watch(watched, giveUp)
		}
		said, err = work()
		if cause := context.Cause(watched); err != nil && cause != nil {
			// Helm itself only knows that its wait was ended.
			err = fmt.Errorf("%s; %w", strings.TrimSpace(strings.ReplaceAll(err.Error(), context.Canceled.Error(), "")), cause)
		}
		return nil
	})
	return said, errors.Join(err, lockErr)
}
