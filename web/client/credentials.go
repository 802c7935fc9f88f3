package client

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/internal/door"
)

// Credentials are how to sign in to a cloud, read from clouds.yaml or from the variables OS_* as OpenStack's own clients read them
// (https://docs.openstack.org/openstacksdk/latest/user/config/configuration.html).
type Credentials struct {
	Auth     gophercloud.AuthOptions // without a federated sign-in's proof
	Endpoint gophercloud.EndpointOpts
	TLS      *tls.Config
	URL      string // of Burano (application_catalog_endpoint_override); "" for that in the service catalog

	Prompt io.Writer // for instructions to the user at sign-in; nil for standard error

	federated *federated // nil where Keystone itself checks the proof
}

// ReadCredentials reads an entry of clouds.yaml; "" is the variables OS_* or, where these name no Keystone, the only entry.
func ReadCredentials(cloud string) (Credentials, error) {
	return readCredentials(cloud, os.Getenv)
}

// OwnCredentials are credentials of one of Keystone's own users, which a new sign-in for other purposes needs.
func OwnCredentials(cloud string) (Credentials, error) {
	read, err := ReadCredentials(cloud)
	if err == nil && read.federated != nil {
		err = fmt.Errorf("auth_type %s signs in a user of an identity provider: name credentials of one of Keystone's own users", read.federated.kind)
	}
	return read, err
}

// authKeys are the keys of an entry's section auth. OpenStack's clients take them at the top of an entry, too.
var authKeys = []string{"auth_url", "username", "user_id", "password", "token", "user_domain_id", "user_domain_name", "project_id", "project_name", "project_domain_id",
	"project_domain_name", "domain_id", "domain_name", "system_scope", "trust_id", "application_credential_id", "application_credential_name",
	"application_credential_secret", "identity_provider", "protocol", "client_id", "client_secret", "access_token", "access_token_type", "access_token_endpoint",
	"discovery_endpoint", "device_authorization_endpoint", "code_challenge_method", "openid_scope"}

// formerKeys are other names of keys of auth.
var formerKeys = map[string]string{"tenant_id": "project_id", "tenant_name": "project_name", "userid": "user_id", "auth_token": "token"}

// topKeys are the keys beside auth that are read.
var topKeys = []string{"auth_type", "region_name", "interface", "endpoint_type", "cacert", "cert", "key", "insecure", "verify", "default_domain",
	"application_catalog_endpoint_override"}

// entry is one entry of clouds.yaml with all that is merged into it.
type entry struct {
	name string // as errors call it
	auth map[string]string
	top  map[string]string
}

func readCredentials(cloud string, variable func(string) string) (Credentials, error) {
	read := func() (entry, error) {
		if cloud == "" && variable("OS_AUTH_URL") != "" {
			return entryOfVariables(variable), nil
		}
		return entryOfFiles(cloud, variable)
	}
	one, err := read()
	if err != nil {
		return Credentials{}, err
	}
	made, err := one.credentials()
	if err != nil {
		return Credentials{}, fmt.Errorf("%s: %w", one.name, err)
	}
	return made, nil
}

func entryOfVariables(variable func(string) string) entry {
	made := entry{"the variables OS_*", map[string]string{}, map[string]string{}}
	read := func(into map[string]string, key, name string) {
		if value := variable("OS_" + strings.ToUpper(name)); value != "" && into[key] == "" {
			into[key] = value
		}
	}
	for _, key := range authKeys {
		read(made.auth, key, key)
	}
	for former, key := range formerKeys {
		read(made.auth, key, former)
	}
	for _, key := range topKeys {
		read(made.top, key, key)
	}
	return made
}

