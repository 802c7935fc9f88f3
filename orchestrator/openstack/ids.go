package openstack

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/burano/burano/internal/fault"
)

// gophercloud writes ids into paths as they are, and some come from tenants and from the controllers of their clusters: "../servers/1" or "1?force=true"
// would be another call than was meant, with the same token. So ids are checked where they come in, and paths before they are sent.

// idForm is that of ids in OpenStack: UUIDs, with or without hyphens, flavors of any name, numbers.
var idForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}$`)

// identified returns a fault (NotFound) for a text that cannot be an id.
func identified(kind string, ids ...string) error {
	for _, id := range ids {
		if !idForm.MatchString(id) {
			return fault.New(fault.NotFound, "there is no %s %.80q: an id has letters, digits, hyphens, dots and underscores", kind, id)
		}
	}
	return nil
}

// unsoundAddress is a call that is not made.
type unsoundAddress struct{ path string }

func (u *unsoundAddress) Error() string {
	return fmt.Sprintf("the path %.200q of a call of the cloud is not one of its API: a name or an id in it has a dot segment, a mark of a fragment or a control character", u.path)
}

// soundTransport refuses calls whose paths lead elsewhere than they seem to.
type soundTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t soundTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if !sound(request.URL) {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, &unsoundAddress{request.URL.EscapedPath()}
	}
	return t.next.RoundTrip(request)
}

// sound reports whether a path leads to the same place through any proxies, which may resolve dot segments and "%2F".
func sound(address *url.URL) bool {
	path, err := url.PathUnescape(address.EscapedPath())
	if err != nil || address.Fragment != "" || strings.ContainsFunc(path, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return false
	}
	return !slices.ContainsFunc(strings.FieldsFunc(path, func(c rune) bool { return c == '/' || c == '\\' }), func(part string) bool { return part == "." || part == ".." })
}
