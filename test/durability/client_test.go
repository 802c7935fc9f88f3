package durability

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"
)

// client is a user who deploys, changes and deletes environments, and records the expected content of each. When an answer is
// lost it checks whether its request was done, as a careful user does.
type client struct {
	site   *site
	number int
	random *rand.Rand

	deployments, actions, deletions, lost int
}

func newClient(s *site, number int) *client {
	return &client{site: s, number: number, random: rand.New(rand.NewPCG(s.seed, uint64(number)+1))}
}

// errLost: it is not known whether a request was done.
var errLost = errors.New("no answer")

// once sends a request to one of the servers.
func (c *client) once(method, path, session string, body, answer any) (status int, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	server := c.site.servers[c.random.IntN(len(c.site.servers))]
	request, err := http.NewRequestWithContext(c.site.t.Context(), method, "http://"+server.settings.Listen+path, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Auth-Token", c.site.token)
	if session != "" {
		request.Header.Set("X-Configuration-Session", session)
	}
	http := &http.Client{Timeout: 2 * lease, Transport: transport}
	response, err := http.Do(request)
	if err != nil {
		c.lost++
		return 0, errLost
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		c.lost++
		return 0, errLost
	}
	// Where there are several servers, the database may be away for a moment: then it is not known either whether the
	// request was done.
	if response.StatusCode >= 500 && len(c.site.servers) > 1 {
		c.lost++
		return 0, errLost
	}
	if response.StatusCode >= 500 {
		return response.StatusCode, fmt.Errorf("%s %s answers %d: %s", method, path, response.StatusCode, content)
	}
	if response.StatusCode < 300 && answer != nil {
		if err := json.Unmarshal(content, answer); err != nil {
			return 0, fmt.Errorf("%s %s answers %q: %w", method, path, content, err)
		}
	}
	return response.StatusCode, nil
}

// transport keeps no connections: a server that was killed is not asked on one of its old ones.
var transport = &http.Transport{DisableKeepAlives: true}

// until repeats do while there is no answer, or while do returns that it is not over yet.
func (c *client) until(what string, do func() (over bool, err error)) error {
	deadline := time.Now().Add(patience)
	for {
		over, err := do()
		if !errors.Is(err, errLost) && (over || err != nil) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not within %s (last: %v)", what, patience, err)
		}
		timer := time.NewTimer(20 * time.Millisecond)
		select {
		case <-timer.C:
		case <-c.site.t.Context().Done():
			return c.site.t.Context().Err()
		}
	}
}

// run works until stop is closed, and then completes its current turn.
func (c *client) run(stop <-chan struct{}) error {
	for turn := 0; ; turn++ {
		if err := c.turn(fmt.Sprintf("client-%d-turn-%d", c.number, turn)); err != nil {
			return fmt.Errorf("turn %d: %w", turn, err)
		}
		select {
		case <-stop:
			return nil
		default:
		}
	}
}

func (c *client) turn(name string) error {
	id, err := c.create(name)
	if err != nil {
		return err
	}
	steps := 1 + c.random.IntN(4)
	if err := c.deploy(id, steps); err != nil {
		return err
	}
	steps += 1 + c.random.IntN(4)
	if err := c.deploy(id, steps); err != nil {
		return err
	}
	more := c.random.IntN(3)
	if err := c.extend(id, steps, more); err != nil {
		return err
	}
	if c.random.IntN(3) == 0 {
		return c.check(id, steps, more) // it stays
	}
	return c.delete(id)
}

// create makes an environment. Its name is unique, so that after a lost answer the list shows whether the request was
// done.
func (c *client) create(name string) (id string, err error) {
	err = c.until("create "+name, func() (bool, error) {
		var made struct{ ID string }
		status, err := c.once(http.MethodPost, "/v1/environments", "", map[string]any{"name": name}, &made)
		if err != nil {
			return false, err
		}
		id = made.ID
		if status == http.StatusConflict {
			var list struct{ Environments []struct{ ID, Name string } }
			if _, err := c.once(http.MethodGet, "/v1/environments", "", nil, &list); err != nil {
				return false, err
			}
			for _, one := range list.Environments {
				if one.Name == name {
					id = one.ID
				}
			}
		}
		return id != "", nil
	})
	return id, err
}

type deployment struct {
	ID, State string
	Finished  *string
	Result    map[string]any
}

func (c *client) deploymentsOf(id string) (list []deployment, err error) {
	var answer struct{ Deployments []deployment }
	status, err := c.once(http.MethodGet, "/v1/environments/"+id+"/deployments", "", nil, &answer)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the deployments of %s: status %d", id, status)
	}
	return answer.Deployments, err
}

// deploy deploys one application of so many steps, waits for the end and checks that all of it is there.
func (c *client) deploy(id string, steps int) error {
	before := -1
	if err := c.until("count deployments", func() (bool, error) {
		list, err := c.deploymentsOf(id)
		before = len(list)
		return err == nil, err
	}); err != nil {
		return err
	}
	asked := false
	err := c.until("deploy", func() (bool, error) {
		// A request whose answer was lost may have been done, or be done by a server that was stopped once it goes on.
		list, err := c.deploymentsOf(id)
		if err != nil || len(list) > before {
			return err == nil, err
		}
		var session struct{ ID string }
		again := asked
		failed := func(err error, what string, status int) error {
			if err == nil && status == http.StatusForbidden && again {
				return nil // the request before was done since the list was read, which will show it
			}
			return orStatus(err, what, status)
		}
		if status, err := c.once(http.MethodPost, "/v1/environments/"+id+"/configure", "", nil, &session); err != nil || status != http.StatusOK {
			return false, failed(err, "configure", status)
		}
		application := map[string]any{"?": map[string]any{"id": "app-" + id, "type": "org.durability.App"}, "name": "app", "steps": steps,
			"recorder": map[string]any{"?": map[string]any{"id": "recorder-" + id, "type": "org.durability.Recorder"}}}
		if status, err := c.once(http.MethodPut, "/v1/environments/"+id+"/services", session.ID, []any{application}, nil); err != nil || status != http.StatusOK {
			return false, failed(err, "services", status)
		}
		asked = true
		status, err := c.once(http.MethodPost, "/v1/environments/"+id+"/sessions/"+session.ID+"/deploy", "", nil, nil)
		return err == nil && status == http.StatusOK, failed(err, "deploy", status)
	})
	if err != nil {
		return err
	}
	if _, err := c.ended(id, before+1); err != nil {
		return err
	}
	c.deployments++
	return c.check(id, steps, 0)
}

