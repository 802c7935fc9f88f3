package servers

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/wait"
)

// patience is how long one awaited thing may take.
const patience = 2 * time.Minute

// load is users who list, draft, deploy, follow and delete until the load stops.
type load struct {
	t     *testing.T
	users []*user
	end   context.CancelFunc
	group sync.WaitGroup

	mutex       sync.Mutex
	deployments int
	again       []string        // the repeated requests, with the reasons
	broken      int             // streams that broke off and were continued
	handed      []time.Duration // the times from a server's return of a deployment until another server continued it
}

// startLoad starts so many users.
func (s *servers) startLoad(count int) *load {
	s.t.Helper()
	token := s.Token(s.t, "demo")
	ctx, cancel := context.WithCancel(s.t.Context())
	l := &load{t: s.t, end: cancel}
	for number := range count {
		// Half of them speak HTTP/2 with the proxy.
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.Proxy.Trusted}, ForceAttemptHTTP2: number%2 == 0}
		u := &user{load: l, name: fmt.Sprintf("user-%d", number), url: "https://" + s.Proxy.Address, token: token, http: &http.Client{Transport: transport}, kept: map[string]int{}}
		l.users = append(l.users, u)
		l.group.Go(func() {
			// A turn is completed also when the load ends.
			for ctx.Err() == nil {
				if err := u.turn(context.WithoutCancel(ctx)); err != nil {
					s.t.Errorf("%s, turn %d: %v", u.name, u.turns, err)
					return
				}
			}
		})
	}
	return l
}

// ended is how many deployments have ended.
func (l *load) ended() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.deployments
}

// goesOn waits until as many further deployments have ended as there are users, so that most of them began meanwhile.
func (l *load) goesOn() {
	l.t.Helper()
	before := l.ended()
	require.Eventually(l.t, func() bool { return l.ended() >= before+len(l.users) || l.t.Failed() }, patience, 20*time.Millisecond, "nothing is deployed any more")
	require.False(l.t, l.t.Failed())
}

// phase returns the repeated requests since the last phase, and how many streams broke off.
func (l *load) phase(name string) (again []string) {
	l.t.Helper()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.t.Logf("%s: %d deployments have ended by now; %d requests were sent once more, %d streams broke off and went on", name, l.deployments, len(l.again), l.broken)
	again, l.again, l.broken = l.again, nil, 0
	for _, one := range again {
		l.t.Logf("once more: %s", one)
	}
	return again
}

// stop lets the users complete their turns, and checks again everything that was acknowledged.
func (l *load) stop() {
	l.t.Helper()
	l.end()
	l.group.Wait()
	require.False(l.t, l.t.Failed())
	for _, u := range l.users {
		require.NoError(l.t, u.check(l.t.Context()))
	}
}

// user has a record of the acknowledged changes.
type user struct {
	load             *load
	name, url, token string
	http             *http.Client
	turns            int
	kept             map[string]int // the number of steps of each deployed environment
}

func (u *user) turn(ctx context.Context) error {
	u.turns++
	id, err := u.create(ctx)
	if err != nil {
		return err
	}
	for _, steps := range []int{1 + u.turns%3, 4} {
		if err := u.deploy(ctx, id, steps); err != nil {
			return err
		}
	}
	if err := u.check(ctx); err != nil {
		return err
	}
	if u.turns%3 == 0 {
		return nil // it stays
	}
	return u.delete(ctx, id)
}

// create makes an environment. After a lost answer it finds the environment by its name.
func (u *user) create(ctx context.Context) (id string, err error) {
	name := fmt.Sprintf("%s-%d", u.name, u.turns)
	var made struct{ ID string }
	status, err := u.ask(ctx, http.MethodPost, "/v1/environments", map[string]any{"name": name}, &made)
	if err == nil && status == http.StatusConflict {
		var list struct{ Environments []struct{ ID, Name string } }
		if status, err = u.ask(ctx, http.MethodGet, "/v1/environments", nil, &list); err == nil {
			if i := slices.IndexFunc(list.Environments, func(one struct{ ID, Name string }) bool { return one.Name == name }); i >= 0 {
				made.ID = list.Environments[i].ID
			}
		}
	}
	if err != nil || made.ID == "" {
		return "", fmt.Errorf("make environment %s: status %d: %w", name, status, err)
	}
	u.kept[made.ID] = 0
	return made.ID, nil
}

type deployment struct{ ID, State string }

