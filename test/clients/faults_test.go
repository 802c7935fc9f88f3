package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/trusts"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/burano/burano/internal/requestid"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/test/localcloud"
	"github.com/burano/burano/test/localcloud/fault"
)

// A deployment, a scale-up, a scale-down by an action and a deletion of plain servers are run once without faults, and the calls that they make of
// the cloud are listed. Then they are run in as many environments as there are kinds of faults. In each, every call of the list meets a
// fault the first time, and most others the third time, and in each another one: so after all of them each call has met each fault.
func TestEveryFaultAtEveryCallEndsAsWithoutFaults(t *testing.T) {
	everyFault(t, "heat")
}

// The same where Burano makes the stacks by itself.
func TestEveryFaultAtEveryCallWithoutHeatEndsAsWithoutFaults(t *testing.T) {
	everyFault(t, "direct")
}

func everyFault(t *testing.T, orchestration string) {
	faults := &fault.Faults{}
	slot := os.Getenv("BURANO_SLOT")
	s := startCloudWith(t, localcloud.Config{ExternalCIDR: netip.MustParsePrefix("10.86.8" + slot + ".0/24"), Prefix: "blf" + slot + "-", Faults: faults})
	s.serve(http.DefaultClient, "http", "--orchestration", orchestration)
	s.importServers(t)
	token, _ := s.token("demo", "demo")
	demo := s.cloudAs("demo")
	require.NoError(t, faults.Order())

	// This fills the server's caches, so that their requests are not part of the cases.
	before, trustsBefore := s.counts(t, demo), s.trusts(t)
	warm := &faultyFarm{s: s, token: token, name: "warm"}
	for _, phase := range farmPhases {
		require.NoError(t, phase.run(warm, t, requestid.New()), phase.name)
	}
	plain := &faultyFarm{s: s, token: token, name: "plain"}
	calls := map[string][]fault.Fault{} // by phase
	grown := map[string]map[string]int{}
	for _, phase := range farmPhases {
		id := requestid.New()
		began := time.Now()
		require.NoError(t, phase.run(plain, t, id), phase.name)
		calls[phase.name] = callsOf(faults, id)
		grown[phase.name] = less(s.counts(t, demo), before)
		t.Logf("%s without faults: %.1f s, %d different calls", phase.name, time.Since(began).Seconds(), len(calls[phase.name]))
		require.NotEmpty(t, calls[phase.name])
	}
	require.Empty(t, grown["delete"], "nothing is left without faults")
	s.trustsGo(t, trustsBefore)

	farms := make([]*faultyFarm, len(fault.Kinds))
	for k := range farms {
		farms[k] = &faultyFarm{s: s, token: token, name: fmt.Sprintf("faulty%d", k)}
	}
	for _, phase := range farmPhases {
		began := time.Now()
		var group errgroup.Group
		for k, farm := range farms {
			id := requestid.New()
			for i, call := range calls[phase.name] {
				call.Request = id
				call.Kind = fault.Kinds[(i+k)%len(fault.Kinds)]
				require.NoError(t, faults.Order(call))
				call.Kind, call.Nth = fault.Kinds[(i+k+3)%len(fault.Kinds)], 3
				require.NoError(t, faults.Order(call))
			}
			group.Go(func() error { return phase.run(farm, t, id) })
		}
		err := group.Wait()
		met := map[fault.Kind]int{}
		for _, call := range faults.Calls() {
			if call.Fault != "" {
				met[call.Fault]++
			}
		}
		t.Logf("%s: %.1f s; faults met so far: %v", phase.name, time.Since(began).Seconds(), met)
		if err != nil {
			for _, call := range faults.Calls() {
				if call.Fault != "" {
					t.Logf("%s %s %s: %s", call.Request, call.Method, call.Path, call.Fault)
				}
			}
		}
		require.NoError(t, err, phase.name)
		for _, left := range faults.Pending() {
			require.Equal(t, 3, left.Nth, "in %s the call %s %s has not met %s", phase.name, left.Method, left.Path, left.Kind)
		}
		wanted := map[string]int{}
		for kind, count := range grown[phase.name] {
			wanted[kind] = count * len(farms)
		}
		require.Equal(t, wanted, less(s.counts(t, demo), before), "after %s there is exactly what is there without faults", phase.name)
		faults.Clear()
		require.NoError(t, faults.Order())
	}
	s.trustsGo(t, trustsBefore)
}

// trustsGo waits until there are no more trusts than before: they are deleted after their tasks and environments.
func (s *server) trustsGo(t *testing.T, before int) {
	t.Helper()
	require.Eventually(t, func() bool { return s.trusts(t) <= before }, 2*time.Minute, 100*time.Millisecond, "trusts are left")
}

var farmPhases = []struct {
	name string
	run  func(*faultyFarm, *testing.T, string) error
}{
	{"deploy", func(f *faultyFarm, t *testing.T, id string) error { return f.deploy(t, id, "one") }},
	{"scale up", func(f *faultyFarm, t *testing.T, id string) error { return f.deploy(t, id, "one", "two") }},
	{"scale down", (*faultyFarm).shrink},
	{"delete", (*faultyFarm).delete},
}

