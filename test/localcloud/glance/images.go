package glance

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
)

// The statuses of an image.
const (
	StatusQueued = "queued" // it has no data yet
	StatusSaving = "saving" // data is arriving
	StatusActive = "active" // servers can be made of it
)

// formatDocker is the container format of images of containers: archives that Glance keeps, and no server is made of.
const formatDocker = "docker"

// Image is the record of an image.
type Image struct {
	ID, Name, Status string
	Visibility       string // public, community, shared or private
	Owner            string // project id
	ContainerFormat  string
	DiskFormat       string
	MinDisk, MinRAM  int // GB, MiB
	Protected        bool
	Hidden           bool
	Tags             []string
	Checksum         string // MD5, hexadecimal; "" without data
	Hash             string // SHA-512, hexadecimal; "" without data
	Size             int64  // bytes
	CreatedAt        time.Time
	UpdatedAt        time.Time
	Properties       map[string]string
}

var (
	visibilities     = []string{"public", "community", "shared", "private"}
	containerFormats = []string{"ami", "ari", "aki", "bare", "ovf", "ova", formatDocker, "compressed"}
	diskFormats      = []string{"ami", "ari", "aki", "vhd", "vhdx", "vmdk", "raw", "qcow2", "vdi", "iso", "ploop"}
	readOnly         = []string{
		"status", "owner", "checksum", "os_hash_algo", "os_hash_value", "size", "virtual_size", "created_at", "updated_at",
		"self", "file", "schema", "direct_url", "locations",
	}
)

// Get returns the image with this id; none is a fault of kind NotFound.
func (s *Service) Get(_ context.Context, id string) (Image, error) {
	image, ok := s.images.Get(id)
	if !ok {
		return Image{}, fault.New(fault.NotFound, "Image %s could not be found.", id)
	}
	return image, nil
}

// Find returns the image that a project refers to by an id or a name, its own before others'. None, or several of that name, is a fault.
func (s *Service) Find(_ context.Context, projectID, ref string) (Image, error) {
	if image, ok := s.images.Get(ref); ok && image.usableBy(projectID) {
		return image, nil
	}
	var own, foreign []Image
	for _, image := range s.images.All() {
		switch {
		case image.Name != ref || image.Status != StatusActive || !image.usableBy(projectID):
		case image.Owner == projectID:
			own = append(own, image)
		default:
			foreign = append(foreign, image)
		}
	}
	found := own
	if len(own) == 0 {
		found = foreign
	}
	switch len(found) {
	case 0:
		return Image{}, fault.New(fault.NotFound, "Image %s could not be found.", ref)
	case 1:
		return found[0], nil
	default:
		return Image{}, fault.New(fault.Conflict, "Multiple images exist with name '%s': use an id.", ref)
	}
}

func (i Image) usableBy(projectID string) bool {
	return i.Owner == projectID || i.Visibility == "public" || i.Visibility == "community"
}

// visible returns the image of the request's path, if the caller may see it.
func (s *Service) visible(r *http.Request) (Image, error) {
	caller := identity.From(r.Context())
	image, ok := s.images.Get(r.PathValue("id"))
	if !ok || (!caller.Admin && !image.usableBy(caller.ProjectID)) {
		return Image{}, noImage(r.PathValue("id"))
	}
	return image, nil
}

// owned returns the image of the request's path, if the caller may change it.
func (s *Service) owned(r *http.Request) (Image, error) {
	image, err := s.visible(r)
	if err != nil {
		return Image{}, err
	}
	if caller := identity.From(r.Context()); !caller.Admin && caller.ProjectID != image.Owner {
		return Image{}, forbidden("You are not permitted to change image %s: it belongs to another project.", image.ID)
	}
	return image, nil
}

