// Package swift is the object store of the local cloud, answered in the shapes of Swift v1
// (https://docs.openstack.org/api-ref/object-store/): containers with access lists, and objects that are files. Large objects, versions,
// metadata and temporary URLs are not there.
package swift

import (
	"crypto/md5" //nolint:gosec // Swift's ETag
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
	"github.com/burano/burano/test/localcloud/state"
)

// maxObject is the largest object, in bytes: Swift's own limit without segments is 5 GiB.
const maxObject = 64 << 20

// Config has the service's folder and dependencies.
type Config struct {
	StateDir string // folder of tables and files, made when missing
	Logger   *slog.Logger
}

// container is one of an account, which is a project.
type container struct {
	Project, Name string
	Read, Write   string // access lists
}

func (c container) id() string { return c.Project + "/" + c.Name }

// Service is the object store. It is safe for concurrent use.
type Service struct {
	containers *state.Table[container]
	dir        string
	log        *slog.Logger
	mutex      sync.RWMutex // of files
}

// New opens the table.
func New(config Config) (*Service, error) {
	s := &Service{dir: filepath.Join(config.StateDir, "objects"), log: config.Logger}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var err error
	s.containers, err = state.Open[container](config.StateDir, "containers")
	if err := errors.Join(err, os.MkdirAll(s.dir, 0o700)); err != nil {
		return nil, fmt.Errorf("open swift: %w", err)
	}
	return s, nil
}

// Handler answers the object store's API; it sees paths from "/v1" on. The caller comes with the request's context (internal/identity).
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	failures := answer.Failures{Service: "swift", Own: "The server could not comply with the request.", Log: s.log, Statuses: map[fault.Kind]int{
		fault.Invalid: http.StatusBadRequest, fault.Forbidden: http.StatusForbidden, fault.NotFound: http.StatusNotFound, fault.Conflict: http.StatusConflict,
		fault.TooLarge: http.StatusRequestEntityTooLarge}}
	open := func(pattern string, h answer.Handler) { mux.Handle(pattern, failures.Handle(h)) }
	open("GET /v1/{account}", s.listContainers)
	open("PUT /v1/{account}/{container}", s.putContainer)
	open("POST /v1/{account}/{container}", s.putContainer)
	open("HEAD /v1/{account}/{container}", s.listObjects)
	open("GET /v1/{account}/{container}", s.listObjects)
	open("DELETE /v1/{account}/{container}", s.deleteContainer)
	open("PUT /v1/{account}/{container}/{object...}", s.putObject)
	open("GET /v1/{account}/{container}/{object...}", s.getObject) // and HEAD
	open("DELETE /v1/{account}/{container}/{object...}", s.deleteObject)
	return mux
}

var (
	errForbidden = fault.New(fault.Forbidden, "Access was denied to this resource.")
	errNotFound  = fault.New(fault.NotFound, "The resource could not be found.")
)

// projectOf is the project of the account in a path.
func projectOf(r *http.Request) string { return strings.TrimPrefix(r.PathValue("account"), "AUTH_") }

// owns reports whether the caller may do everything in the account (operator_roles).
func owns(r *http.Request) bool {
	caller := identity.From(r.Context())
	return caller.ProjectID == projectOf(r) && (caller.Admin || slices.Contains(caller.Roles, "member"))
}

// in finds the container of a path for its owner or a user on the access list that pick chooses.
func (s *Service) in(r *http.Request, pick func(container) string) (container, error) {
	found, there := s.containers.Get(projectOf(r) + "/" + r.PathValue("container"))
	if owns(r) {
		if !there {
			return found, errNotFound
		}
		return found, nil
	}
	caller := identity.From(r.Context())
	if there && pick != nil {
		for one := range strings.SplitSeq(pick(found), ",") {
			if one == caller.ProjectID+":"+caller.UserID || one == "*:"+caller.UserID {
				return found, nil
			}
		}
	}
	return found, errForbidden
}

func readers(c container) string { return c.Read }
func writers(c container) string { return c.Write }

func (s *Service) listContainers(w http.ResponseWriter, r *http.Request) error {
	if !owns(r) {
		return errForbidden
	}
	list := []any{}
	for _, one := range s.containers.All() {
		if one.Project == projectOf(r) && one.Name > r.URL.Query().Get("marker") {
			names, bytes, err := s.objects(one, "", "")
			if err != nil {
				return err
			}
			list = append(list, map[string]any{"name": one.Name, "count": len(names), "bytes": bytes})
		}
	}
	answer.JSON(w, http.StatusOK, list)
	return nil
}