var faultyIDs = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}`)

// callsOf are the different calls that were made on behalf of a request, as faults that would meet them.
func callsOf(faults *fault.Faults, request string) (list []fault.Fault) {
	for _, call := range faults.Calls() {
		one := fault.Fault{Method: call.Method, Path: faultyIDs.ReplaceAllString(regexp.QuoteMeta(call.Path), "[0-9a-f-]+"), Nth: 1}
		if call.Request == request && !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	return list
}

// counts returns how many things of each kind the user has in the cloud.
func (s *server) counts(t *testing.T, user cloudUser) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for kind, names := range user.holds(t) {
		counts[kind] = len(names)
	}
	return counts
}

// trusts is how many there are.
func (s *server) trusts(t *testing.T) int {
	t.Helper()
	admin, err := openstack.AuthenticatedClient(t.Context(), gophercloud.AuthOptions{IdentityEndpoint: s.keystone + "/identity/v3",
		Username: "admin", Password: "admin", TenantName: "admin", DomainName: "Default"})
	require.NoError(t, err)
	client, err := openstack.NewIdentityV3(admin, gophercloud.EndpointOpts{})
	require.NoError(t, err)
	pages, err := trusts.List(client, trusts.ListOpts{}).AllPages(t.Context())
	require.NoError(t, err)
	all, err := trusts.ExtractTrusts(pages)
	require.NoError(t, err)
	return len(all)
}

// less returns the kinds whose number has changed, with the numbers now.
func less(now, before map[string]int) map[string]int {
	more := map[string]int{}
	for kind, count := range now {
		if count != before[kind] {
			more[kind] = count - before[kind]
		}
	}
	return more
}

// faultyFarm is an environment with a farm of servers.
type faultyFarm struct {
	s           *server
	token, name string
	environment string
}

// call makes a request of Burano.
func (f *faultyFarm) call(t *testing.T, method, path, request, session string, body any) (status int, answer map[string]any, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	asked, err := http.NewRequestWithContext(t.Context(), method, f.s.url+"/v1/environments"+path, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	asked.Header.Set("X-Auth-Token", f.token)
	asked.Header.Set("Content-Type", "application/json")
	asked.Header.Set(requestid.Header, request)
	if session != "" {
		asked.Header.Set("X-Configuration-Session", session)
	}
	response, err := http.DefaultClient.Do(asked)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, err
	}
	_ = json.Unmarshal(raw, &answer)
	if response.StatusCode >= 300 && response.StatusCode != http.StatusNotFound {
		return response.StatusCode, nil, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, raw)
	}
	return response.StatusCode, answer, nil
}

func (f *faultyFarm) deploy(t *testing.T, request string, names ...string) error {
	if f.environment == "" {
		_, made, err := f.call(t, "POST", "", "", "", map[string]any{"name": f.name})
		if err != nil {
			return err
		}
		f.environment, _ = made["id"].(string)
	}
	_, session, err := f.call(t, "POST", "/"+f.environment+"/configure", "", "", nil)
	if err != nil {
		return err
	}
	id, _ := session["id"].(string)
	var list []any
	for _, name := range names {
		list = append(list, map[string]any{"?": map[string]any{"type": "io.murano.resources.LinuxInstance", "id": f.name + name}, "name": f.name + "-" + name,
			"flavor": "m1.tiny", "image": "tiny", "assignFloatingIp": true})
	}
	farm := map[string]any{"?": map[string]any{"type": "io.burano.test.Farm", "id": f.name}, "ports": []any{8080}, "servers": list}
	if _, _, err := f.call(t, "PUT", "/"+f.environment+"/services", "", id, []any{farm}); err != nil {
		return err
	}
	if _, _, err := f.call(t, "POST", "/"+f.environment+"/sessions/"+id+"/deploy", request, "", nil); err != nil {
		return err
	}
	return f.ended(t)
}

// shrink drops the last server by the application's action.
func (f *faultyFarm) shrink(t *testing.T, request string) error {
	_, shown, err := f.call(t, "GET", "/"+f.environment, "", "", nil)
	if err != nil {
		return err
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return err
	}
	action := regexp.MustCompile(`"([^"]+_shrink)"`).FindSubmatch(text)
	if action == nil {
		return fmt.Errorf("no action shrink in %s", text)
	}
	if _, _, err := f.call(t, "POST", "/"+f.environment+"/actions/"+string(action[1]), request, "", map[string]any{}); err != nil {
		return err
	}
	return f.ended(t)
}

func (f *faultyFarm) delete(t *testing.T, request string) error {
	if _, _, err := f.call(t, "DELETE", "/"+f.environment, request, "", nil); err != nil {
		return err
	}
	return f.ended(t)
}

// ended waits until no task runs in the environment, and demands success.
func (f *faultyFarm) ended(t *testing.T) error {
	return wait.Every(50*time.Millisecond).For(2*time.Minute).Until(t.Context(), func(context.Context) error {
		status, shown, err := f.call(t, "GET", "/"+f.environment, "", "", nil)
		switch {
		case err != nil:
			return err
		case status == http.StatusNotFound:
			return nil
		}
		switch state, _ := shown["status"].(string); state {
		case "deploying", "deleting":
			return wait.Again(fmt.Errorf("environment %s is %s", f.name, state))
		case "ready":
			return nil
		default:
			_, list, err := f.call(t, "GET", "/"+f.environment+"/deployments", "", "", nil)
			if err != nil {
				return err
			}
			deployments, _ := list["deployments"].([]any)
			text, _ := json.MarshalIndent(deployments[0].(map[string]any)["result"], "", " ")
			return fmt.Errorf("environment %s is %s: %s", f.name, state, strings.TrimSpace(string(text)))
		}
	})
}
