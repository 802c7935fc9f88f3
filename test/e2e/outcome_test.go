package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the previews of the table of ordinary edits instead of comparing them")

// ordinary is a file that is deployed again and again, with the markers in the volumes of its applications.
type ordinary struct {
	isWhole bool       // all edits, and not only the short form of the table
	whole   *testing.T // the test of which each edit is a part
	lab     *lab
	demo    *user
	file    string
	model   string // the file's content
	cluster *cluster
	markers map[string]place // by the marker's text; empty while no application has the volume
}

// place is a path in the newest pod of a KubernetesPod.
type place struct{ pod, path string }

func newOrdinary(t *testing.T, l *lab) *ordinary {
	text, err := os.ReadFile("testdata/ordinary.yaml")
	require.NoError(t, err)
	o := &ordinary{isWhole: soaking(), whole: t, lab: l, demo: l.user(t, "burano-demo"), file: filepath.Join(t.TempDir(), "ordinary.yaml"), model: string(text),
		markers: map[string]place{"pages": {"store", "/data"}, "ledger": {"bank", "/data"}, "log": {"bank", "/log"}}}
	o.write(t)
	l.deleteIfFailed(t, "ordinary")
	return o
}

func (o *ordinary) write(t *testing.T) {
	require.NoError(t, os.WriteFile(o.file, []byte(o.model), 0o600))
}

// edit replaces texts of the file, in pairs of a present and a new one, at the same time. Each must be there.
func (o *ordinary) edit(t *testing.T, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		require.Contains(t, o.model, pairs[i])
	}
	o.model = strings.NewReplacer(pairs...).Replace(o.model)
	o.write(t)
}

// burano runs the client and returns its output and exit code.
func (o *ordinary) burano(t *testing.T, args ...string) (string, int) {
	t.Helper()
	command := exec.Command(o.lab.program("burano"), args...)
	command.Env = append(os.Environ(), o.lab.as("burano-demo")...)
	output, err := command.CombinedOutput()
	if err != nil {
		require.NotNil(t, command.ProcessState, "%v", err)
	}
	return string(output), command.ProcessState.ExitCode()
}

// observe returns a fingerprint of each server of the project and of each object of the namespace default, by kind and name.
func (o *ordinary) observe(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	pages, err := servers.List(o.demo.nova(t), nil).AllPages(t.Context())
	require.NoError(t, err)
	all, err := servers.ExtractServers(pages)
	require.NoError(t, err)
	for _, one := range all {
		found["server "+one.Name] = one.ID
	}
	var list struct {
		Items []map[string]any `json:"items"`
	}
	text := o.cluster.kubectl(t, "", "get", "deployments,statefulsets,daemonsets,jobs,cronjobs,services,configmaps,secrets,pvc,ingresses,poddisruptionbudgets", "-o", "json")
	require.NoError(t, json.Unmarshal([]byte(text), &list), text)
	for _, item := range list.Items {
		metadata := item["metadata"].(map[string]any)
		name := fmt.Sprintf("%s default/%s", item["kind"], metadata["name"])
		if name == "Service default/kubernetes" || name == "ConfigMap default/kube-root-ca.crt" {
			continue
		}
		annotations, _ := metadata["annotations"].(map[string]any)
		delete(annotations, "deployment.kubernetes.io/revision") // Kubernetes' own
		delete(item, "status")
		item["metadata"] = []any{metadata["uid"], metadata["labels"], annotations}
		content, err := json.Marshal(item)
		require.NoError(t, err)
		found[name] = string(content)
	}
	return found
}

// outcome lists the differences between two observations, with the signs of a preview.
func outcome(before, after map[string]string) (lines []string) {
	for name, content := range after {
		switch former, isThere := before[name]; {
		case !isThere:
			lines = append(lines, "+ "+name)
		case former != content:
			lines = append(lines, "~ "+name)
		}
	}
	for name := range before {
		if _, isThere := after[name]; !isThere {
			lines = append(lines, "- "+name)
		}
	}
	for i, line := range lines {
		if strings.Contains(line, " Secret ") {
			lines[i] = endOfSecret.ReplaceAllString(line, "-xxxxx")
		}
	}
	slices.Sort(lines)
	return lines
}