func (i Image) body() map[string]any {
	body := map[string]any{}
	for name, value := range i.Properties {
		body[name] = value
	}
	maps.Copy(body, map[string]any{
		"id": i.ID, "name": nullable(i.Name), "status": i.Status, "visibility": i.Visibility, "owner": i.Owner,
		"container_format": nullable(i.ContainerFormat), "disk_format": nullable(i.DiskFormat),
		"min_disk": i.MinDisk, "min_ram": i.MinRAM, "protected": i.Protected, "os_hidden": i.Hidden,
		"tags": append([]string{}, i.Tags...), "checksum": nullable(i.Checksum),
		"os_hash_algo": nil, "os_hash_value": nullable(i.Hash), "size": nil, "virtual_size": nil,
		"created_at": i.CreatedAt.UTC().Format(time.RFC3339), "updated_at": i.UpdatedAt.UTC().Format(time.RFC3339),
		"self": "/v2/images/" + i.ID, "file": "/v2/images/" + i.ID + "/file", "schema": "/v2/schemas/image",
	})
	if i.Status == StatusActive {
		body["os_hash_algo"], body["size"] = "sha512", i.Size
	}
	return body
}

func nullable(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func (s *Service) createImage(w http.ResponseWriter, r *http.Request) error {
	caller := identity.From(r.Context())
	var wanted map[string]any
	if err := readJSON(r, &wanted); err != nil {
		return err
	}
	image := Image{
		Visibility: "shared", Owner: caller.ProjectID, Status: StatusQueued, CreatedAt: s.now(), UpdatedAt: s.now(),
		Properties: map[string]string{},
	}
	if owner, ok := wanted["owner"].(string); ok && (caller.Admin || owner == caller.ProjectID) {
		image.Owner = owner
		delete(wanted, "owner")
	}
	if image.Owner == "" {
		return forbidden("You are not authorized to complete add_image action: the token has no project.")
	}
	id, given := wanted["id"].(string)
	delete(wanted, "id")
	if image.ID = id; !given {
		image.ID = newUUID()
	} else if !isUUID(id) {
		return invalid("Provided object does not match schema 'image': %s is not a UUID", id)
	}
	for name, value := range wanted {
		if err := image.set(caller, name, value); err != nil {
			return err
		}
	}
	s.uploads.Lock()
	defer s.uploads.Unlock()
	if _, taken := s.images.Get(image.ID); taken {
		return failure{http.StatusConflict, fmt.Sprintf("Image ID %s already exists!", image.ID)}
	}
	if err := s.images.Put(image.ID, image); err != nil {
		return err
	}
	w.Header().Set("Location", s.endpoint+"/image/v2/images/"+image.ID)
	answer.JSON(w, http.StatusCreated, image.body())
	return nil
}

// set changes one attribute or property to a value that came as JSON.
func (i *Image) set(caller identity.Caller, name string, value any) error {
	if slices.Contains(readOnly, name) || name == "id" {
		return forbidden("Attribute '%s' is read-only.", name)
	}
	text := func(into *string, allowed []string) error {
		v, ok := value.(string)
		if value != nil && (!ok || len(v) > 255 || (allowed != nil && !slices.Contains(allowed, v))) {
			return invalid("Provided object does not match schema 'image': %v is not a value of '%s'", value, name)
		}
		*into = v
		return nil
	}
	number := func(into *int) error {
		v, ok := value.(float64)
		if !ok || v < 0 || v != float64(int(v)) {
			return invalid("Provided object does not match schema 'image': %v is no whole number, wanted in '%s'", value, name)
		}
		*into = int(v)
		return nil
	}
	truth := func(into *bool) error {
		v, ok := value.(bool)
		if !ok {
			return invalid("Provided object does not match schema 'image': %v is neither true nor false, wanted in '%s'", value, name)
		}
		*into = v
		return nil
	}
	switch name {
	case "name":
		return text(&i.Name, nil)
	case "visibility":
		if value == "public" && !caller.Admin {
			return forbidden("You are not authorized to complete publicize_image action.")
		}
		if value == nil {
			return invalid("Provided object does not match schema 'image': null is not a value of 'visibility'")
		}
		return text(&i.Visibility, visibilities)
	case "container_format":
		return text(&i.ContainerFormat, containerFormats)
	case "disk_format":
		return text(&i.DiskFormat, diskFormats)
	case "min_disk":
		return number(&i.MinDisk)
	case "min_ram":
		return number(&i.MinRAM)
	case "protected":
		return truth(&i.Protected)
	case "os_hidden":
		return truth(&i.Hidden)
	case "tags":
		values, ok := value.([]any)
		i.Tags = nil
		for _, v := range values {
			tag, isText := v.(string)
			ok = ok && isText && len(tag) <= 255
			if !slices.Contains(i.Tags, tag) {
				i.Tags = append(i.Tags, tag)
			}
		}
		if !ok {
			return invalid("Provided object does not match schema 'image': %v is no list of texts, wanted in 'tags'", value)
		}
		return nil
	default:
		v, ok := value.(string)
		if !ok || len(name) > 255 {
			return invalid("Provided object does not match schema 'image': %v is not of type 'string' in property '%s'", value, name)
		}
		i.Properties[name] = v
		return nil
	}
}

func (s *Service) showImage(w http.ResponseWriter, r *http.Request) error {
	image, err := s.visible(r)
	if err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, image.body())
	return nil
}

