package route

import (
	"fmt"
	"net/http"
	"slices"
)

// MaxRetries is how often a request is tried again.
const MaxRetries = 10

// retriable are the statuses of answers after which HAProxy 2.6 tries a request again.
var retriable = []int{
	http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusRequestTimeout, http.StatusTooEarly,
	http.StatusInternalServerError, http.StatusNotImplemented, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// Retry is how often requests are tried again after which answers, and where there was none. A gateway of an earlier release tries connections alone again.
type Retry struct {
	Attempts int   `json:"attempts"`
	Codes    []int `json:"codes,omitempty"`
}

// Validate returns the fault of retries, or nil.
func (r *Retry) Validate() error {
	if r == nil {
		return nil
	}
	if r.Attempts < 1 || r.Attempts > MaxRetries {
		return fmt.Errorf("a request is tried again 1 to %d times, and not %d", MaxRetries, r.Attempts)
	}
	for i, code := range r.Codes {
		if !slices.Contains(retriable, code) {
			return fmt.Errorf("a request is not tried again after the status %d, but after %v", code, retriable)
		}
		if slices.Contains(r.Codes[:i], code) {
			return fmt.Errorf("the status %d is there twice", code)
		}
	}
	return nil
}
