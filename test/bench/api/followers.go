package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// settled is the pause between the arrival of all followers and the measurement.
	settled = 5 * time.Second
	// talker is the class of an application whose deployment reports a line a second.
	talker = `Namespaces:
  =: org.bench
  std: io.murano
Name: Talker
Extends: std:Application
Properties:
  seconds:
    Contract: $.int().notNull()
Methods:
  deploy:
    Body:
      - $environment: $.find(std:Environment).require()
      - For: second
        In: range($.seconds)
        Do:
          - $environment.reporter.report($this, format('second {0}', $second))
          - sleep(1)
`
)

// follow measures the server's load while the given number of clients follow one deployment, which reports a line a second
// for the span.
func (t *target) follow(ctx context.Context, followers int, span time.Duration) error {
	if err := t.uploadTalker(ctx); err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: followers}}
	defer client.CloseIdleConnections()
	task, path, err := t.talk(ctx, client, int((span+settled)/time.Second)+60)
	if err != nil {
		return err
	}
	following, end := context.WithCancel(ctx)
	defer end()
	var began, events atomic.Int64
	var group errgroup.Group
	for range followers {
		group.Go(func() error {
			err := t.readEvents(following, client, task, &began, &events)
			if following.Err() != nil {
				return nil // the measurement is over
			}
			return err
		})
	}
	for began.Load() < int64(followers) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	pause := func(span time.Duration) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(span):
			return nil
		}
	}
	if err := pause(settled); err != nil {
		return err
	}
	used, had, start := t.processor(), events.Load(), time.Now()
	if err := pause(span); err != nil {
		return err
	}
	took := time.Since(start)
	used, had = t.processor()-used, events.Load()-had
	fmt.Printf("| %d follow one deployment | %s | %.1f %% of a processor | %.0f events/s | %s at most |\n", followers, load(),
		100*used.Seconds()/took.Seconds(), float64(had)/took.Seconds(), t.memory())
	end()
	return errors.Join(group.Wait(), t.send(ctx, client, http.MethodDelete, path+"?abandon=true", nil, nil))
}

// talk deploys an environment of one application that reports a line in each of the seconds.
func (t *target) talk(ctx context.Context, client *http.Client, seconds int) (task, path string, err error) {
	var environment, session struct{ ID string }
	if err := t.send(ctx, client, http.MethodPost, "/v1/environments", map[string]any{"name": fmt.Sprintf("talking %d", time.Now().UnixNano())}, &environment); err != nil {
		return "", "", err
	}
	path = "/v1/environments/" + environment.ID
	if err := t.send(ctx, client, http.MethodPost, path+"/configure", nil, &session); err != nil {
		return "", "", err
	}
	t.environment, t.session = environment.ID, session.ID
	application := map[string]any{"?": map[string]any{"id": environment.ID + "-talker", "type": "org.bench.Talker"}, "seconds": seconds}
	if err := t.send(ctx, client, http.MethodPost, path+"/services", application, nil); err != nil {
		return "", "", err
	}
	if err := t.send(ctx, client, http.MethodPost, path+"/sessions/"+session.ID+"/deploy", nil, nil); err != nil {
		return "", "", err
	}
	var list struct{ Deployments []struct{ ID string } }
	if err := t.send(ctx, client, http.MethodGet, path+"/deployments?limit=1", nil, &list); err != nil {
		return "", "", err
	}
	return list.Deployments[0].ID, path, nil
}

// readEvents follows a deployment until ctx ends.
func (t *target) readEvents(ctx context.Context, client *http.Client, task string, began, events *atomic.Int64) error {
	call, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url+"/burano/v1/deployments/"+task+"/events", nil)
	if err != nil {
		return err
	}
	call.Header.Set("X-Auth-Token", t.token)
	response, err := client.Do(call)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers a follower with %s", t.name, response.Status)
	}
	began.Add(1)
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "event: ") {
			events.Add(1)
		}
	}
	return errors.Join(errors.New("a stream of events ended"), lines.Err())
}

func (t *target) uploadTalker(ctx context.Context) error {
	return t.uploadFiles(ctx, "org.bench.Talker", "{}", map[string]string{
		"manifest.yaml": "Format: 1.4\nType: Application\nFullName: org.bench.Talker\nName: Talker\nAuthor: Burano\nDescription: It talks.\n" +
			"Classes:\n  org.bench.Talker: Talker.yaml\n",
		"Classes/Talker.yaml": talker,
	})
}