func (u *user) deployments(ctx context.Context, id string) ([]deployment, error) {
	var list struct{ Deployments []deployment }
	return list.Deployments, u.must(ctx, http.MethodGet, "/v1/environments/"+id+"/deployments", nil, &list)
}

// deploy drafts an application, deploys it, follows the deployment to its end and checks the result.
func (u *user) deploy(ctx context.Context, id string, steps int) error {
	before, err := u.deployments(ctx, id)
	if err != nil {
		return err
	}
	var session struct{ ID string }
	if err := u.must(ctx, http.MethodPost, "/v1/environments/"+id+"/configure", nil, &session); err != nil {
		return err
	}
	draft := []any{map[string]any{"?": map[string]any{"id": "words-" + id, "type": "io.burano.servers.Words"}, "name": "words", "steps": steps}}
	if err := u.must(ctx, http.MethodPut, "/v1/environments/"+id+"/services", draft, nil, "X-Configuration-Session", session.ID); err != nil {
		return err
	}
	var drafted []struct{ Steps int }
	if err := u.must(ctx, http.MethodGet, "/v1/environments/"+id+"/services", nil, &drafted, "X-Configuration-Session", session.ID); err != nil {
		return err
	}
	if len(drafted) != 1 || drafted[0].Steps != steps {
		return fmt.Errorf("environment %s: the draft was acknowledged with %d steps, and has %+v", id, steps, drafted)
	}
	// After a lost answer the server may refuse the session as already deployed.
	status, err := u.ask(ctx, http.MethodPost, "/v1/environments/"+id+"/sessions/"+session.ID+"/deploy", nil, nil)
	if err != nil || status != http.StatusOK && status != http.StatusForbidden {
		return fmt.Errorf("deploy environment %s: status %d: %w", id, status, err)
	}
	now, err := u.deployments(ctx, id)
	if err != nil {
		return err
	}
	if len(now) != len(before)+1 {
		return fmt.Errorf("environment %s had %d deployments, one was asked for (status %d), and it has %d", id, len(before), status, len(now))
	}
	if err := u.follow(ctx, id, now[0].ID); err != nil {
		return fmt.Errorf("environment %s, deployment %s: %w", id, now[0].ID, err)
	}
	u.kept[id] = steps
	u.load.mutex.Lock()
	u.load.deployments++
	u.load.mutex.Unlock()
	return u.compare(ctx, id, steps)
}

// report is a line of a deployment's log.
type report struct {
	Text    string
	Created string
}

// follow reads the events of a deployment to its end, which must be a success, and continues broken streams.
func (u *user) follow(ctx context.Context, environment, id string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var seen []report
	last, state := "", ""
	for state == "" {
		response, err := u.send(ctx, http.MethodGet, "/burano/v1/deployments/"+id+"/events", nil, "Last-Event-ID", last)
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			_ = response.Body.Close()
			return fmt.Errorf("the stream of events: status %d", response.StatusCode)
		}
		lines, event := bufio.NewScanner(response.Body), ""
		for lines.Scan() {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch {
			case field == "event":
				event = value
			case field == "id":
				last = value
			case field == "data" && event == "report":
				var one report
				if err := json.Unmarshal([]byte(value), &one); err != nil {
					return err
				}
				seen = append(seen, one)
			case field == "data" && event == "end":
				var end struct{ State string }
				if err := json.Unmarshal([]byte(value), &end); err != nil {
					return err
				}
				state = end.State
			}
		}
		_ = response.Body.Close()
		if state == "" {
			u.load.mutex.Lock()
			u.load.broken++
			u.load.mutex.Unlock()
		}
	}
	var whole struct{ Reports []report }
	if err := u.must(ctx, http.MethodGet, "/v1/environments/"+environment+"/deployments/"+id, nil, &whole); err != nil {
		return err
	}
	if state != "success" {
		return fmt.Errorf("it ended in state %s: %v", state, whole.Reports)
	}
	if len(seen) != len(whole.Reports) {
		return fmt.Errorf("the stream told %d reports, and the log has %d: %v and %v", len(seen), len(whole.Reports), seen, whole.Reports)
	}
	return u.load.noteHandedOver(whole.Reports)
}

