package charts

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Logins are the logins of a file for registries and repositories with a password, in the form of Docker's config.json: {"auths": {HOST: {"auth": …}}}, or
// with username and password instead (https://docs.docker.com/reference/cli/docker/login/). The file is read at each use, so that a password can be
// changed while the server runs. Docker's credential stores (credsStore, credHelpers) are not used.
type Logins struct{ file string }

// NewLogins reads the logins of a file, "" for none. An error names the fault of the file, and never a password.
func NewLogins(file string) (Logins, error) {
	l := Logins{file}
	_, err := l.read()
	return l, err
}

// read returns the logins by host.
func (l Logins) read() (map[string]authn.AuthConfig, error) {
	if l.file == "" {
		return nil, nil
	}
	about, err := os.Stat(l.file)
	if err != nil {
		return nil, err
	}
	if open := about.Mode().Perm() & 0o077; open != 0 {
		return nil, fmt.Errorf("others than its owner can use %s (mode %04o), which holds passwords: chmod 600 %s", l.file, about.Mode().Perm(), l.file)
	}
	text, err := os.ReadFile(l.file)
	if err != nil {
		return nil, err
	}
	var content struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}
	if json.Unmarshal(text, &content) != nil || content.Auths == nil { // its error would contain parts of the file
		return nil, fmt.Errorf(`%s is not as Docker's config.json is: {"auths": {"registry.example.org": {"username": …, "password": …}}}`, l.file)
	}
	logins := map[string]authn.AuthConfig{}
	for key, entry := range content.Auths {
		host, err := hostOf(key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.file, err)
		}
		var login authn.AuthConfig
		if json.Unmarshal(entry, &login) != nil || (login.Username == "" || login.Password == "") && login.IdentityToken == "" && login.RegistryToken == "" {
			return nil, fmt.Errorf("%s: the entry of %s has no login: give it username and password, or auth (both with a colon between them, in base64); programs that keep passwords for Docker are not asked",
				l.file, key)
		}
		logins[host] = login
	}
	return logins, nil
}

// hostOf is the host, with its port, of a key such as registry.example.org:5000 or https://index.docker.io/v1/.
func hostOf(key string) (string, error) {
	_, rest, hasScheme := strings.Cut(key, "://")
	if !hasScheme {
		rest = key
	}
	host, path, _ := strings.Cut(rest, "/")
	if host == "" || !slices.Contains([]string{"", "v1", "v1/", "v2", "v2/"}, path) {
		return "", fmt.Errorf("%q is no host such as registry.example.org:5000: a login is for all of a host", key)
	}
	return host, nil
}

// of returns the login of a host; there is none where the second value is false.
func (l Logins) of(host string) (authn.AuthConfig, bool, error) {
	logins, err := l.read()
	if err != nil {
		return authn.AuthConfig{}, false, fmt.Errorf("read the operator's logins (setting chart-credentials): %w", err)
	}
	login, there := logins[host]
	return login, there, nil
}

// authenticator returns the credentials for a registry.
func (l Logins) authenticator(registry name.Registry) (authn.Authenticator, error) {
	login, there, err := l.of(registry.RegistryStr())
	if err != nil || !there {
		return authn.Anonymous, err
	}
	return authn.FromConfig(login), nil
}

// signIn has a request of a repository carry the login of its host. Where that leads elsewhere net/http leaves the login out.
func (l Logins) signIn(request *http.Request) error {
	login, there, err := l.of(request.URL.Host)
	if err == nil && there && login.Username != "" {
		request.SetBasicAuth(login.Username, login.Password)
	}
	return err
}

// refusal explains a host's refusal of the credentials; it is nil for every other answer.
func (l Logins) refusal(host string, status int) error {
	if status != http.StatusUnauthorized && status != http.StatusForbidden {
		return nil
	}
	login, there, err := l.of(host)
	switch {
	case err != nil:
		return err
	case !there && status == http.StatusUnauthorized:
		return fmt.Errorf("%s wants a login, or has no such chart for whoever has none, and this Burano has none for it: its operator gives one in the file that the setting chart-credentials names", host)
	case !there:
		return nil
	}
	who := ""
	if login.Username != "" {
		who = " of user " + login.Username
	}
	return fmt.Errorf("%s refuses the login%s that the operator of this Burano gave (setting chart-credentials; it answers %d): it is wrong, has ended, or may not read this", host, who, status)
}

// asRefusal converts an error of a registry by refusal.
func (l Logins) asRefusal(registry name.Registry, err error) error {
	var answer *transport.Error
	if !errors.As(err, &answer) {
		return err
	}
	if refused := l.refusal(registry.RegistryStr(), answer.StatusCode); refused != nil {
		return refused
	}
	return err
}
