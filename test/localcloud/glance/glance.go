// Package glance is the image service of the local cloud, answered in the shapes of Glance v2 (https://docs.openstack.org/api-ref/image/v2/): it stores
// the records of images and passes their data to the hypervisor as they arrive.
package glance

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/burano/burano/test/localcloud/answer"
	"github.com/burano/burano/test/localcloud/state"
)

// ImageStore makes servers' disks from images: the hypervisor.
type ImageStore interface {
	HasImage(imageID string) bool
	ImportImage(ctx context.Context, imageID string, tar io.Reader) error
	DeleteImage(ctx context.Context, imageID string) error
}

// Config has the folder of images and the receiver of their data.
type Config struct {
	StateDir string // folder for the table and the data, made when missing
	Endpoint string // base of the cloud's addresses, such as "http://127.0.0.1:5050"
	Images   ImageStore
	Formats  []string         // disk formats whose data Images takes, raw only when nil
	Now      func() time.Time // clock, time.Now when nil
	Logger   *slog.Logger
}

// Service is the image service. It is safe for concurrent use.
type Service struct {
	images     *state.Table[Image]
	namespaces *state.Table[Namespace]
	store      ImageStore
	dir        string
	endpoint   string
	formats    []string
	now        func() time.Time
	log        *slog.Logger

	uploads sync.Mutex // an image gets its data once
}

// New opens the table. An upload that the process's end has cut off is undone: its image waits for data again.
func New(config Config) (*Service, error) {
	s := &Service{
		store: config.Images, dir: filepath.Join(config.StateDir, "data"), endpoint: config.Endpoint,
		formats: config.Formats, now: config.Now, log: config.Logger,
	}
	if s.formats == nil {
		s.formats = []string{"raw"}
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if s.images, err = state.Open[Image](config.StateDir, "images"); err != nil {
		return nil, fmt.Errorf("open glance: %w", err)
	}
	if s.namespaces, err = state.Open[Namespace](config.StateDir, "namespaces"); err != nil {
		return nil, fmt.Errorf("open glance: %w", err)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("open glance: %w", err)
	}
	for _, image := range s.images.All() {
		if image.Status == StatusSaving {
			if err := s.undoUpload(context.Background(), image.ID); err != nil {
				return nil, fmt.Errorf("undo the broken upload of image %s: %w", image.ID, err)
			}
		}
	}
	return s, nil
}

// Handler answers the image API; it sees paths from "/v2" on, and "/" for the list of versions. The caller comes with the
// request's context (internal/identity).
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	serve := func(pattern string, h handler) { mux.Handle(pattern, s.handle(h)) }
	serve("GET /{$}", s.listVersions)
	serve("GET /versions", s.listVersions)
	serve("GET /v2/images", s.listImages)
	serve("POST /v2/images", s.createImage)
	serve("GET /v2/images/{id}", s.showImage)
	serve("PATCH /v2/images/{id}", s.patchImage)
	serve("DELETE /v2/images/{id}", s.deleteImage)
	serve("PUT /v2/images/{id}/file", s.upload)
	serve("GET /v2/images/{id}/file", s.download)
	serve("PUT /v2/images/{id}/tags/{tag}", s.addTag)
	serve("DELETE /v2/images/{id}/tags/{tag}", s.removeTag)
	serve("GET /v2/images/{id}/members", s.listMembers)
	serve("GET /v2/metadefs/namespaces", s.listNamespaces)
	serve("POST /v2/metadefs/namespaces", s.createNamespace)
	serve("GET /v2/metadefs/namespaces/{namespace}", s.showNamespace)
	serve("DELETE /v2/metadefs/namespaces/{namespace}", s.deleteNamespace)
	serve("GET /v2/metadefs/namespaces/{namespace}/objects", s.listObjects)
	serve("/", func(http.ResponseWriter, *http.Request) error {
		return failure{http.StatusNotFound, "The resource could not be found."}
	})
	return mux
}

// handler answers one request; a failure that it returns becomes Glance's error page.
type handler func(http.ResponseWriter, *http.Request) error

func (s *Service) handle(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		if err == nil {
			return
		}
		var f failure
		if !errors.As(err, &f) {
			s.log.ErrorContext(r.Context(), "glance failed", "method", r.Method, "path", r.URL.Path, "error", err)
			f = failure{http.StatusInternalServerError, "The server has either erred or is incapable of performing the requested operation."}
		}
		writeFailure(w, f)
	})
}

// failure is an error with the status that Glance answers it with.
type failure struct {
	status  int
	message string
}

func (f failure) Error() string { return f.message }

func noImage(id string) failure {
	return failure{http.StatusNotFound, "Failed to find image " + id}
}

func invalid(format string, args ...any) failure {
	return failure{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

func forbidden(format string, args ...any) failure {
	return failure{http.StatusForbidden, fmt.Sprintf(format, args...)}
}

// writeFailure writes WebOb's page for an error, which is Glance's answer.
func writeFailure(w http.ResponseWriter, f failure) {
	title := fmt.Sprintf("%d %s", f.status, http.StatusText(f.status))
	w.Header().Set("Content-Type", "text/html; charset=UTF-8")
	w.WriteHeader(f.status)
	_, _ = fmt.Fprintf(w, "<html>\n <head>\n  <title>%s</title>\n </head>\n <body>\n  <h1>%s</h1>\n  %s<br /><br />\n\n\n </body>\n</html>",
		title, title, html.EscapeString(f.message))
}

func (s *Service) listVersions(w http.ResponseWriter, _ *http.Request) error {
	links := []map[string]any{{"rel": "self", "href": s.endpoint + "/image/v2/"}}
	answer.JSON(w, http.StatusMultipleChoices, map[string]any{"versions": []map[string]any{
		{"id": "v2.9", "status": "CURRENT", "links": links},
		{"id": "v2.0", "status": "SUPPORTED", "links": links},
	}})
	return nil
}
