package glance

import (
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
)

// operation is one step of Glance's own JSON patch
// (https://specs.openstack.org/openstack/glance-specs/specs/api/v2/http-patch-image-api-v2.html): its paths have one part.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func (s *Service) patchImage(w http.ResponseWriter, r *http.Request) error {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if !slices.Contains([]string{"application/openstack-images-v2.1-json-patch", "application/openstack-images-v2.0-json-patch"}, kind) {
		return failure{http.StatusUnsupportedMediaType,
			"The media type of the request must be application/openstack-images-v2.1-json-patch."}
	}
	image, err := s.owned(r)
	if err != nil {
		return err
	}
	var operations []operation
	if err := readJSON(r, &operations); err != nil {
		return err
	}
	caller := identity.From(r.Context())
	// All steps are applied or none is.
	var changed Image
	var refused error
	found, err := s.images.Update(image.ID, func(i *Image) {
		before := *i
		before.Properties = cloneMap(i.Properties)
		before.Tags = slices.Clone(i.Tags)
		for _, o := range operations {
			if refused = i.apply(caller, o); refused != nil {
				*i = before
				return
			}
		}
		i.UpdatedAt = s.now()
		changed = *i
	})
	switch {
	case err != nil:
		return err
	case refused != nil:
		return refused
	case !found:
		return noImage(image.ID)
	}
	answer.JSON(w, http.StatusOK, changed.body())
	return nil
}

func (i *Image) apply(caller identity.Caller, o operation) error {
	name, ok := strings.CutPrefix(o.Path, "/")
	// RFC 6901: "~1" is a slash in a name and "~0" a tilde.
	if name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name); !ok || name == "" || strings.Contains(o.Path[1:], "/") {
		return invalid("Invalid JSON pointer for this resource: '%s'", o.Path)
	}
	_, property := i.Properties[name]
	base := isBase(name)
	switch o.Op {
	case "add":
		return i.set(caller, name, o.Value)
	case "replace":
		if !base && !property {
			return failure{http.StatusConflict, "Property " + name + " does not exist."}
		}
		return i.set(caller, name, o.Value)
	case "remove":
		switch {
		case base:
			return forbidden("Property '%s' may not be removed.", name)
		case !property:
			return failure{http.StatusConflict, "Property " + name + " does not exist."}
		}
		delete(i.Properties, name)
		return nil
	default:
		return invalid("Unable to find '%s' in JSON Schema change: an operation is add, replace or remove", o.Op)
	}
}

// isBase reports whether a name is an attribute that every image has.
func isBase(name string) bool {
	_, ok := Image{}.body()[name]
	return ok
}

func cloneMap(m map[string]string) map[string]string {
	clone := make(map[string]string, len(m))
	for k, v := range m {
		clone[k] = v
	}
	return clone
}
