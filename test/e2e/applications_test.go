package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"
)

// TestApplicationsOfMuranosKindRunOnServers deploys three kinds, each from its form to an answer by its protocol. They are a database with
// its data on a volume and a client on another server, an application of io.murano.applications that scales, and a Heat template of two
// servers.
func TestApplicationsOfMuranosKindRunOnServers(t *testing.T) {
	a := newApplications(t, start(t), "Database", "Ledger", "Pages", "Pair")
	found := inventory(t, a.user)
	t.Run("a database keeps its data when its server is rebuilt", func(t *testing.T) {
		soakOnly(t, "`make soak` runs this: TestApplicationsRunWithoutHeat does the same, and the other cases run with Heat")
		a.database(t)
		a.remove(t, "ledger")
	})
	t.Run("an application scales out and in", a.scales)
	t.Run("a Heat template of two servers", a.pair)
	asBefore(t, a.user, found)
}

// TestApplicationsRunWithoutHeat deploys the database with its volume and its client, has its server rebuilt, and deletes it, where Burano makes
// the stack itself. Changes that would destroy the server are refused as with Heat.
func TestApplicationsRunWithoutHeat(t *testing.T) {
	l := start(t)
	l.stop(t)
	l.launch(t, "--orchestration", "direct")
	l.healthy(t)
	a := newApplications(t, l, "Database", "Ledger")
	found := inventory(t, a.user)
	environment := a.database(t)
	now := inventory(t, a.user)
	require.Equal(t, found["stacks"], now["stacks"], "Heat has no part in it")
	require.Len(t, now["volumes"], len(found["volumes"])+1)

	session := a.draft(t, environment)
	all := a.user.must(t, http.MethodGet, "/v1/environments/"+environment, nil)["services"].([]any)
	n := slices.IndexFunc(all, func(one any) bool { return one.(map[string]any)["name"] == "Database" })
	instance := all[n].(map[string]any)["instance"].(map[string]any)
	server := instance["openstackId"].(string)
	instance["flavor"] = "m1.medium"
	a.user.must(t, http.MethodPut, fmt.Sprintf("/v1/environments/%s/services/%d", environment, n), all[n], "X-Configuration-Session", session)
	task, log := a.try(t, environment, session)
	require.NotEqual(t, "success", task["state"])
	require.Contains(t, log, "flavor")
	kept, err := servers.Get(t.Context(), a.user.nova(t), server).Extract()
	require.NoError(t, err)
	require.Equal(t, "ACTIVE", kept.Status)
	require.Equal(t, "what was written before\nwhat came after\n", a.page(t, environment, "Ledger"))
	a.remove(t, "ledger")
	asBefore(t, a.user, found)
}

// newApplications imports these packages of test/packages.
func newApplications(t *testing.T, l *lab, packages ...string) *applications {
	a := &applications{lab: l, user: l.user(t, "burano-demo"), packages: map[string]string{}}
	for _, name := range packages {
		l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.test."+name)
	}
	for _, one := range a.user.must(t, http.MethodGet, "/v1/catalog/packages", nil)["packages"].([]any) {
		a.packages[one.(map[string]any)["fully_qualified_name"].(string)] = one.(map[string]any)["id"].(string)
	}
	return a
}

// applications is shared by the cases.
type applications struct {
	lab      *lab
	user     *user
	packages map[string]string // name → id
}

const (
	smallServer = "m1.small"
	nodeImage   = "burano-node"
)

