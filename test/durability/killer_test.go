package durability

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// supervise starts the server again whenever it dies, until over returns true, and returns how often it has died.
func (s *site) supervise(one *server, over func() bool) (deaths int) {
	for {
		died := make(chan error, 1)
		go func() { died <- one.process.Wait() }()
		ticker := time.NewTicker(50 * time.Millisecond)
		deadline := time.After(patience)
		for alive := true; alive; {
			select {
			case <-died:
				alive = false
			case <-ticker.C:
				if over() {
					ticker.Stop()
					require.NoError(s.t, one.process.Process.Signal(syscall.SIGTERM))
					require.NoError(s.t, <-died)
					s.launch(one)
					s.healthy(one)
					return deaths
				}
			case <-deadline:
				require.FailNow(s.t, "it is not over", "after %d deaths", deaths)
			}
		}
		ticker.Stop()
		deaths++
		s.launch(one)
	}
}

func TestATaskThatKillsServersFailsAndThoseBesideItSucceed(t *testing.T) {
	s := newSite(t, 1, 0, "")
	c := newClient(s, 0)
	submit := func(name string, properties map[string]any) (id string) {
		id, err := c.create(name)
		require.NoError(t, err)
		var session struct{ ID string }
		status, err := c.once(http.MethodPost, "/v1/environments/"+id+"/configure", "", nil, &session)
		require.NoError(t, orStatus(err, "configure", status))
		application := map[string]any{"?": map[string]any{"id": "app-" + id, "type": "org.durability.App"}, "name": "app", "steps": 1,
			"recorder": map[string]any{"?": map[string]any{"id": "recorder-" + id, "type": "org.durability.Recorder"}}}
		for key, value := range properties {
			application[key] = value
		}
		status, err = c.once(http.MethodPut, "/v1/environments/"+id+"/services", session.ID, []any{application}, nil)
		require.NoError(t, orStatus(err, "services", status))
		status, err = c.once(http.MethodPost, "/v1/environments/"+id+"/sessions/"+session.ID+"/deploy", "", nil, nil)
		if status != 0 { // the server may be dead before it has answered
			require.NoError(t, orStatus(err, "deploy", status))
		}
		return id
	}
	var innocents []string
	for n := range 4 {
		innocents = append(innocents, submit(fmt.Sprintf("innocent-%d", n), map[string]any{"wait": 2}))
	}
	killer := submit("killer", map[string]any{"deadly": true})

	ended := func(id string) *deployment {
		list, err := c.deploymentsOf(id)
		if err != nil || len(list) == 0 || list[0].Finished == nil {
			return nil
		}
		return &list[0]
	}
	deaths := s.supervise(s.servers[0], func() bool {
		for _, id := range append(innocents, killer) {
			if ended(id) == nil {
				return false
			}
		}
		return true
	})
	require.Equal(t, 2+3, deaths, "two beside others, three alone")
	for _, id := range innocents {
		require.Equal(t, "success", ended(id).State)
		require.NoError(t, c.check(id, 1, 0))
	}
	failed := ended(killer)
	require.Equal(t, "completed_w_errors", failed.State)
	message, _ := failed.Result["result"].(map[string]any)["message"].(string)
	require.True(t, strings.HasPrefix(message, "5 Burano servers ended while they ran this deployment, the last 3 of them while they ran nothing else"), message)
}