func orStatus(err error, what string, status int) error {
	if err != nil || status == http.StatusOK {
		return err
	}
	return fmt.Errorf("%s: status %d", what, status)
}

// ended waits for the end of the environment's deployment of this number, which must have succeeded.
func (c *client) ended(id string, number int) (last deployment, err error) {
	err = c.until("the end of a deployment of "+id, func() (bool, error) {
		list, err := c.deploymentsOf(id)
		if err != nil {
			return false, err
		}
		if len(list) != number {
			return false, fmt.Errorf("environment %s has %d deployments, and %d were asked for", id, len(list), number)
		}
		last = list[0]
		return last.Finished != nil, nil
	})
	if err == nil && last.State != "success" {
		err = fmt.Errorf("deployment %s of %s ended as %s: %v", last.ID, id, last.State, last.Result)
	}
	return last, err
}

// extend calls the application's action.
func (c *client) extend(id string, steps, by int) error {
	list := []deployment{}
	if err := c.until("count deployments", func() (bool, error) {
		var err error
		list, err = c.deploymentsOf(id)
		return err == nil, err
	}); err != nil {
		return err
	}
	before := len(list)
	err := c.until("call the action", func() (bool, error) {
		list, err := c.deploymentsOf(id)
		if err != nil || len(list) > before {
			return err == nil, err
		}
		status, err := c.once(http.MethodPost, "/v1/environments/"+id+"/actions/app-"+id+"_extend", "", map[string]any{"by": by}, nil)
		return err == nil && status == http.StatusOK, orStatus(err, "action", status)
	})
	if err != nil {
		return err
	}
	last, err := c.ended(id, before+1)
	if err != nil {
		return err
	}
	if got := last.Result["result"]; got != float64(steps+by) {
		return fmt.Errorf("the action of %s answers %v, not %d", id, got, steps+by)
	}
	c.actions++
	return c.check(id, steps, by)
}

// check compares the things of the world, each once, and the environment's attributes with the deployed model.
func (c *client) check(id string, steps, more int) error {
	things, err := c.site.world.things(id)
	if err != nil {
		return err
	}
	var wanted []string
	for i := range steps {
		wanted = append(wanted, fmt.Sprintf("step %d", i))
	}
	for i := range more {
		wanted = append(wanted, fmt.Sprintf("extension %d", i))
	}
	slices.Sort(wanted)
	slices.Sort(things)
	if !slices.Equal(things, wanted) {
		return fmt.Errorf("environment %s is said to be deployed and has %v, not %v", id, things, wanted)
	}
	return c.until("show the environment", func() (bool, error) {
		var shown struct {
			Status   string
			Services []map[string]any
		}
		if status, err := c.once(http.MethodGet, "/v1/environments/"+id, "", nil, &shown); err != nil || status != http.StatusOK {
			return false, orStatus(err, "show", status)
		}
		if shown.Status != "ready" || len(shown.Services) != 1 || shown.Services[0]["made"] != float64(steps) {
			return false, fmt.Errorf("environment %s was deployed, and shows %+v", id, shown)
		}
		return true, c.stepsOnce(id)
	})
}

// stepsOnce checks that no native step was recorded as done twice.
func (c *client) stepsOnce(id string) error {
	list, err := c.deploymentsOf(id)
	if err != nil {
		return err
	}
	done := map[string]bool{}
	for _, one := range list {
		var answer struct {
			Steps []struct {
				Object, Name string
				Finished     *string
				Error        *string
			}
		}
		if status, err := c.once(http.MethodGet, "/burano/v1/deployments/"+one.ID+"/steps", "", nil, &answer); err != nil || status != http.StatusOK {
			return orStatus(err, "steps", status)
		}
		for _, step := range answer.Steps {
			if step.Finished == nil || step.Error != nil {
				continue
			}
			if key := step.Object + " " + step.Name; done[key] {
				return fmt.Errorf("step %q of %s was done twice", key, id)
			} else {
				done[key] = true
			}
		}
	}
	return nil
}

// delete deletes the environment and waits until it is gone, with all it had.
func (c *client) delete(id string) error {
	asked := false
	err := c.until("delete "+id, func() (bool, error) {
		status, err := c.once(http.MethodGet, "/v1/environments/"+id, "", nil, nil)
		if err != nil || status == http.StatusNotFound {
			return err == nil, err
		}
		if asked {
			return false, nil
		}
		status, err = c.once(http.MethodDelete, "/v1/environments/"+id, "", nil, nil)
		switch {
		case err != nil:
			return false, err
		case status == http.StatusForbidden, status == http.StatusNotFound: // a request whose answer was lost
		case status >= 300:
			return false, fmt.Errorf("delete: status %d", status)
		}
		asked = true
		return false, nil
	})
	if err != nil {
		return err
	}
	things, err := c.site.world.things(id)
	if err == nil && len(things) > 0 {
		err = fmt.Errorf("environment %s is gone and %v of it is there", id, things)
	}
	c.deletions++
	return err
}
