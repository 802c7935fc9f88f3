package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/burano/burano/test/bench/server"
)

// user is the one user of a project, with a record of the changes that the server has acknowledged.
type user struct {
	server      *server.Server
	name, token string
	turn        int
	kept        map[string][]string // existing environments: the ids of the applications in each
	deploys     []time.Duration     // from the call to the end
}

// work is one turn of a user: list, make or change an environment, deploy it, follow, list again, and at times delete.
func (u *user) work(ctx context.Context, t *tally) error {
	u.turn++
	if err := u.list(ctx, t); err != nil {
		return err
	}
	environment := ""
	for id := range u.kept {
		environment = id
	}
	if environment == "" {
		var err error
		if environment, err = u.make(ctx, t); err != nil {
			return err
		}
	}
	took, err := u.deploy(ctx, t, environment)
	if err != nil {
		return err
	}
	u.deploys = append(u.deploys, took)
	if err := u.check(ctx); err != nil {
		return err
	}
	if u.turn%4 == 0 {
		return u.remove(ctx, t, environment)
	}
	return nil
}

// greed deploys many environments at once, and deletes them.
func (u *user) greed(ctx context.Context, t *tally) error {
	group, ctx := errgroup.WithContext(ctx)
	made := make([]string, atOnce)
	for i := range made {
		var err error
		if made[i], err = u.make(ctx, t); err != nil {
			return err
		}
	}
	for _, environment := range made {
		draft, err := u.draft(ctx, t, environment)
		if err != nil {
			return err
		}
		group.Go(func() error {
			_, err := u.submit(ctx, t, environment, draft, "a greedy project's deploy, to its end")
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, environment := range made {
		if err := u.remove(context.WithoutCancel(ctx), t, environment); err != nil {
			return err
		}
	}
	return nil
}

// list reads the project's environments, and fails when an acknowledged one is missing.
func (u *user) list(ctx context.Context, t *tally) error {
	var answer struct{ Environments []struct{ ID string } }
	if err := u.timed(ctx, t, "list environments", http.MethodGet, "/v1/environments", nil, &answer); err != nil {
		return err
	}
	found := map[string]bool{}
	for _, one := range answer.Environments {
		found[one.ID] = true
	}
	for id := range u.kept {
		if !found[id] {
			return fmt.Errorf("environment %s was acknowledged and is not listed", id)
		}
	}
	if len(found) != len(u.kept) {
		return fmt.Errorf("%d environments are listed, %d were acknowledged", len(found), len(u.kept))
	}
	var packages struct{ Packages []json.RawMessage }
	return u.timed(ctx, t, "list packages", http.MethodGet, "/v1/catalog/packages?limit=50", nil, &packages)
}

func (u *user) make(ctx context.Context, t *tally) (id string, err error) {
	var answer struct{ ID string }
	name := map[string]any{"name": fmt.Sprintf("%s %d %d", u.name, u.turn, len(u.kept))}
	if err := u.timed(ctx, t, "make an environment", http.MethodPost, "/v1/environments", name, &answer); err != nil {
		return "", err
	}
	u.kept[answer.ID] = nil
	return answer.ID, nil
}

// draft adds an application to the environment's draft, and must read it there.
func (u *user) draft(ctx context.Context, t *tally, environment string) (session string, err error) {
	path := "/v1/environments/" + environment
	var opened struct{ ID string }
	if err := u.timed(ctx, t, "open a session", http.MethodPost, path+"/configure", nil, &opened); err != nil {
		return "", err
	}
	id := fmt.Sprintf("%s-%d", environment, len(u.kept[environment]))
	application := map[string]any{"?": map[string]any{"id": id, "type": class, "name": "words"}, "length": 12}
	if err := u.timed(ctx, t, "add an application", http.MethodPost, path+"/services", application, nil, "X-Configuration-Session", opened.ID); err != nil {
		return "", err
	}
	u.kept[environment] = append(u.kept[environment], id)
	return opened.ID, u.compare(ctx, environment, opened.ID)
}

// deploy drafts and deploys, and returns how long the deployment took from the call to its end.
func (u *user) deploy(ctx context.Context, t *tally, environment string) (time.Duration, error) {
	session, err := u.draft(ctx, t, environment)
	if err != nil {
		return 0, err
	}
	return u.submit(ctx, t, environment, session, "deploy, to its end")
}

func (u *user) submit(ctx context.Context, t *tally, environment, session, kind string) (time.Duration, error) {
	path, began := "/v1/environments/"+environment, time.Now()
	if err := u.timed(ctx, t, "submit a deployment", http.MethodPost, path+"/sessions/"+session+"/deploy", nil, nil); err != nil {
		return 0, err
	}
	var list struct{ Deployments []struct{ ID string } }
	if err := u.timed(ctx, t, "list deployments", http.MethodGet, path+"/deployments", nil, &list); err != nil {
		return 0, err
	}
	if len(list.Deployments) == 0 {
		return 0, fmt.Errorf("environment %s has no deployment after one was acknowledged", environment)
	}
	state, err := u.follow(ctx, list.Deployments[0].ID)
	if err != nil {
		return 0, err
	}
	if state != "success" {
		return 0, fmt.Errorf("deployment %s ended in state %s: %s", list.Deployments[0].ID, state, u.said(ctx, environment, list.Deployments[0].ID))
	}
	took := time.Since(began)
	t.note(kind, took)
	return took, nil
}

// said is the list of reports of a deployment.
func (u *user) said(ctx context.Context, environment, deployment string) string {
	var answer struct {
		Reports []struct{ Level, Text string }
	}
	if err := u.call(ctx, http.MethodGet, "/v1/environments/"+environment+"/deployments/"+deployment, nil, &answer); err != nil {
		return err.Error()
	}
	var lines []string
	for _, one := range answer.Reports {
		lines = append(lines, one.Level+" "+one.Text)
	}
	return strings.Join(lines, "; ")
}

// follow reads a deployment's events until its end and returns its state.
func (u *user) follow(ctx context.Context, deployment string) (state string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	response, err := u.send(ctx, http.MethodGet, "/burano/v1/deployments/"+deployment+"/events", nil)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	lines, name := bufio.NewScanner(response.Body), ""
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case field == "event":
			name = value
		case field == "data" && name == "end":
			var end struct{ State string }
			err := json.Unmarshal([]byte(value), &end)
			return end.State, err
		}
	}
	return "", errors.Join(errors.New("the stream ended before the deployment"), lines.Err())
}

// remove deletes an environment and waits until it is gone.
func (u *user) remove(ctx context.Context, t *tally, environment string) error {
	began, path := time.Now(), "/v1/environments/"+environment
	if err := u.call(ctx, http.MethodDelete, path, nil, nil); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		var answer struct{ Status string }
		err := u.call(ctx, http.MethodGet, path, nil, &answer)
		var refused *refusal
		switch {
		case errors.As(err, &refused) && refused.status == http.StatusNotFound:
			delete(u.kept, environment)
			t.note("delete, to its end", time.Since(began))
			return nil
		case err != nil:
			return err
		case answer.Status != "deleting":
			return fmt.Errorf("environment %s is %s after it was asked to be deleted", environment, answer.Status)
		case !pause(ctx, 200*time.Millisecond):
			return fmt.Errorf("wait until environment %s is gone: %w", environment, ctx.Err())
		}
	}
}

