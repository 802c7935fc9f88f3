package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/sirupsen/logrus"
)

func TestMain(m *testing.M) {
	logrus.SetOutput(io.Discard) // distribution's
	m.Run()
}

// served is a registry that tests push to.
type served struct {
	t         *testing.T
	host      string
	collector *collector
}

func serve(t *testing.T) served {
	t.Helper()
	config := &configuration.Configuration{Storage: configuration.Storage{"filesystem": {"rootdirectory": t.TempDir()}, "delete": {"enabled": true}}}
	config.Catalog.MaxEntries = 100
	files, images, err := open(t.Context(), config.Storage)
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{files: files, images: images}
	server := httptest.NewServer(c.gate.over(handlers.NewApp(t.Context(), config)))
	t.Cleanup(server.Close)
	return served{t, strings.TrimPrefix(server.URL, "http://"), c}
}

func (s served) reference(image string) name.Reference {
	s.t.Helper()
	reference, err := name.ParseReference(s.host + "/" + image)
	if err != nil {
		s.t.Fatal(err)
	}
	return reference
}

func (s served) has(image string) bool {
	found, err := remote.Image(s.reference(image), remote.WithRetryBackoff(remote.Backoff{Steps: 1}))
	if err == nil {
		var layers []v1.Layer
		if layers, err = found.Layers(); err == nil {
			for _, layer := range layers {
				content, err := layer.Compressed()
				if err != nil {
					return false
				}
				_, err = io.Copy(io.Discard, content)
				if err != nil {
					return false
				}
			}
		}
	}
	return err == nil
}

func (s served) push(image string, content v1.Image) (digest string) {
	s.t.Helper()
	if err := remote.Write(s.reference(image), content); err != nil {
		s.t.Fatal(err)
	}
	hash, err := content.Digest()
	if err != nil {
		s.t.Fatal(err)
	}
	return hash.String()
}

func (s served) collect(now time.Time) {
	s.t.Helper()
	if err := s.collector.collect(s.t.Context(), now); err != nil {
		s.t.Fatal(err)
	}
}

