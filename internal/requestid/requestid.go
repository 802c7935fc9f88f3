// Package requestid carries the id of the request on whose behalf something is done: through the log, a task and the calls of the cloud.
package requestid

import (
	"context"
	"regexp"

	"github.com/google/uuid"
)

// Header carries the id, in requests and in answers (OpenStack API guideline).
const Header = "X-Openstack-Request-Id"

// form is the form of ids that OpenStack's middleware accepts from a caller (oslo.middleware, request_id).
var form = regexp.MustCompile(`^req-[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`)

// Valid reports whether id is "req-" and a UUID, which OpenStack's services adopt.
func Valid(id string) bool { return form.MatchString(id) }

// New returns an id that nothing else has.
func New() string { return "req-" + uuid.NewString() }

type key struct{}

// With returns ctx with the id of a request in it.
func With(ctx context.Context, id string) context.Context { return context.WithValue(ctx, key{}, id) }

// From returns the id that With put into ctx, or "".
func From(ctx context.Context) string {
	id, _ := ctx.Value(key{}).(string)
	return id
}