// database leaves the environment "ledger" with the rows that were written before and after the rebuild.
func (a *applications) database(t *testing.T) (environment string) {
	environment = a.environment(t, "ledger")
	sources := debian(t)
	server := map[string]any{"flavor": smallServer, "image": nodeImage}
	session := a.draft(t, environment)
	database := a.add(t, environment, session, "io.burano.test.Database", "Database", map[string]any{
		"database": map[string]any{"password": "Ledger-1$ecret!", "sources": strings.Join(sources, "\n")}, "server": server})
	a.add(t, environment, session, "io.burano.test.Ledger", "Ledger", map[string]any{"ledger": map[string]any{"database": database}, "server": server})
	a.deploy(t, environment, session)

	s := &scaling{lab: a.lab, user: a.user, environment: environment}
	require.Empty(t, a.page(t, environment, "Ledger"))
	s.act(t, "Ledger", "add", map[string]any{"line": "what was written before"})
	require.Equal(t, "what was written before\n", a.page(t, environment, "Ledger"))

	instance := a.application(t, environment, "Database")["instance"].(map[string]any)
	nova := a.user.nova(t)
	id := instance["openstackId"].(string)
	server1, err := servers.Get(t.Context(), nova, id).Extract()
	require.NoError(t, err)
	require.NoError(t, servers.Rebuild(t.Context(), nova, id, servers.RebuildOpts{ImageRef: server1.Image["id"].(string)}).Err)
	a.lab.eventually(t, 2*time.Minute, "the server is rebuilt", func() error {
		one, err := servers.Get(t.Context(), nova, id).Extract()
		if err != nil || one.Status != "ACTIVE" {
			return fmt.Errorf("it is %v, %w", one, err)
		}
		return nil
	})
	a.deploy(t, environment, a.draft(t, environment))
	require.Equal(t, "what was written before\n", a.page(t, environment, "Ledger"))
	s.act(t, "Ledger", "add", map[string]any{"line": "what came after"})
	require.Equal(t, "what was written before\nwhat came after\n", a.page(t, environment, "Ledger"))
	return environment
}

func (a *applications) scales(t *testing.T) {
	environment := a.environment(t, "page")
	session := a.draft(t, environment)
	a.add(t, environment, session, "io.burano.test.Pages", "Pages", map[string]any{
		"pages":   map[string]any{"count": 1, "scaleFactor": 2, "pattern": "page-{0}"},
		"servers": map[string]any{"flavor": smallServer, "image": nodeImage}})
	a.deploy(t, environment, session)
	s := &scaling{lab: a.lab, user: a.user, environment: environment}
	read := func() any {
		result, _ := s.call(t, "Pages", "read", map[string]any{})
		return result["result"]
	}
	require.Equal(t, []any{"A page on page-1 of 1"}, read())
	s.act(t, "Pages", "scaleOut", map[string]any{})
	require.Equal(t, []any{"A page on page-1 of 1", "A page on page-2 of 3", "A page on page-3 of 3"}, read())
	s.act(t, "Pages", "scaleIn", map[string]any{})
	require.Equal(t, []any{"A page on page-1 of 1"}, read())
	a.remove(t, "page")
}

func (a *applications) pair(t *testing.T) {
	environment := a.environment(t, "pair")
	session := a.draft(t, environment)
	a.add(t, environment, session, "io.burano.test.Pair", "Pair", map[string]any{
		"group0": map[string]any{"name": "Pair"}, "group1": map[string]any{"image": nodeImage, "flavor": smallServer, "external": "public", "text": "from the one behind"}})
	a.deploy(t, environment, session)
	outputs := a.application(t, environment, "Pair")["templateOutputs"].(map[string]any)
	a.lab.eventually(t, time.Minute, "the page answers", func() error {
		text, err := get("http://" + net.JoinHostPort(outputs["address"].(string), "8080") + "/")
		if err == nil && text != "from the one behind\n" {
			err = fmt.Errorf("it is %q", text)
		}
		return err
	})
	a.remove(t, "pair")
}

func (a *applications) environment(t *testing.T, name string) string {
	t.Helper()
	a.lab.deleteIfFailed(t, name)
	return a.user.must(t, http.MethodPost, "/v1/environments", map[string]any{"name": name})["id"].(string)
}

func (a *applications) draft(t *testing.T, environment string) string {
	t.Helper()
	return a.user.must(t, http.MethodPost, "/v1/environments/"+environment+"/configure", nil)["id"].(string)
}

