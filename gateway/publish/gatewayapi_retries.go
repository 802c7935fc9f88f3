package publish

import (
	"fmt"
	"time"

	api "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/burano/burano/gateway/route"
)

// defaultRetries is how often a request is tried again where a rule names no number.
const defaultRetries = 3

func retryOf(retry *api.HTTPRouteRetry) *route.Retry {
	if retry == nil {
		return nil
	}
	r := &route.Retry{Attempts: defaultRetries}
	if retry.Attempts != nil {
		r.Attempts = *retry.Attempts
	}
	for _, code := range retry.Codes {
		r.Codes = append(r.Codes, int(code))
	}
	return r
}

// validRetry returns the fault of the retries of a rule, or nil. HAProxy limits the time of each try, and not of all together, and tries again at once.
func validRetry(rule api.HTTPRouteRule) error {
	retry := retryOf(rule.Retry)
	if retry == nil {
		return nil
	}
	if err := retry.Validate(); err != nil {
		return fmt.Errorf("retry: %w", err)
	}
	if pause, err := time.ParseDuration(string(deref(rule.Retry.Backoff))); rule.Retry.Backoff != nil && (err != nil || pause > 0) {
		return fmt.Errorf("retry.backoff: gateways try again at once; leave it out")
	}
	if rule.Timeouts == nil || rule.Timeouts.Request == nil {
		return nil
	}
	all, err := time.ParseDuration(string(*rule.Timeouts.Request))
	if err != nil || all == 0 {
		return nil // which unsupported reports
	}
	each, err := time.ParseDuration(string(deref(rule.Timeouts.BackendRequest)))
	if tries := time.Duration(retry.Attempts) + 1; err != nil || each == 0 || each*tries > all {
		return fmt.Errorf("timeouts.request: with %d retries, gateways keep within it where timeouts.backendRequest is at most %s", retry.Attempts, (all / tries).Truncate(time.Millisecond))
	}
	return nil
}