func some(t *testing.T) v1.Image {
	t.Helper()
	image, err := random.Image(1000, 2)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func want(t *testing.T, is bool, what string) {
	t.Helper()
	if !is {
		t.Error(what)
	}
}

func TestAnImageWithoutTagsStaysForItsDaysAndThoseWithTagsForEver(t *testing.T) {
	s := serve(t)
	now := time.Now()
	s.collect(now)
	s.push("other:1", some(t))
	former := s.push("team/web:1", some(t))
	s.push("team/web:2", some(t))
	s.push("team/web:1", some(t)) // over the former
	index, err := random.Index(1000, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	part := "team/web@" + manifest.Manifests[0].Digest.String()
	tag := s.reference("team/web:several")
	if err := remote.WriteIndex(tag, index); err != nil {
		t.Fatal(err)
	}
	rest := func() {
		t.Helper()
		for _, image := range []string{"other:1", "team/web:1", "team/web:2", part} {
			want(t, s.has(image), image+" is there")
		}
	}
	s.collect(now.AddDate(1, 0, 0))
	want(t, s.has("team/web@"+former), "without a limit it stays")
	rest()
	s.collector.untagged = 30 * 24 * time.Hour
	s.collect(now.AddDate(1, 0, 0))
	want(t, s.has("team/web@"+former), "its days begin when it is first seen without a tag")
	s.collect(now.AddDate(1, 0, 29))
	want(t, s.has("team/web@"+former), "it is younger than that")
	rest()
	s.collect(now.AddDate(1, 0, 31))
	want(t, !s.has("team/web@"+former), "its days are over")
	rest()
	s.push("team/web:several", some(t))
	s.collect(now.AddDate(2, 0, 0))
	want(t, s.has(part), "what an image is made of stays with it")
	s.push("team/web:again", some(t))
	if err := remote.WriteIndex(s.reference("team/web:again"), index); err != nil {
		t.Fatal(err)
	}
	s.collect(now.AddDate(2, 0, 31))
	want(t, s.has(part), "it has a tag again")
	s.collect(now.AddDate(3, 0, 0))
	rest()
}

func TestWhatIsDeletedGivesItsRoomBackAndNothingElse(t *testing.T) {
	s := serve(t)
	image := some(t)
	digest := s.push("web:1", image)
	changed, err := mutate.CreatedAt(image, v1.Time{Time: time.Unix(1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	s.push("web:2", changed)
	if err := remote.Delete(s.reference("web@" + digest)); err != nil {
		t.Fatal(err)
	}
	s.collect(time.Now())
	want(t, !s.has("web@"+digest), "it is deleted")
	want(t, s.has("web:2"), "it shares layers with the other")
}

func TestNobodyPushesWhileTheStorageIsCollected(t *testing.T) {
	var g gate
	began, end := make(chan bool), make(chan bool)
	handler := g.over(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodPut {
			began <- true
			<-end
			w.WriteHeader(http.StatusCreated)
		}
	}))
	ask := func(method, path string) {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, path, nil))
	}
	none := func() { t.Error("somebody pushes") }
	finished := make(chan bool)
	go func() { ask(http.MethodPut, "/v2/web/manifests/1"); finished <- true }()
	<-began
	want(t, !g.closed(time.Now().Add(time.Hour), none), "somebody pushes")
	end <- true
	<-finished
	want(t, !g.closed(time.Now(), none), "the next request of who has pushed may come")
	want(t, g.closed(time.Now().Add(quiet), func() {
		go func() { ask(http.MethodPut, "/v2/web/manifests/1"); finished <- true }()
		ask(http.MethodGet, "/v2/web/manifests/1")
		ask(http.MethodHead, "/v2/web/manifests/1")
		select {
		case <-began:
			t.Error("a push goes on meanwhile")
		case <-time.After(50 * time.Millisecond): // as long as it would take
		}
	}), "nobody pushes any more")
	<-began
	end <- true
	<-finished
	refused := g.over(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	later := time.Now().Add(quiet)
	refused.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v2/web/blobs/uploads/", nil))
	want(t, g.closed(later, func() {}), "who is not let in delays nothing")
}

func TestACollectionIsAtItsTimeOfEachDay(t *testing.T) {
	at, err := time.Parse("15:04", "03:30")
	if err != nil {
		t.Fatal(err)
	}
	for now, next := range map[string]string{
		"2026-11-26T03:29:59Z": "2026-11-26T03:30:00Z", "2026-11-26T03:30:00Z": "2026-11-27T03:30:00Z", "2026-12-31T12:00:00Z": "2027-01-01T03:30:00Z",
		"2026-11-26T04:00:00+02:00": "2026-11-26T03:30:00Z",
	} {
		now, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		if found := following(now, at).Format(time.RFC3339); found != next {
			t.Errorf("after %v: %s and not %s", now, found, next)
		}
	}
}

func TestTheRegistryHasTheImagesOfArchives(t *testing.T) {
	s, folder := serve(t), t.TempDir()
	write := func(image v1.Image) {
		t.Helper()
		tag, err := name.NewTag("registry.local/demo:1")
		if err != nil {
			t.Fatal(err)
		}
		if err := tarball.WriteToFile(filepath.Join(folder, "demo.tar"), tag, image); err != nil {
			t.Fatal(err)
		}
	}
	digest := func() string {
		t.Helper()
		found, err := remote.Head(s.reference("registry.local/demo:1"))
		if err != nil {
			t.Fatal(err)
		}
		return found.Digest.String()
	}
	fills := func() {
		t.Helper()
		if err := fill(t.Context(), s.collector.images, folder); err != nil {
			t.Fatal(err)
		}
		want(t, s.has("registry.local/demo:1"), "it is there")
		s.collect(time.Now())
		want(t, s.has("registry.local/demo:1"), "it stays")
	}
	write(some(t))
	fills()
	first := digest()
	fills()
	want(t, digest() == first, "the same again changes nothing")
	write(some(t))
	fills()
	want(t, digest() != first, "a newer archive has another image")
	if err := os.WriteFile(filepath.Join(folder, "broken.tar"), []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := fill(t.Context(), s.collector.images, folder)
	want(t, err != nil && strings.Contains(err.Error(), "broken.tar"), "what cannot be read is named")
	want(t, s.has("registry.local/demo:1"), "the others are there")
}

func TestAMirrorGoesOnWithoutTheOtherRegistryAndBeginsAnewWhenItIsFull(t *testing.T) {
	var away atomic.Bool
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if away.Load() {
			panic(http.ErrAbortHandler)
		}
		images.ServeHTTP(w, request)
	}))
	defer upstream.Close()
	other := served{t: t, host: strings.TrimPrefix(upstream.URL, "http://")}
	other.push("library/web:1", some(t))
	other.push("library/web:2", some(t))
	m := &mirror{options: mirrorOptions{Of: upstream.URL, Folder: filepath.Join(t.TempDir(), "mirror"), Bytes: 1 << 20}, keep: keep}
	server := httptest.NewServer(m)
	defer server.Close()
	s := served{t: t, host: strings.TrimPrefix(server.URL, "http://")}
	want(t, !s.has("library/web:1"), "it has not begun")

	away.Store(true)
	m.look(t.Context())
	want(t, m.proxy.Load() == nil, "the other registry does not answer")
	away.Store(false)
	m.look(t.Context())
	want(t, s.has("library/web:1"), "it is fetched")
	want(t, remote.Write(s.reference("library/mine:1"), some(t)) != nil, "nobody pushes to a mirror")
	kept := m.proxy.Load()
	m.look(t.Context())
	want(t, m.proxy.Load() == kept, "it goes on")

	away.Store(true)
	want(t, s.has("library/web:1"), "it is kept")
	want(t, !s.has("library/web:2"), "nobody has asked for it before")
	away.Store(false)

	m.options.Bytes, m.keep = 10, time.Second
	m.look(t.Context())
	want(t, m.proxy.Load() != nil && m.proxy.Load() != kept, "it has begun anew")
	away.Store(true)
	want(t, !s.has("library/web:1"), "with nothing")

	away.Store(false)
	want(t, s.has("library/web:1"), "it is fetched again")
	away.Store(true)
	for deadline := time.Now().Add(time.Minute); s.has("library/web:1"); { // in the first second it is cached
		if time.Now().After(deadline) {
			t.Fatal("what is too old goes")
		}
	}
}
