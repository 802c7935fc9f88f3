package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/config"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/wait"
)

// The sign-ins by an OpenID provider, with keystoneauth's names (https://docs.openstack.org/keystoneauth/latest/plugin-options.html).
const (
	oidcClient   = "v3oidcclientcredentials"
	oidcPassword = "v3oidcpassword"
	oidcDevice   = "v3oidcdeviceauthz"
	oidcToken    = "v3oidcaccesstoken"
)

var oidcKinds = []string{oidcClient, oidcPassword, oidcDevice, oidcToken}

// federated is a sign-in by an OpenID provider: it gives an access token, which Keystone takes for a token of its own.
type federated struct {
	kind string
	auth map[string]string
	http *http.Client
	out  io.Writer // for instructions to the user
}

func federatedOf(kind string, auth map[string]string) (*federated, error) {
	made := &federated{kind: kind, auth: map[string]string{}}
	for key, value := range auth {
		made.auth[key] = value
	}
	needed := []string{"identity_provider", "protocol"}
	switch kind {
	case oidcClient:
		needed = append(needed, "client_id", "client_secret")
	case oidcPassword:
		needed = append(needed, "client_id", "username", "password")
	case oidcDevice:
		needed = append(needed, "client_id")
	case oidcToken:
		needed = append(needed, "access_token")
	default:
		return nil, fmt.Errorf("auth_type %s is not known here: there are %s", kind, strings.Join(oidcKinds, ", "))
	}
	for _, key := range needed {
		if auth[key] == "" {
			return nil, fmt.Errorf("auth_type %s needs %s", kind, key)
		}
	}
	if kind != oidcToken && auth["discovery_endpoint"] == "" && (auth["access_token_endpoint"] == "" || kind == oidcDevice && auth["device_authorization_endpoint"] == "") {
		return nil, fmt.Errorf("auth_type %s needs discovery_endpoint, or the provider's endpoints themselves", kind)
	}
	if auth["project_id"]+auth["project_name"]+auth["domain_id"]+auth["domain_name"]+auth["system_scope"] == "" {
		return nil, fmt.Errorf("auth_type %s needs a project: project_id, or project_name with its domain", kind)
	}
	return made, nil
}

// signInFederated gets a token of the provider, one of Keystone's for it, and one of the project for that.
func (c Credentials) signInFederated(ctx context.Context) (*gophercloud.ProviderClient, error) {
	f := c.federated
	if f.out = c.Prompt; f.out == nil {
		f.out = os.Stderr
	}
	f.http = &http.Client{Transport: &http.Transport{TLSClientConfig: c.TLS, Proxy: http.ProxyFromEnvironment}, Timeout: answerPatience}
	scoped := func(ctx context.Context) (*gophercloud.ProviderClient, error) {
		access, err := f.accessToken(ctx)
		if err != nil {
			return nil, fmt.Errorf("sign in by %s: %w", f.kind, err)
		}
		unscoped, err := f.keystoneToken(ctx, access)
		if err != nil {
			return nil, err
		}
		auth := c.Auth
		auth.TokenID, auth.AllowReauth = unscoped, false
		provider, err := config.NewProviderClient(ctx, auth, config.WithTLSConfig(c.TLS))
		if gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) || gophercloud.ResponseCodeIs(err, http.StatusForbidden) {
			return nil, fmt.Errorf("Keystone at %s knows this user of identity provider %s, but gives no token of the project: check its name and domain, and the user's roles there",
				auth.IdentityEndpoint, f.auth["identity_provider"])
		}
		return provider, err
	}
	provider, err := scoped(ctx)
	if err != nil {
		return nil, err
	}
	provider.ReauthFunc = func(ctx context.Context) error {
		again, err := scoped(ctx)
		if err == nil {
			provider.CopyTokenFrom(again)
		}
		return err
	}
	return provider, nil
}

const (
	// answerPatience is for one answer of the provider or of Keystone.
	answerPatience = time.Minute
	// answerLimit is how much of one is read.
	answerLimit = 1 << 20
)

// keystoneToken is Keystone's unscoped token for an access token.
func (f *federated) keystoneToken(ctx context.Context, access string) (string, error) {
	keystone := strings.TrimSuffix(f.auth["auth_url"], "/")
	if !strings.HasSuffix(keystone, "/v3") {
		keystone += "/v3"
	}
	address := keystone + "/OS-FEDERATION/identity_providers/" + url.PathEscape(f.auth["identity_provider"]) + "/protocols/" + url.PathEscape(f.auth["protocol"]) + "/auth"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+access)
	answer, err := f.http.Do(request)
	if err != nil {
		return "", fmt.Errorf("ask Keystone for a token of identity provider %s: %w", f.auth["identity_provider"], err)
	}
	defer func() { _ = answer.Body.Close() }()
	token := answer.Header.Get("X-Subject-Token")
	if answer.StatusCode >= http.StatusMultipleChoices || token == "" {
		return "", fmt.Errorf("Keystone at %s takes no token of identity provider %s by protocol %s (status %d): check both names, and the mapping of the provider",
			f.auth["auth_url"], f.auth["identity_provider"], f.auth["protocol"], answer.StatusCode)
	}
	return token, nil
}

// accessToken gets a token of the provider.
func (f *federated) accessToken(ctx context.Context) (string, error) {
	if f.kind == oidcToken {
		return f.auth["access_token"], nil
	}
	if err := f.discover(ctx); err != nil {
		return "", err
	}
	form := url.Values{"scope": {cmp.Or(f.auth["openid_scope"], "openid profile")}}
	switch f.kind {
	case oidcClient:
		form.Set("grant_type", "client_credentials")
	case oidcPassword:
		form.Set("grant_type", "password")
		form.Set("username", f.auth["username"])
		form.Set("password", f.auth["password"])
	case oidcDevice:
		return f.byDevice(ctx, form)
	}
	return f.tokenFor(ctx, form)
}

