package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/config"
	"github.com/spf13/cobra"
)

// defaultURL is where a server answers that was started without further settings.
const defaultURL = "http://127.0.0.1:8082"

// connection says how to reach the cloud and the server; its fields are the flags that all commands share.
type connection struct {
	cloud string
	url   string
}

func (c *connection) addFlags(root *cobra.Command) {
	root.PersistentFlags().StringVar(&c.cloud, "os-cloud", os.Getenv("OS_CLOUD"), "entry of clouds.yaml to sign in with (OS_CLOUD)")
	root.PersistentFlags().StringVar(&c.url, "url", os.Getenv("BURANO_URL"), "where the Burano server answers (BURANO_URL); without it the service catalog is asked")
}

// signIn returns a Keystone session of the user.
func (c *connection) signIn(ctx context.Context) (*gophercloud.ProviderClient, gophercloud.EndpointOpts, error) {
	auth, endpoint, tlsConfig, err := c.credentials()
	if err != nil {
		return nil, endpoint, err
	}
	auth.AllowReauth = true
	provider, err := config.NewProviderClient(ctx, auth, config.WithTLSConfig(tlsConfig))
	if err != nil {
		if gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) {
			return nil, endpoint, fmt.Errorf("Keystone at %s refuses these credentials: check user, password and project", auth.IdentityEndpoint)
		}
		return nil, endpoint, fmt.Errorf("sign in to Keystone at %s: %w", auth.IdentityEndpoint, err)
	}
	return provider, endpoint, nil
}

// client calls Burano's API as one user.
type client struct {
	url      string
	provider *gophercloud.ProviderClient
	http     *http.Client
}

// connect signs in and finds the server.
func (c *connection) connect(ctx context.Context) (*client, error) {
	provider, endpoint, err := c.signIn(ctx)
	if err != nil {
		return nil, err
	}
	url := c.url
	if url == "" {
		endpoint.ApplyDefaults("application-catalog")
		if url, err = provider.EndpointLocator(endpoint); err != nil || url == "" {
			url = defaultURL
		}
	}
	url = strings.TrimSuffix(strings.TrimSuffix(url, "/"), "/v1")
	// What clouds.yaml and the variables say of certificates holds for all services of the cloud, and so for Burano.
	return &client{url: url, provider: provider, http: &http.Client{Timeout: 5 * time.Minute, Transport: provider.HTTPClient.Transport}}, nil
}

// signedIn makes a command's work of what is done with a client of the server.
func (c *connection) signedIn(work func(command *cobra.Command, client *client, args []string) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		client, err := c.connect(command.Context())
		if err != nil {
			return err
		}
		return work(command, client, args)
	}
}

// deleteEach is signedIn for commands that delete what their arguments name; what cannot be deleted does not keep the others. find tells
// what is printed of a thing and its path; name is how an error calls it, with a verb for the argument.
func (c *connection) deleteEach(name string, find func(ctx context.Context, client *client, argument string) (label, path string, err error)) func(*cobra.Command, []string) error {
	return c.signedIn(func(command *cobra.Command, client *client, args []string) error {
		var failed []error
		for _, argument := range args {
			label, path, err := find(command.Context(), client, argument)
			if err == nil {
				err = client.call(command.Context(), http.MethodDelete, path, nil, nil)
			}
			if err != nil {
				failed = append(failed, fmt.Errorf("delete "+name+": %w", argument, err))
				continue
			}
			fmt.Fprintf(command.OutOrStdout(), "%s: deleted\n", label)
		}
		return errors.Join(failed...)
	})
}

// refusal is an answer of the server with a status of 400 or more.
type refusal struct {
	status  int
	message string
}

func (r *refusal) Error() string { return r.message }

// isStatus tells whether err is a refusal with this status.
func isStatus(err error, status int) bool {
	var refused *refusal
	return errors.As(err, &refused) && refused.status == status
}

// call sends a request with a JSON body (nil for none) and reads the answer into result (nil to drop it).
func (c *client) call(ctx context.Context, method, path string, body, result any, headers ...string) error {
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(data)
		headers = append([]string{"Content-Type", "application/json"}, headers...)
	}
	answer, err := c.send(ctx, method, path, content, headers...)
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

// send sends a request with any body and reads the answer; headers come in pairs of name and value.
func (c *client) send(ctx context.Context, method, path string, body io.Reader, headers ...string) ([]byte, error) {
	content, err := c.open(ctx, c.http, method, path, body, headers...)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	answer, err := io.ReadAll(content)
	if err != nil {
		return nil, fmt.Errorf("%s %s%s: %w", method, c.url, path, err)
	}
	return answer, nil
}

// open sends a request and returns the body of its answer, which the caller closes. A status of 400 or more is a refusal.
func (c *client) open(ctx context.Context, over *http.Client, method, path string, body io.Reader, headers ...string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Auth-Token", c.provider.Token())
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
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s%s: %w", method, c.url, path, err)
	}
	return nil, &refusal{status: response.StatusCode, message: fmt.Sprintf("%s (%s %s answered %d)", message(answer), method, path, response.StatusCode)}
}

// message takes what a person can read out of an error body, in each of the shapes that Murano's API has.
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
