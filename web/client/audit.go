package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// AuditEvent is an action of a user, in the words of CADF.
type AuditEvent struct {
	ID      string `json:"id"`
	Time    string `json:"eventTime"`
	Action  string `json:"action"`
	Outcome string `json:"outcome"`
	Reason  struct {
		Code string `json:"reasonCode"`
	} `json:"reason"`
	Initiator struct {
		ID         string `json:"id"`
		Name       string `json:"name,omitempty"`
		ProjectID  string `json:"project_id,omitempty"`
		Credential string `json:"credential,omitempty"`
		Host       struct {
			Address string `json:"address"`
			Agent   string `json:"agent,omitempty"`
		} `json:"host"`
	} `json:"initiator"`
	Target struct {
		TypeURI string `json:"typeURI"`
		ID      string `json:"id"`
	} `json:"target"`
	Observer struct {
		ID string `json:"id"`
	} `json:"observer"`
	Request   string `json:"requestPath"`
	RequestID string `json:"requestId"`
}

// AuditEvents lists events, newest first: at most limit events that pass the filters of the query (/openapi.json names them).
func (c *Client) AuditEvents(ctx context.Context, query url.Values, limit int) ([]AuditEvent, error) {
	filters := url.Values{}
	for name, values := range query {
		filters[name] = values
	}
	events := []AuditEvent{}
	for len(events) < limit {
		filters.Set("limit", strconv.Itoa(limit-len(events)))
		var page struct {
			Events     []AuditEvent `json:"events"`
			NextMarker string       `json:"next_marker"`
		}
		if err := c.Call(ctx, http.MethodGet, "/burano/v1/audit?"+filters.Encode(), nil, &page); err != nil {
			return nil, err
		}
		events = append(events, page.Events...)
		if page.NextMarker == "" {
			break
		}
		filters.Set("marker", page.NextMarker)
	}
	return events, nil
}