// noteHandedOver records how long a deployment waited after a server gave it back.
func (l *load) noteHandedOver(reports []report) error {
	for i, one := range reports {
		if !strings.HasPrefix(one.Text, "Burano was stopped") || i+1 == len(reports) {
			continue
		}
		given, err := time.Parse("2006-01-02T15:04:05", one.Created)
		if err != nil {
			return err
		}
		taken, err := time.Parse("2006-01-02T15:04:05", reports[i+1].Created)
		if err != nil {
			return err
		}
		l.mutex.Lock()
		l.handed = append(l.handed, taken.Sub(given))
		l.mutex.Unlock()
	}
	return nil
}

// compare checks that an environment has its deployed content.
func (u *user) compare(ctx context.Context, id string, steps int) error {
	var shown struct {
		Status   string
		Services []struct {
			Steps, Done int
			Word        string
		}
	}
	if err := u.must(ctx, http.MethodGet, "/v1/environments/"+id, nil, &shown); err != nil {
		return err
	}
	if shown.Status != "ready" || len(shown.Services) != 1 || shown.Services[0].Steps != steps || shown.Services[0].Done != steps || shown.Services[0].Word == "" {
		return fmt.Errorf("environment %s was deployed with %d steps, and shows %+v", id, steps, shown)
	}
	return nil
}

// check checks that everything acknowledged is there.
func (u *user) check(ctx context.Context) error {
	var list struct{ Environments []struct{ ID, Name string } }
	if err := u.must(ctx, http.MethodGet, "/v1/environments", nil, &list); err != nil {
		return err
	}
	found := 0
	for _, one := range list.Environments {
		if strings.HasPrefix(one.Name, u.name+"-") {
			found++
		}
	}
	if found != len(u.kept) {
		return fmt.Errorf("%d environments are listed, and %d were acknowledged", found, len(u.kept))
	}
	for id, steps := range u.kept {
		if err := u.compare(ctx, id, steps); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes an environment and waits until it is gone.
func (u *user) delete(ctx context.Context, id string) error {
	// After a lost answer it is being deleted, or gone.
	status, err := u.ask(ctx, http.MethodDelete, "/v1/environments/"+id, nil, nil)
	if err != nil || status >= http.StatusBadRequest && status != http.StatusForbidden && status != http.StatusNotFound {
		return fmt.Errorf("delete environment %s: status %d: %w", id, status, err)
	}
	delete(u.kept, id)
	return wait.Every(100*time.Millisecond).For(patience).Until(ctx, func(ctx context.Context) error {
		status, err := u.ask(ctx, http.MethodGet, "/v1/environments/"+id, nil, nil)
		if err != nil || status == http.StatusNotFound {
			return err
		}
		return wait.Again(fmt.Errorf("environment %s is still there", id))
	})
}

// must sends a request that must succeed.
func (u *user) must(ctx context.Context, method, path string, body, answer any, headers ...string) error {
	status, err := u.ask(ctx, method, path, body, answer, headers...)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s %s: status %d", method, path, status)
	}
	return err
}

// ask sends JSON (nil: none) and reads JSON (nil: it does not matter) from an answer of success.
func (u *user) ask(ctx context.Context, method, path string, body, answer any, headers ...string) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	response, err := u.send(ctx, method, path, body, headers...)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if answer == nil || response.StatusCode >= http.StatusBadRequest {
		_, err := io.Copy(io.Discard, response.Body)
		return response.StatusCode, err
	}
	return response.StatusCode, json.NewDecoder(response.Body).Decode(answer)
}

// send sends a request, and repeats it once if it got no answer or one of 5xx. A second failure is an error.
func (u *user) send(ctx context.Context, method, path string, body any, headers ...string) (*http.Response, error) {
	response, why := u.once(ctx, method, path, body, headers)
	if why == nil {
		return response, nil
	}
	u.load.mutex.Lock()
	u.load.again = append(u.load.again, fmt.Sprintf("%s %s: %v", method, path, why))
	u.load.mutex.Unlock()
	if err := wait.Pause(ctx, time.Second); err != nil {
		return nil, err
	}
	response, err := u.once(ctx, method, path, body, headers)
	if err != nil {
		return nil, fmt.Errorf("%s %s was refused twice: %w; %w", method, path, why, err)
	}
	return response, nil
}

func (u *user) once(ctx context.Context, method, path string, body any, headers []string) (*http.Response, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, u.url+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Auth-Token", u.token)
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] != "" {
			request.Header.Set(headers[i], headers[i+1])
		}
	}
	response, err := u.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests {
		said, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		return nil, errors.Join(fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(said)), err)
	}
	return response, nil
}