func (s *Service) deleteImage(w http.ResponseWriter, r *http.Request) error {
	image, err := s.owned(r)
	if err != nil {
		return err
	}
	if image.Protected {
		return forbidden("Image %s is protected and cannot be deleted.", image.ID)
	}
	s.uploads.Lock()
	defer s.uploads.Unlock()
	if current, ok := s.images.Get(image.ID); !ok {
		return noImage(image.ID)
	} else if current.Status == StatusSaving {
		return failure{http.StatusConflict, fmt.Sprintf("Image %s cannot be deleted while its data is arriving.", image.ID)}
	}
	// The data goes first: if that fails the image is still there and can be deleted again.
	if err := s.dropData(r.Context(), image.ID); err != nil {
		return err
	}
	if _, err := s.images.Delete(image.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Service) addTag(w http.ResponseWriter, r *http.Request) error {
	return s.changeTags(w, r, func(tags []string, tag string) ([]string, error) {
		if len(tag) > 255 {
			return nil, invalid("Provided object does not match schema 'image': a tag has at most 255 characters")
		}
		if slices.Contains(tags, tag) {
			return tags, nil
		}
		return append(tags, tag), nil
	})
}

func (s *Service) removeTag(w http.ResponseWriter, r *http.Request) error {
	return s.changeTags(w, r, func(tags []string, tag string) ([]string, error) {
		i := slices.Index(tags, tag)
		if i < 0 {
			return nil, failure{http.StatusNotFound, fmt.Sprintf("Image %s has no tag %s.", r.PathValue("id"), tag)}
		}
		return slices.Delete(tags, i, i+1), nil
	})
}

func (s *Service) changeTags(w http.ResponseWriter, r *http.Request, change func([]string, string) ([]string, error)) error {
	image, err := s.owned(r)
	if err != nil {
		return err
	}
	var refused error
	found, err := s.images.Update(image.ID, func(i *Image) {
		var tags []string
		if tags, refused = change(i.Tags, r.PathValue("tag")); refused == nil {
			i.Tags, i.UpdatedAt = tags, s.now()
		}
	})
	switch {
	case err != nil:
		return err
	case refused != nil:
		return refused
	case !found:
		return noImage(image.ID)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// listMembers: sharing with single projects is not part of the local cloud, so an image has no members.
func (s *Service) listMembers(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.visible(r); err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, map[string]any{"members": []any{}, "schema": "/v2/schemas/members"})
	return nil
}

// readJSON reads a request body of at most 1 MiB.
func readJSON(r *http.Request, into any) error {
	if err := answer.Read(r, into); err != nil {
		return invalid("Malformed JSON in request body: %v", err)
	}
	return nil
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand, since Go 1.24)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// isUUID reports whether text is a UUID with hyphens. An image's id becomes a file name, so nothing else is accepted.
func isUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i, c := range []byte(text) {
		hyphen := i == 8 || i == 13 || i == 18 || i == 23
		digit := '0' <= c && c <= '9' || 'a' <= c && c <= 'f'
		if hyphen != (c == '-') || !hyphen && !digit {
			return false
		}
	}
	return true
}