// credentials are an entry's credentials.
func (e entry) credentials() (Credentials, error) {
	kind := strings.ToLower(cmp.Or(e.top["auth_type"], "password"))
	if e.top["auth_type"] == "" {
		switch {
		case e.auth["application_credential_secret"] != "":
			kind = "v3applicationcredential"
		case e.auth["password"] == "" && e.auth["token"] != "":
			kind = "token"
		}
	}
	if e.auth["auth_url"] == "" {
		return Credentials{}, errors.New("auth_url (OS_AUTH_URL) is not set")
	}
	made := Credentials{URL: strings.TrimSuffix(e.top["application_catalog_endpoint_override"], "/")}
	drop := func(keys ...string) {
		for _, key := range keys {
			delete(e.auth, key)
		}
	}
	byUser := []string{"username", "user_id", "password"}
	scopes := []string{"project_id", "project_name", "project_domain_id", "project_domain_name", "system_scope", "trust_id"}
	credential := []string{"application_credential_id", "application_credential_name", "application_credential_secret"}
	switch {
	case slices.Contains([]string{"password", "v3password"}, kind):
		if e.auth["password"] == "" || e.auth["username"]+e.auth["user_id"] == "" {
			return made, errors.New("username (OS_USERNAME) with password (OS_PASSWORD), application_credential_id with application_credential_secret, or token is needed")
		}
		drop(append(credential, "token")...)
	case slices.Contains([]string{"token", "v3token"}, kind):
		if e.auth["token"] == "" {
			return made, fmt.Errorf("auth_type %s needs a token (OS_TOKEN)", kind)
		}
		drop(append(byUser, credential...)...)
	case kind == "v3applicationcredential":
		if e.auth["application_credential_secret"] == "" || e.auth["application_credential_id"]+e.auth["application_credential_name"] == "" {
			return made, fmt.Errorf("auth_type %s needs application_credential_id, or its name with a user, and application_credential_secret", kind)
		}
		for _, key := range []string{"domain_id", "domain_name"} {
			if e.auth["user_domain_id"]+e.auth["user_domain_name"] == "" && e.auth[key] != "" {
				e.auth["user_"+key] = e.auth[key]
			}
		}
		drop(append(scopes, "password", "token", "domain_id", "domain_name")...) // it has the project that it was made in
		if e.auth["application_credential_id"] != "" {
			drop("username", "user_id", "user_domain_id", "user_domain_name", "application_credential_name")
		}
	case strings.HasPrefix(kind, "v3oidc"):
		var err error
		if made.federated, err = federatedOf(kind, e.auth); err != nil {
			return made, err
		}
		drop(append(append(byUser, credential...), "token")...)
	default:
		return made, fmt.Errorf("auth_type %s is not known here: there are password, token, v3password, v3token, v3applicationcredential, %s", kind, strings.Join(oidcKinds, ", "))
	}
	e.fillDomains()
	return made, e.parse(&made)
}

// fillDomains names the domain that OpenStack's clients take where an entry names none.
func (e entry) fillDomains() {
	fallback := cmp.Or(e.top["default_domain"], "default")
	if e.auth["domain_id"]+e.auth["domain_name"] != "" {
		return // one for all
	}
	if e.auth["username"] != "" && e.auth["user_domain_id"]+e.auth["user_domain_name"] == "" {
		e.auth["user_domain_id"] = fallback
	}
	if e.auth["project_name"] != "" && e.auth["project_domain_id"]+e.auth["project_domain_name"] == "" {
		e.auth["project_domain_id"] = fallback
	}
}

// parse lets gophercloud read the keys that it knows.
func (e entry) parse(into *Credentials) error {
	insecure, err := truth("insecure", e.top["insecure"], false)
	if err != nil {
		return err
	}
	verify, err := truth("verify", e.top["verify"], true)
	if err != nil {
		return err
	}
	const name = "entry"
	cloud := map[string]any{"auth": e.auth, "verify": verify && !insecure}
	for _, key := range []string{"region_name", "interface", "endpoint_type"} {
		if e.top[key] != "" {
			cloud[key] = e.top[key]
		}
	}
	for _, key := range []string{"cacert", "cert", "key"} {
		if path := e.top[key]; path != "" {
			if rest, home := strings.CutPrefix(path, "~/"); home {
				if folder, err := os.UserHomeDir(); err == nil {
					path = filepath.Join(folder, rest)
				}
			}
			cloud[key] = path
		}
	}
	text, err := yaml.Marshal(map[string]any{"clouds": map[string]any{name: cloud}})
	if err != nil {
		return err
	}
	into.Auth, into.Endpoint, into.TLS, err = clouds.Parse(clouds.WithCloudName(name), clouds.WithCloudsYAML(bytes.NewReader(text)))
	return err
}

// truth reads a switch as oslo does: its value counts, and not whether it is set.
func truth(name, value string, fallback bool) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "":
		return fallback, nil
	case "1", "t", "true", "on", "y", "yes":
		return true, nil
	case "0", "f", "false", "off", "n", "no":
		return false, nil
	}
	return false, fmt.Errorf("%s is %q, and neither true nor false", name, value)
}

// cloudsLimit is how much of a file of credentials is read.
const cloudsLimit = 4 << 20

