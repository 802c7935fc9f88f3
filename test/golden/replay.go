package golden

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// recordedServer is the address of the recorded Murano, and recordedKeystone its Keystone's.
const (
	recordedServer   = "http://127.0.0.1:8082"
	recordedKeystone = "http://127.0.0.1:5000/v3"
)

// Replay sends exchanges to a server.
type Replay struct {
	URL      string
	Keystone string
	Tokens   map[string]string // by their recorded names, such as "{token:demo}"
	IDs      IDs
}

// Send sends the exchange's request, with the server's ids in it. An answer without the properties of all of Murano's (framing) is
// an error.
func (r *Replay) Send(ctx context.Context, e Exchange) (*http.Response, []byte, error) {
	body, contentType, err := e.Body()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", e.Name, err)
	}
	if !strings.HasPrefix(contentType, "multipart/") {
		body = []byte(r.IDs.Translate(string(body)))
	}
	request, err := http.NewRequestWithContext(ctx, e.Method, r.URL+r.IDs.Translate(e.Path), bytes.NewReader(body))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", e.Name, err)
	}
	for name, value := range e.RequestHeaders {
		if token, known := r.Tokens[value]; known {
			value = token
		}
		request.Header.Set(name, r.IDs.Translate(value))
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", e.Name, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if said := framing(response, answer); err == nil && said != "" {
		err = fmt.Errorf("%s: %s %s: %s", e.Name, e.Method, e.Path, said)
	}
	return response, answer, err
}

// Compare returns the difference between the answer and the recorded one in status, content type or body; "" when they agree. Ids
// that are met for the first time are learned.
func (r *Replay) Compare(e Exchange, response *http.Response, body []byte) string {
	if response.StatusCode != e.Status {
		return fmt.Sprintf("recorded is the status %d, here %d: %s", e.Status, response.StatusCode, short(body))
	}
	for name, recorded := range e.ResponseHeaders {
		want := strings.ReplaceAll(recorded, recordedKeystone, r.Keystone)
		if got := response.Header.Get(name); !strings.EqualFold(want, got) {
			return fmt.Sprintf("recorded is %s: %s, here %s", name, want, got)
		}
	}
	body = bytes.ReplaceAll(body, []byte(r.URL), []byte(recordedServer))
	return r.IDs.difference(e.ResponseBody, body)
}
