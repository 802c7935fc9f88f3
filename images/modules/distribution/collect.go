package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/registry/storage"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
)

const (
	repositories = "/docker/registry/v2/repositories"
	// untaggedFile has since when images have no tags: digests by repositories, with the time at which a collection saw them first.
	untaggedFile = "/docker/registry/v2/untagged.json"
	// quiet is the time without a push before a collection: the layers of a pushed image come first, and no image has them yet.
	quiet = 2 * time.Minute
)

// collector removes data that no image refers to.
type collector struct {
	files    driver.StorageDriver
	images   distribution.Namespace
	untagged time.Duration // how long an image without tags stays; 0: for ever
	gate     gate
}

// daily collects at this time of each day, as soon as there is no push.
func (c *collector) daily(ctx context.Context, at time.Time) {
	for {
		if !pause(ctx, time.Until(following(time.Now(), at))) {
			return
		}
		for !c.gate.closed(time.Now(), func() {
			began := time.Now()
			if err := c.collect(ctx, began); err != nil {
				log.Printf("what no image has any more stays until the next time: %v", err)
				return
			}
			log.Printf("what no image has any more was removed, in %.1f s", time.Since(began).Seconds())
		}) {
			if !pause(ctx, 10*time.Second) {
				return
			}
		}
	}
}

func pause(ctx context.Context, long time.Duration) (over bool) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// following is the next time that it is this time of the day, UTC.
func following(now, at time.Time) time.Time {
	now = now.UTC()
	next := time.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), 0, 0, time.UTC)
	if !next.After(now) {
		next = next.AddDate(0, 0, 1)
	}
	return next
}

// collect removes images that have had no tag for long, and then the blobs that no manifest names. It runs without concurrent writes.
func (c *collector) collect(ctx context.Context, now time.Time) error {
	var none driver.PathNotFoundError
	if _, err := c.files.Stat(ctx, repositories); errors.As(err, &none) {
		return nil // nothing was ever pushed
	}
	if c.untagged > 0 {
		if err := c.forget(ctx, now); err != nil {
			return fmt.Errorf("remove images without tags: %w", err)
		}
	}
	return storage.MarkAndSweep(ctx, c.files, c.images, storage.GCOpts{Quiet: true})
}

// forget removes images that have had no tag for too long, and are not part of one that stays.
func (c *collector) forget(ctx context.Context, now time.Time) error {
	former, seen := map[string]time.Time{}, map[string]time.Time{}
	text, err := c.files.GetContent(ctx, untaggedFile)
	var none driver.PathNotFoundError
	if err == nil {
		err = json.Unmarshal(text, &former)
	} else if errors.As(err, &none) {
		err = nil
	}
	if err != nil {
		return err
	}
	all, is := c.images.(distribution.RepositoryEnumerator)
	if !is {
		return errors.New("the storage does not list its repositories")
	}
	err = all.Enumerate(ctx, func(name string) error {
		one, err := c.repository(ctx, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		stay := one.with(one.tagged)
		var young []digest.Digest
		for manifest := range one.parts {
			if slices.Contains(stay, manifest) {
				continue
			}
			key := name + "@" + manifest.String()
			since, known := former[key]
			if !known {
				since = now
			}
			seen[key] = since
			if now.Sub(since) < c.untagged {
				young = append(young, manifest)
			}
		}
		stay = append(stay, one.with(young)...)
		for manifest := range one.parts {
			if slices.Contains(stay, manifest) {
				continue
			}
			if err := storage.NewVacuum(ctx, c.files).RemoveManifest(name, manifest, one.tags); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			delete(seen, name+"@"+manifest.String())
		}
		return nil
	})
	if err != nil && !errors.As(err, &none) {
		return err
	}
	if text, err = json.Marshal(seen); err != nil {
		return err
	}
	return c.files.PutContent(ctx, untaggedFile, text)
}

// repository is the content of a repository.
type repository struct {
	tags   []string
	tagged []digest.Digest
	parts  map[digest.Digest][]digest.Digest // by manifest, the manifests that it is made of
}

// with are these manifests and all that they are made of.
func (r repository) with(manifests []digest.Digest) (all []digest.Digest) {
	for left := slices.Clone(manifests); len(left) > 0; {
		one := left[0]
		left = left[1:]
		if !slices.Contains(all, one) {
			all = append(all, one)
			left = append(left, r.parts[one]...)
		}
	}
	return all
}

func (c *collector) repository(ctx context.Context, name string) (one repository, err error) {
	named, err := reference.WithName(name)
	if err != nil {
		return one, err
	}
	found, err := c.images.Repository(ctx, named)
	if err != nil {
		return one, err
	}
	manifests, err := found.Manifests(ctx)
	if err != nil {
		return one, err
	}
	tags := found.Tags(ctx)
	var unknown distribution.ErrRepositoryUnknown
	if one.tags, err = tags.All(ctx); err != nil && !errors.As(err, &unknown) { // no tag was ever set
		return one, err
	}
	for _, tag := range one.tags {
		var gone distribution.ErrTagUnknown
		descriptor, err := tags.Get(ctx, tag)
		if errors.As(err, &gone) {
			continue
		}
		if err != nil {
			return one, err
		}
		one.tagged = append(one.tagged, descriptor.Digest)
	}
	one.parts = map[digest.Digest][]digest.Digest{}
	list, is := manifests.(distribution.ManifestEnumerator)
	if !is {
		return one, errors.New("the storage does not list its manifests")
	}
	err = list.Enumerate(ctx, func(manifest digest.Digest) error {
		content, err := manifests.Get(ctx, manifest)
		if err != nil {
			return err
		}
		one.parts[manifest] = nil
		for _, part := range content.References() {
			one.parts[manifest] = append(one.parts[manifest], part.Digest)
		}
		return nil
	})
	var none driver.PathNotFoundError
	if errors.As(err, &none) { // an upload that never became an image
		err = nil
	}
	return one, err
}

// gate tracks pushes, and lets them wait while it is closed.
type gate struct {
	pushing sync.RWMutex // held for reading by requests that push
	mutex   sync.Mutex
	last    time.Time // when one of them ended
}

// over is a handler behind the gate.
func (g *gate) over(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		// A client that asks whether a layer exists does not push it yet.
		if request.Method == http.MethodGet || request.Method == http.MethodHead && !strings.Contains(request.URL.Path, "/blobs/") {
			next.ServeHTTP(w, request)
			return
		}
		g.pushing.RLock()
		defer g.pushing.RUnlock()
		answer := &answered{ResponseWriter: w}
		next.ServeHTTP(answer, request)
		if answer.status < 400 { // an unauthorized client pushes nothing
			g.mutex.Lock()
			defer g.mutex.Unlock()
			g.last = time.Now()
		}
	})
}

// closed runs do without concurrent writes; not at all shortly after a push.
func (g *gate) closed(now time.Time, do func()) (done bool) {
	if !g.pushing.TryLock() {
		return false
	}
	defer g.pushing.Unlock()
	g.mutex.Lock()
	last := g.last
	g.mutex.Unlock()
	if now.Sub(last) < quiet {
		return false
	}
	do()
	return true
}

// answered knows the status of an answer.
type answered struct {
	http.ResponseWriter
	status int
}

func (a *answered) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}