// entryOfFiles reads an entry of clouds.yaml, with the secrets beside it and the profile that it names; "" is the only entry.
func entryOfFiles(cloud string, variable func(string) string) (entry, error) {
	hint := func(err error) error {
		if cloud != "" {
			return fmt.Errorf("read the entry %q of clouds.yaml: %w", cloud, err)
		}
		return fmt.Errorf("no credentials: name an entry of clouds.yaml with OS_CLOUD or --os-cloud, or set the OS_* variables (%w)", err)
	}
	var folders []string
	wanted := ""
	if path := variable("OS_CLIENT_CONFIG_FILE"); path != "" {
		folders, wanted = []string{path}, path
	} else {
		settings, err := os.UserConfigDir()
		if err != nil {
			settings = "."
		}
		folders = []string{"clouds", filepath.Join(settings, "openstack", "clouds"), filepath.Join("/etc", "openstack", "clouds")}
		wanted = strings.Join(folders, ".yaml, ") + ".yaml"
	}
	path, all, err := sectionOf(folders, "clouds")
	if err != nil {
		return entry{}, hint(err)
	}
	if all == nil {
		return entry{}, hint(fmt.Errorf("OS_AUTH_URL is not set, and there is no file %s", wanted))
	}
	names := slices.Sorted(maps.Keys(all))
	if cloud == "" && len(names) == 1 {
		cloud = names[0]
	}
	found, ok := all[cloud].(map[string]any)
	if !ok {
		return entry{}, hint(fmt.Errorf("%s has %s", path, cmp.Or(strings.Join(names, ", "), "no entries")))
	}
	secure := []string{strings.TrimSuffix(path, filepath.Base(path)) + "secure"}
	if given := variable("OS_CLIENT_SECURE_FILE"); given != "" {
		secure = []string{given}
	}
	_, secrets, err := sectionOf(secure, "clouds")
	if err != nil {
		return entry{}, hint(err)
	}
	if more, ok := secrets[cloud].(map[string]any); ok {
		found = merged(found, more)
	}
	for _, key := range []string{"profile", "cloud"} {
		profile, _ := found[key].(string)
		if profile == "" {
			continue
		}
		var public []string
		for _, folder := range folders {
			public = append(public, strings.TrimSuffix(folder, filepath.Base(folder))+"clouds-public")
		}
		_, profiles, err := sectionOf(public, "public-clouds")
		if err != nil {
			return entry{}, hint(err)
		}
		base, ok := profiles[profile].(map[string]any)
		if !ok {
			return entry{}, hint(fmt.Errorf("it names the profile %s, which no clouds-public.yaml has", profile))
		}
		found = merged(base, found)
		break
	}
	return flattened("the entry "+cloud+" of "+path, found), nil
}

// flattened is an entry with each value where it is looked for.
func flattened(name string, found map[string]any) entry {
	made := entry{name, map[string]string{}, map[string]string{}}
	auth, _ := found["auth"].(map[string]any)
	read := func(into map[string]string, key string, from map[string]any, names ...string) {
		for _, name := range names {
			for _, spelling := range []string{name, strings.ReplaceAll(name, "_", "-")} {
				if text, ok := from[spelling].(string); ok && text != "" && into[key] == "" {
					into[key] = text
				}
			}
		}
	}
	for _, source := range []map[string]any{auth, found} {
		for _, key := range authKeys {
			read(made.auth, key, source, key)
		}
		for former, key := range formerKeys {
			read(made.auth, key, source, former)
		}
	}
	for _, key := range topKeys {
		read(made.top, key, found, key)
	}
	read(made.top, "default_domain", auth, "default_domain", "default_domain_id")
	if list, ok := found["regions"].([]any); ok && made.top["region_name"] == "" && len(list) > 0 {
		switch first := list[0].(type) {
		case string:
			made.top["region_name"] = first
		case map[string]any:
			read(made.top, "region_name", first, "name")
		}
	}
	return made
}

// sectionOf reads a section of the first existing file of these, with the endings of OpenStack's clients for names without one; nil if there is none.
func sectionOf(paths []string, section string) (path string, entries map[string]any, err error) {
	for _, path := range paths {
		endings := []string{".yaml", ".yml", ".json"}
		if !slices.Contains([]string{"clouds", "secure", "clouds-public"}, filepath.Base(path)) {
			endings = []string{""}
		}
		for _, ending := range endings {
			file, err := os.Open(path + ending)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return "", nil, err
			}
			defer func() { _ = file.Close() }()
			text, err := door.ReadAll(file, cloudsLimit, path+ending)
			if err != nil {
				return "", nil, err
			}
			var document yaml.Node
			if err := door.YAML(text, &document, door.Bounds{}); err != nil {
				return "", nil, fmt.Errorf("%s: %w", path+ending, err)
			}
			whole, _ := texts(&document).(map[string]any)
			entries, _ := whole[section].(map[string]any)
			if entries == nil {
				entries = map[string]any{}
			}
			return path + ending, entries, nil
		}
	}
	return "", nil, nil
}

// texts is a YAML value whose scalars are as they were written: a password of digits is no number.
func texts(node *yaml.Node) any {
	switch node.Kind {
	case yaml.DocumentNode:
		return texts(node.Content[0])
	case yaml.AliasNode:
		return texts(node.Alias)
	case yaml.SequenceNode:
		list := []any{}
		for _, one := range node.Content {
			list = append(list, texts(one))
		}
		return list
	case yaml.MappingNode:
		made, base := map[string]any{}, map[string]any{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], texts(node.Content[i+1])
			if key.Tag != "!!merge" {
				made[key.Value] = value
				continue
			}
			sources, several := value.([]any)
			if !several {
				sources = []any{value}
			}
			for _, source := range slices.Backward(sources) {
				if more, ok := source.(map[string]any); ok {
					maps.Copy(base, more)
				}
			}
		}
		maps.Copy(base, made)
		return base
	}
	if node.Tag == "!!null" {
		return ""
	}
	return node.Value
}

// merged is an entry with another one over it.
func merged(base, over map[string]any) map[string]any {
	made := maps.Clone(base)
	for key, value := range over {
		before, isMap := made[key].(map[string]any)
		if more, ok := value.(map[string]any); ok && isMap {
			value = merged(before, more)
		}
		made[key] = value
	}
	return made
}