// endOfSecret is the end that Kubernetes gives to the generated name of a Secret.
var endOfSecret = regexp.MustCompile(`-[a-z0-9]{5}$`)

var (
	announcedObject    = regexp.MustCompile(`^([+~-]) in .*: (\w+ \S+)$`)
	announcedLoss      = regexp.MustCompile(`^x the server (\S+) `)
	announcedServers   = regexp.MustCompile(`^> servers are made: (.*)$`)
	announcedSuccessor = regexp.MustCompile(`^> server (\S+) \(\S+\) is gone from Nova: a new one takes its place$`)
)

// announced lists the changes that a preview shows, in the form of outcome.
func announced(preview string) (lines []string) {
	for line := range strings.Lines(preview) {
		line = strings.TrimRight(line, " \n")
		if match := announcedObject.FindStringSubmatch(line); match != nil {
			lines = append(lines, match[1]+" "+match[2])
		}
		if match := announcedLoss.FindStringSubmatch(line); match != nil {
			lines = append(lines, "- server "+match[1])
		}
		if match := announcedServers.FindStringSubmatch(line); match != nil {
			for name := range strings.SplitSeq(match[1], ", ") {
				lines = append(lines, "+ server "+name)
			}
		}
		if match := announcedSuccessor.FindStringSubmatch(line); match != nil {
			lines = append(lines, "+ server "+match[1])
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

var differing = []struct {
	text  *regexp.Regexp
	stays string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "ID"},
	{regexp.MustCompile(`made \d+ \w+( \d{4})?`), "made DATE"},
	{regexp.MustCompile(`\b10\.(8|9|20|24)\d*\.\d+\.\d+\b`), "ADDRESS"},
	{regexp.MustCompile(`req-UUID|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "X"},
	{regexp.MustCompile(`= stays: \d+ snapshots[^\n]*\n`), ""},               // the keeper makes them by time
	{regexp.MustCompile(`\bbank-ledger-[a-z0-9]{5}\b`), "bank-ledger-xxxxx"}, // the end is Kubernetes' choice
	{regexp.MustCompile(`[ \t]+\n`), "\n"},
}

// stable replaces ids, dates and addresses, which differ from run to run.
func stable(text string) string {
	for _, one := range differing {
		text = one.text.ReplaceAllString(text, one.stays)
	}
	return text
}

// sameAsFile compares a text with testdata/ordinary/FORM/NAME.txt; -update writes it. The whole table has other states before its edits than the short one.
func (o *ordinary) sameAsFile(t *testing.T, name, text string) {
	t.Helper()
	form := "short"
	if o.isWhole {
		form = "whole"
	}
	path := filepath.Join("testdata/ordinary", form, regexp.MustCompile(`\W+`).ReplaceAllString(name, "-")+".txt")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return
	}
	expected, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(expected), text)
}

// mark writes the markers.
func (o *ordinary) mark(t *testing.T) {
	for marker, at := range o.markers {
		output, err := o.cluster.inNewestPod(t, at.pod, "echo "+marker+" > "+at.path+"/marker && sync")
		require.NoError(t, err, output)
	}
}

// keeps demands that each application has its markers.
func (o *ordinary) keeps(t *testing.T) {
	t.Helper()
	for _, marker := range slices.Sorted(maps.Keys(o.markers)) {
		at := o.markers[marker]
		if at == (place{}) {
			continue
		}
		o.lab.eventually(t, time.Minute, fmt.Sprintf("pod %s has the marker %s at %s", at.pod, marker, at.path), func() error {
			output, err := o.cluster.inNewestPod(t, at.pod, "cat "+at.path+"/marker")
			if err == nil && strings.TrimSpace(output) != marker {
				err = fmt.Errorf("%q is there", output)
			}
			return err
		})
	}
}
