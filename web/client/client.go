package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/burano/burano/internal/door"
)

// Tokens gives the Keystone token that requests are made with, and gets another one when it has ended. *gophercloud.ProviderClient is one.
type Tokens interface {
	Token() string
	Reauthenticate(ctx context.Context, former string) error
}

// Client calls Burano's API as one user, in one project. Its methods may be called at the same time.
//
// Errors of the server are of type *Refusal.
type Client struct {
	url    string
	tokens Tokens
	http   *http.Client
}

// Bounds of answers: a package is the largest that Send reads, and an error has a sentence or two for each object.
const (
	mostAnswer  = 1 << 30
	mostRefusal = 4 << 20
)

// requestTime is how long one request may take, but for streams.
const requestTime = 5 * time.Minute

// New makes a client of the server at a URL such as http://127.0.0.1:8082. The transport may be nil. Connect does it with the configuration of OpenStack's
// own clients.
func New(url string, tokens Tokens, transport http.RoundTripper) *Client {
	url = strings.TrimSuffix(strings.TrimSuffix(url, "/"), "/v1")
	return &Client{url: url, tokens: tokens, http: &http.Client{Timeout: requestTime, Transport: transport}}
}

// Refusal is an answer of the server with a status of 400 or more.
type Refusal struct {
	Status  int    // of HTTP
	Message string // for people: the server's message, and the request
}

func (r *Refusal) Error() string { return r.Message }

// IsStatus reports whether err is a Refusal with this status.
func IsStatus(err error, status int) bool {
	var refused *Refusal
	return errors.As(err, &refused) && refused.Status == status
}

// Call sends a request with a JSON body (nil for none) and reads the answer into result (nil to drop it); headers come in pairs of name and value. It is
// for calls without a method here.
func (c *Client) Call(ctx context.Context, method, path string, body, result any, headers ...string) error {
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(data)
		headers = append([]string{"Content-Type", "application/json"}, headers...)
	}
	answer, err := c.Send(ctx, method, path, content, headers...)
	if err != nil {
		return err
	}
	if result == nil || len(answer) == 0 {
		return nil
	}
	if err := json.Unmarshal(answer, result); err != nil {
		return fmt.Errorf("%s %s%s: the answer is not what was expected: %w", method, c.url, path, err)
	}
	return nil
}

// Send is Call with any body, which gives the answer as it came.
func (c *Client) Send(ctx context.Context, method, path string, body io.Reader, headers ...string) ([]byte, error) {
	content, err := c.open(ctx, c.http, method, path, body, headers...)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	answer, err := door.ReadAll(content, mostAnswer, "the answer")
	if err != nil {
		return nil, fmt.Errorf("%s %s%s: %w", method, c.url, path, err)
	}
	return answer, nil
}

// untimed is for requests whose time depends on the size of their content.
func untimed(c *Client) *http.Client { return &http.Client{Transport: c.http.Transport} }

// open sends a request and returns the body of its answer, which the caller closes. A status of 400 or more is a Refusal.
func (c *Client) open(ctx context.Context, over *http.Client, method, path string, body io.Reader, headers ...string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Auth-Token", c.tokens.Token())
	request.Header.Set("Accept", "application/json, */*;q=0.5")
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := over.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reach Burano: %w (is the server running? `burano serve` starts it, --url or BURANO_URL says where it is)", err)
	}
	if response.StatusCode < http.StatusBadRequest {
		return response.Body, nil
	}
	defer response.Body.Close()
	answer, err := door.ReadAll(response.Body, mostRefusal, "the answer")
	if err != nil {
		return nil, fmt.Errorf("%s %s%s: %w", method, c.url, path, err)
	}
	return nil, &Refusal{Status: response.StatusCode, Message: fmt.Sprintf("%s (%s %s answered %d)", message(answer), method, path, response.StatusCode)}
}

// message extracts the text from an error body, in each of the shapes of Murano's API.
func message(body []byte) string {
	var shaped struct {
		Message     string `json:"message"`
		Explanation string `json:"explanation"`
		Error       struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &shaped) == nil {
		for _, text := range []string{shaped.Error.Message, shaped.Explanation, shaped.Message} {
			// Murano's shape carries line breaks of HTML.
			if text = strings.TrimSpace(strings.ReplaceAll(text, "<br />", "")); text != "" {
				return text
			}
		}
	}
	if text := strings.TrimSpace(string(body)); text != "" {
		return text
	}
	return "the server gave no reason"
}