func (s *Service) putContainer(w http.ResponseWriter, r *http.Request) error {
	if !owns(r) {
		return errForbidden
	}
	row, there := s.containers.Get(projectOf(r) + "/" + r.PathValue("container"))
	if !there && r.Method == http.MethodPost {
		return errNotFound
	}
	row.Project, row.Name = projectOf(r), r.PathValue("container")
	for header, list := range map[string]*string{"X-Container-Read": &row.Read, "X-Container-Write": &row.Write} {
		if values, given := r.Header[header]; given {
			*list = strings.Join(values, ",")
		}
	}
	if err := s.containers.Put(row.id(), row); err != nil {
		return err
	}
	status := http.StatusCreated
	if there {
		status = http.StatusAccepted
	}
	w.WriteHeader(status)
	return nil
}

func (s *Service) deleteContainer(w http.ResponseWriter, r *http.Request) error {
	found, err := s.in(r, nil)
	if err != nil {
		return err
	}
	names, _, err := s.objects(found, "", "")
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return fault.New(fault.Conflict, "There was a conflict when trying to complete your request.")
	}
	if _, err := s.containers.Delete(found.id()); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// objects lists the names of a container's objects, and how many bytes they have.
func (s *Service) objects(in container, prefix, marker string) (names []string, bytes int64, err error) {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	entries, err := os.ReadDir(s.folder(in))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	for _, entry := range entries {
		name, err := url.PathUnescape(entry.Name())
		if err != nil || !strings.HasPrefix(name, prefix) || name <= marker {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			return nil, 0, err
		}
		names, bytes = append(names, name), bytes+info.Size()
	}
	slices.Sort(names)
	return names, bytes, nil
}

func (s *Service) listObjects(w http.ResponseWriter, r *http.Request) error {
	found, err := s.in(r, readers)
	if err != nil {
		return err
	}
	names, bytes, err := s.objects(found, r.URL.Query().Get("prefix"), r.URL.Query().Get("marker"))
	if err != nil {
		return err
	}
	header := w.Header()
	header.Set("X-Container-Object-Count", strconv.Itoa(len(names)))
	header.Set("X-Container-Bytes-Used", strconv.FormatInt(bytes, 10))
	header.Set("X-Timestamp", "0.0")
	if owns(r) {
		for name, list := range map[string]string{"X-Container-Read": found.Read, "X-Container-Write": found.Write} {
			if list != "" {
				header.Set(name, list)
			}
		}
	}
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	list := []any{}
	for _, name := range names {
		info, err := os.Stat(s.file(found, name))
		if err != nil {
			continue // deleted meanwhile
		}
		list = append(list, map[string]any{"name": name, "bytes": info.Size(), "content_type": "application/octet-stream",
			"last_modified": info.ModTime().UTC().Format("2006-01-02T15:04:05.000000"), "hash": ""})
	}
	answer.JSON(w, http.StatusOK, list)
	return nil
}

func (s *Service) folder(in container) string {
	return filepath.Join(s.dir, url.PathEscape(in.Project), url.PathEscape(in.Name))
}

func (s *Service) file(in container, object string) string {
	return filepath.Join(s.folder(in), strings.ReplaceAll(url.PathEscape(object), ".", "%2E"))
}

func (s *Service) putObject(w http.ResponseWriter, r *http.Request) error {
	found, err := s.in(r, writers)
	if err != nil {
		return err
	}
	content, err := io.ReadAll(io.LimitReader(r.Body, maxObject+1))
	if err != nil {
		return fault.New(fault.Invalid, "the object broke off: %v", err)
	}
	if len(content) > maxObject {
		return fault.New(fault.TooLarge, "The body of your request was too large for this server.")
	}
	sum := md5.Sum(content) //nolint:gosec // Swift's ETag
	etag := hex.EncodeToString(sum[:])
	if wanted := r.Header.Get("Etag"); wanted != "" && wanted != etag {
		return answer.Failure{Status: http.StatusUnprocessableEntity, Message: "Unable to process the contained instructions"}
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	file := s.file(found, r.PathValue("object"))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return err
	}
	w.Header().Set("Etag", etag)
	w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
	w.WriteHeader(http.StatusCreated)
	return nil
}

func (s *Service) getObject(w http.ResponseWriter, r *http.Request) error {
	found, err := s.in(r, readers)
	if err != nil {
		return err
	}
	s.mutex.RLock()
	content, err := os.ReadFile(s.file(found, r.PathValue("object")))
	s.mutex.RUnlock()
	if errors.Is(err, fs.ErrNotExist) {
		return errNotFound
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(content) // a broken connection is the client's to notice
	}
	return nil
}

func (s *Service) deleteObject(w http.ResponseWriter, r *http.Request) error {
	found, err := s.in(r, writers)
	if err != nil {
		return err
	}
	s.mutex.Lock()
	err = os.Remove(s.file(found, r.PathValue("object")))
	s.mutex.Unlock()
	if errors.Is(err, fs.ErrNotExist) {
		return errNotFound
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