// add fills a package's form and puts the resulting object into a draft; it returns the object's id.
func (a *applications) add(t *testing.T, environment, session, name, title string, values map[string]any) string {
	t.Helper()
	filled := a.user.must(t, http.MethodPost, "/burano/v1/forms/"+a.packages[name], map[string]any{"name": title, "values": values})
	require.Emptyf(t, filled["errors"], "%v", filled)
	made := a.user.must(t, http.MethodPost, "/v1/environments/"+environment+"/services", filled["model"], "X-Configuration-Session", session)
	return made["?"].(map[string]any)["id"].(string)
}

func (a *applications) deploy(t *testing.T, environment, session string) {
	t.Helper()
	task, log := a.try(t, environment, session)
	require.Equal(t, "success", task["state"], log)
}

// try deploys a draft, and returns the deployment when it has ended, with its log.
func (a *applications) try(t *testing.T, environment, session string) (task map[string]any, log string) {
	t.Helper()
	a.user.must(t, http.MethodPost, "/v1/environments/"+environment+"/sessions/"+session+"/deploy", nil)
	a.lab.eventually(t, 8*time.Minute, "the deployment ends", func() error {
		all := a.user.must(t, http.MethodGet, "/v1/environments/"+environment+"/deployments", nil)["deployments"].([]any)
		if task = all[0].(map[string]any); strings.HasPrefix(task["state"].(string), "running") {
			return fmt.Errorf("it runs")
		}
		return nil
	})
	s := &scaling{lab: a.lab, user: a.user, environment: environment}
	return task, s.reported(t, task["id"].(string))
}

func (a *applications) application(t *testing.T, environment, name string) map[string]any {
	t.Helper()
	all := a.user.must(t, http.MethodGet, "/v1/environments/"+environment, nil)["services"].([]any)
	n := slices.IndexFunc(all, func(one any) bool { return one.(map[string]any)["name"] == name })
	require.GreaterOrEqualf(t, n, 0, "there is no %s among %v", name, all)
	return all[n].(map[string]any)
}

// page is the answer of an application's server at its floating address.
func (a *applications) page(t *testing.T, environment, name string) string {
	t.Helper()
	address := a.application(t, environment, name)["instance"].(map[string]any)["floatingIpAddress"].(string)
	text, err := get("http://" + net.JoinHostPort(address, "8080") + "/")
	require.NoError(t, err)
	return text
}

func (a *applications) remove(t *testing.T, name string) {
	t.Helper()
	a.lab.run(t, a.lab.as("burano-demo"), "burano", "environment", "delete", "--yes", name)
}

// debian serves the repositories that this machine's apt uses where servers of the local cloud reach them, and returns the lines of
// sources.list.
func debian(t *testing.T) []string {
	output, err := exec.Command("apt-get", "indextargets", "--format", "$(REPO_URI) $(SUITE) $(COMPONENT)", "Created-By: Packages").Output()
	require.NoError(t, err)
	listener, err := net.Listen("tcp", outside("1")+":0")
	require.NoError(t, err)
	var lines []string
	mux := http.NewServeMux()
	repositories := map[string]string{} // address → path
	for line := range strings.Lines(string(output)) {
		fields := strings.Fields(line)
		require.Len(t, fields, 3, line)
		path := repositories[fields[0]]
		if path == "" {
			path = fmt.Sprintf("/%d/", len(repositories))
			repositories[fields[0]] = path
			origin, err := url.Parse(strings.TrimSuffix(fields[0], "/"))
			require.NoError(t, err)
			mux.Handle(path, http.StripPrefix(strings.TrimSuffix(path, "/"), &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(origin) }}))
		}
		if entry := fmt.Sprintf("deb [check-valid-until=no] http://%s%s %s %s", listener.Addr(), path, fields[1], fields[2]); !slices.Contains(lines, entry) {
			lines = append(lines, entry)
		}
	}
	require.NotEmpty(t, lines, "apt of this machine has no repositories")
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	response, err := http.Get("http://" + listener.Addr().String() + "/0/dists/" + strings.Fields(lines[0])[3] + "/Release")
	require.NoError(t, err)
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	return lines
}