// check reads every acknowledged environment, and compares its content with the record.
func (u *user) check(ctx context.Context) error {
	for environment := range u.kept {
		if err := u.compare(ctx, environment, ""); err != nil {
			return err
		}
	}
	return nil
}

func (u *user) compare(ctx context.Context, environment, session string) error {
	var headers []string
	if session != "" {
		headers = []string{"X-Configuration-Session", session}
	}
	var services []struct {
		Header struct{ ID string } `json:"?"`
	}
	if err := u.call(ctx, http.MethodGet, "/v1/environments/"+environment+"/services", nil, &services, headers...); err != nil {
		return err
	}
	var found []string
	for _, one := range services {
		found = append(found, one.Header.ID)
	}
	expected := append([]string(nil), u.kept[environment]...)
	sort.Strings(found)
	sort.Strings(expected)
	if strings.Join(found, " ") != strings.Join(expected, " ") {
		return fmt.Errorf("environment %s holds %v, and what was acknowledged is %v", environment, found, expected)
	}
	return nil
}

// refusal is an answer that is no success.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

// timed is call, counted.
func (u *user) timed(ctx context.Context, t *tally, kind, method, path string, body, answer any, headers ...string) error {
	began := time.Now()
	err := u.call(ctx, method, path, body, answer, headers...)
	t.note(kind, time.Since(began))
	return err
}

// call sends JSON (nil: none) and reads JSON (nil: it does not matter).
func (u *user) call(ctx context.Context, method, path string, body, answer any, headers ...string) error {
	response, err := u.send(ctx, method, path, body, headers...)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if answer == nil {
		_, err := io.Copy(io.Discard, response.Body)
		return err
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

// send returns an answer of success. A request that the server refuses for the moment (429, 503) is sent again: it was not
// acknowledged.
func (u *user) send(ctx context.Context, method, path string, body any, headers ...string) (*http.Response, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	for {
		request, err := http.NewRequestWithContext(ctx, method, u.server.URL+path, bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		request.Header.Set("X-Auth-Token", u.token)
		request.Header.Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		response, err := u.server.Client.Do(request)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", method, path, err)
		}
		if response.StatusCode < 300 {
			return response, nil
		}
		said, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			return nil, err
		}
		busy := response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable
		if !busy || !pause(ctx, time.Second) {
			return nil, &refusal{response.StatusCode, fmt.Sprintf("%s %s: %s: %s", method, path, response.Status, bytes.TrimSpace(said))}
		}
	}
}