// discover learns the provider's endpoints that were not given (OpenID Connect Discovery 1.0).
func (f *federated) discover(ctx context.Context) error {
	missing := f.auth["access_token_endpoint"] == "" || f.kind == oidcDevice && f.auth["device_authorization_endpoint"] == ""
	if !missing {
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.auth["discovery_endpoint"], nil)
	if err != nil {
		return err
	}
	var found struct {
		Token  string `json:"token_endpoint"`
		Device string `json:"device_authorization_endpoint"`
	}
	if err := f.ask(request, &found); err != nil {
		return fmt.Errorf("read the provider's endpoints at %s: %w", f.auth["discovery_endpoint"], err)
	}
	for key, address := range map[string]string{"access_token_endpoint": found.Token, "device_authorization_endpoint": found.Device} {
		if f.auth[key] == "" {
			f.auth[key] = address
		}
	}
	if f.auth["access_token_endpoint"] == "" || f.kind == oidcDevice && f.auth["device_authorization_endpoint"] == "" {
		return fmt.Errorf("the provider at %s does not offer this way to sign in", f.auth["discovery_endpoint"])
	}
	return nil
}

// refusal is the error of a token endpoint (RFC 6749, 5.2).
type refusal struct {
	Code string `json:"error"`
	Text string `json:"error_description"`
}

func (r *refusal) Error() string { return strings.TrimSpace(r.Code + " " + r.Text) }

// tokenFor asks the token endpoint.
func (f *federated) tokenFor(ctx context.Context, form url.Values) (string, error) {
	answer := map[string]any{}
	if err := f.post(ctx, f.auth["access_token_endpoint"], form, &answer); err != nil {
		return "", err
	}
	kind := cmp.Or(f.auth["access_token_type"], "access_token") // or id_token
	token, _ := answer[kind].(string)
	if token == "" {
		return "", fmt.Errorf("the provider's answer has no %s", kind)
	}
	return token, nil
}

func (f *federated) post(ctx context.Context, address string, form url.Values, into any) error {
	if f.auth["client_secret"] == "" {
		form.Set("client_id", f.auth["client_id"]) // a public client
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if secret := f.auth["client_secret"]; secret != "" {
		request.SetBasicAuth(url.QueryEscape(f.auth["client_id"]), url.QueryEscape(secret)) // RFC 6749, 2.3.1
	}
	return f.ask(request, into)
}

// ask reads an answer of JSON; a refusal with a reason is a *refusal.
func (f *federated) ask(request *http.Request, into any) error {
	request.Header.Set("Accept", "application/json")
	answer, err := f.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := door.ReadAll(answer.Body, answerLimit, "the provider's answer")
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		var why refusal
		if json.Unmarshal(text, &why) == nil && why.Code != "" {
			return &why
		}
		return fmt.Errorf("%s answers with status %d", request.URL.Host, answer.StatusCode)
	}
	return json.Unmarshal(text, into)
}

// Bounds of a sign-in with a second device (RFC 8628).
const (
	deviceInterval = 5 * time.Second
	deviceLongest  = time.Minute
	deviceLife     = 10 * time.Minute
)

// byDevice has the user confirm in a browser, on whichever device (RFC 8628).
func (f *federated) byDevice(ctx context.Context, form url.Values) (string, error) {
	verifier := ""
	if f.auth["code_challenge_method"] != "" {
		if f.auth["code_challenge_method"] != "S256" {
			return "", fmt.Errorf("code_challenge_method %s is not known here: there is S256", f.auth["code_challenge_method"])
		}
		verifier = rand.Text() + rand.Text() // 52 characters; RFC 7636 wants 43 at least
		sum := sha256.Sum256([]byte(verifier))
		form.Set("code_challenge_method", "S256")
		form.Set("code_challenge", base64.RawURLEncoding.EncodeToString(sum[:]))
	}
	var begun struct {
		Device   string  `json:"device_code"`
		User     string  `json:"user_code"`
		Address  string  `json:"verification_uri"`
		Complete string  `json:"verification_uri_complete"`
		Interval float64 `json:"interval"`
		Expires  float64 `json:"expires_in"`
	}
	if err := f.post(ctx, f.auth["device_authorization_endpoint"], form, &begun); err != nil {
		return "", err
	}
	said := fmt.Sprintf("To sign in, open %s and enter the code %s\n", begun.Address, begun.User)
	if begun.Complete != "" {
		said = fmt.Sprintf("To sign in, open %s (code %s)\n", begun.Complete, begun.User)
	}
	if _, err := io.WriteString(f.out, said); err != nil {
		return "", err
	}
	life := deviceLife
	if begun.Expires > 0 {
		life = min(life, time.Duration(begun.Expires)*time.Second)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, life, errors.New("nobody has confirmed the sign-in in time"))
	defer cancel()
	interval := deviceInterval
	if begun.Interval > 0 {
		interval = min(time.Duration(begun.Interval)*time.Second, deviceLongest)
	}
	poll := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "device_code": {begun.Device}}
	if verifier != "" {
		poll.Set("code_verifier", verifier)
	}
	for {
		if err := wait.Pause(ctx, interval); err != nil {
			return "", context.Cause(ctx)
		}
		token, err := f.tokenFor(ctx, poll)
		var why *refusal
		switch {
		case !errors.As(err, &why) || !slices.Contains([]string{"authorization_pending", "slow_down"}, why.Code):
			return token, err
		case why.Code == "slow_down":
			interval = min(interval+deviceInterval, deviceLongest)
		}
	}
}
