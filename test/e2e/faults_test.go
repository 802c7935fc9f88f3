package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/localcloud/fault"
)

// TestChangesSurviveFaultsOfTheCloudAtEveryCall runs the changes once without faults, and lists their calls of the cloud. Then it runs them
// once for each kind of fault. In each run every call of the list meets a fault the first time, in each run another one: so after all of them
// each call has met each fault. `make soak` runs it.
func TestChangesSurviveFaultsOfTheCloudAtEveryCall(t *testing.T) {
	if os.Getenv("BURANO_FAULTS") == "" {
		t.Skip("BURANO_FAULTS is not set")
	}
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	l.deleteIfFailed(t, "scaling")
	orders := ordersOf(t, demo)
	t.Cleanup(func() { orders.send(t, http.MethodDelete, nil) })
	calls := make([][]fault.Fault, len(changes))
	for i, change := range changes {
		if change.prepare != nil {
			change.prepare(t, l, demo)
		}
		orders.begin(t)
		l.run(t, l.as("burano-demo"), "burano", append(change.call, "--follow")...)
		calls[i] = orders.made(t)
		t.Logf("%s: %d different calls", change.name, len(calls[i]))
	}
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	asBefore(t, demo, found)

	for run := range fault.Kinds {
		for i, change := range changes {
			if !t.Run(fmt.Sprintf("%s %d", change.name, run), func(t *testing.T) {
				began := time.Now()
				if change.prepare != nil {
					change.prepare(t, l, demo)
				}
				orders.begin(t, faultsAt(calls[i], run)...)
				l.run(t, l.as("burano-demo"), "burano", append(change.call, "--follow")...)
				left := orders.pending(t)
				orders.send(t, http.MethodDelete, nil)
				t.Logf("%s: %d of %d faults met, %.1f s", change.name, len(calls[i])-len(left), len(calls[i]), time.Since(began).Seconds())
				l.endsAsWanted(t, demo, change, found)
				require.LessOrEqual(t, len(left), len(calls[i])/2, "most calls were made again: %v", left) // some changes call nothing
			}) {
				return
			}
		}
		l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
		asBefore(t, demo, found)
	}
}

// faultsAt orders a fault for each call, in each run another one.
func faultsAt(calls []fault.Fault, run int) []fault.Fault {
	faults := slices.Clone(calls)
	for i := range faults {
		faults[i].Kind = fault.Kinds[(i+run)%len(fault.Kinds)]
	}
	return faults
}

// orders is the local cloud's address for ordering faults.
type orders struct{ url string }

func ordersOf(t *testing.T, u *user) orders {
	t.Helper()
	keystone, err := url.Parse(u.provider.IdentityEndpoint)
	require.NoError(t, err)
	return orders{keystone.Scheme + "://" + keystone.Host + "/faults"}
}

func (o orders) send(t *testing.T, method string, body any) (answer struct {
	Pending []fault.Fault `json:"pending"`
	Calls   []fault.Call  `json:"calls"`
}) {
	t.Helper()
	text, err := json.Marshal(body)
	require.NoError(t, err)
	request, err := http.NewRequest(method, o.url, bytes.NewReader(text)) // also when the test has ended
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Less(t, response.StatusCode, http.StatusBadRequest)
	if method == http.MethodGet {
		require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	}
	return answer
}

// begin forgets the former calls and faults, and orders these.
func (o orders) begin(t *testing.T, faults ...fault.Fault) {
	t.Helper()
	o.send(t, http.MethodDelete, nil)
	o.send(t, http.MethodPost, append([]fault.Fault{}, faults...))
}

func (o orders) pending(t *testing.T) []fault.Fault { return o.send(t, http.MethodGet, nil).Pending }

// cloudIDs are the ids in the paths of calls, which differ between runs.
var cloudIDs = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}`)

// made are the different calls that Burano made for a user, as faults that would meet them.
func (o orders) made(t *testing.T) (list []fault.Fault) {
	t.Helper()
	for _, call := range o.send(t, http.MethodGet, nil).Calls {
		one := fault.Fault{Method: call.Method, Path: cloudIDs.ReplaceAllString(regexp.QuoteMeta(call.Path), "[0-9a-f-]+"), Request: "*"}
		if call.Request != "" && !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	return list
}
