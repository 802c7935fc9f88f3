package nova

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/burano/burano/test/localcloud/answer"
)

// microversion is the minor version of the API that a request asks for
// (https://docs.openstack.org/nova/latest/reference/api-microversion-history.html).
type microversion struct{ major, minor int }

var (
	minMicroversion    = microversion{2, 1}
	maxMicroversion    = microversion{2, 90}
	microversionFormat = regexp.MustCompile(`^([1-9]\d*)\.([1-9]\d*|0)$`)
)

func (v microversion) String() string { return fmt.Sprintf("%d.%d", v.major, v.minor) }

type microversionKey struct{}

// since reports whether the request of a context asks for version 2.minor or a later one.
func since(ctx context.Context, minor int) bool {
	v, _ := ctx.Value(microversionKey{}).(microversion)
	return v.minor >= minor
}

// withMicroversion reads the version of a request, and writes it into the answer.
func withMicroversion(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := r.Header.Get("X-OpenStack-Nova-API-Version")
		for header := range strings.SplitSeq(strings.Join(r.Header.Values("OpenStack-API-Version"), ","), ",") {
			if service, version, ok := strings.Cut(strings.TrimSpace(header), " "); ok && service == "compute" {
				text = version
			}
		}
		wanted := minMicroversion
		switch match := microversionFormat.FindStringSubmatch(text); {
		case text == "":
		case text == "latest":
			wanted = maxMicroversion
		case match == nil:
			answer.WriteFailure(w, http.StatusBadRequest,
				fmt.Sprintf("API Version String %s is of invalid format. Must be of format MajorNum.MinorNum.", text))
			return
		default:
			wanted.major, _ = strconv.Atoi(match[1])
			wanted.minor, _ = strconv.Atoi(match[2])
			if wanted.major != 2 || wanted.minor < minMicroversion.minor || wanted.minor > maxMicroversion.minor {
				answer.WriteFailure(w, http.StatusNotAcceptable, fmt.Sprintf(
					"Version %s is not supported by the API. Minimum is %s and maximum is %s.", text, minMicroversion, maxMicroversion))
				return
			}
		}
		w.Header().Set("OpenStack-API-Version", "compute "+wanted.String())
		w.Header().Set("X-OpenStack-Nova-API-Version", wanted.String())
		w.Header().Add("Vary", "OpenStack-API-Version, X-OpenStack-Nova-API-Version")
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), microversionKey{}, wanted)))
	})
}
