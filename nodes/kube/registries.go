package kube

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/burano/burano/nodes/ssh"
)

// Registries are the nodes' settings for registries of container images. The zero value means public registries without settings.
type Registries struct {
	host    string   // of a registry that is no public one, and its port
	schemes []string // by which it is asked, in this order; empty: as any registry
	mirrors []string // URLs that are asked before Docker Hub, in this order
	logins  map[string]login
	own     string // the name of the cluster's own registry; "" for none
	address string // URL at which nodes ask that
	through string // URL at which nodes ask first for images of Docker Hub; "" for not at all
}

// login is one of the kubelet's config.json: the format of Docker's.
type login struct {
	Auth string `json:"auth"` // user:password in base64
}

// RegistrySettings are a cluster's properties of registries, each empty for none.
type RegistrySettings struct {
	Registry       string // host[:port], or a URL of these: see ParseRegistries
	User, Password string // to log in there
	Mirrors        string // URLs of mirrors of Docker Hub, between commas or spaces
	GoogleKey      string // JSON: the key of a service account of Google
}

const dockerHub = "https://registry-1.docker.io"

var registryHost = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?(:[0-9]{1,5})?$`)

// ParseRegistries checks the settings. A registry without a scheme is asked by HTTPS, where its certificate is not checked, and then by HTTP, as Docker
// treats its insecure registries. A registry with http:// is asked by HTTP alone, and one with https:// as any registry.
func ParseRegistries(s RegistrySettings) (Registries, error) {
	r := Registries{logins: make(map[string]login)}
	var problems []error
	scheme, host, whole := strings.Cut(s.Registry, "://")
	if !whole {
		scheme, host = "", s.Registry
	}
	host = strings.TrimSuffix(host, "/")
	switch {
	case s.Registry == "":
		if s.User != "" || s.Password != "" {
			problems = append(problems, errors.New("dockerRegistryUser and dockerRegistryPassword are for the registry of dockerRegistry, which is empty: name it, or leave them out"))
		}
	case !registryHost.MatchString(host) || scheme != "" && scheme != "http" && scheme != "https":
		problems = append(problems, fmt.Errorf("dockerRegistry is %q: give a host and its port, such as registry.example.org:5000, or http:// or https:// and these", withoutLogin(s.Registry)))
	case (s.User == "") != (s.Password == ""):
		problems = append(problems, errors.New("to log in at dockerRegistry takes both dockerRegistryUser and dockerRegistryPassword: give both, or none"))
	default:
		r.host = host
		r.schemes = map[string][]string{"": {"https", "http"}, "http": {"http"}}[scheme]
		if s.User != "" {
			r.logins[host] = loginOf(s.User, s.Password)
		}
	}
	for _, mirror := range strings.FieldsFunc(s.Mirrors, func(c rune) bool { return c == ',' || c == ' ' || c == '\n' || c == '\t' }) {
		u, err := url.Parse(mirror)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || !registryHost.MatchString(u.Host) || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			problems = append(problems, fmt.Errorf("dockerMirror has %q: give the URL of a mirror, such as https://mirror.example.org, several with commas between them", withoutLogin(mirror)))
			continue
		}
		r.mirrors = append(r.mirrors, strings.TrimSuffix(u.String(), "/"))
	}
	if key := strings.TrimSpace(s.GoogleKey); key != "" {
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(key)); err != nil || !strings.HasPrefix(key, "{") {
			problems = append(problems, errors.New("gcloudKey is no JSON object: give the key of a service account as Google's console writes it"))
		} else {
			for _, host := range []string{"gcr.io", "*.gcr.io", "*.pkg.dev"} {
				r.logins[host] = loginOf("_json_key", compact.String())
			}
		}
	}
	return r, errors.Join(problems...)
}

// hosts are the hosts of the registry and the mirrors.
func (r Registries) hosts() (list []string) {
	if r.host != "" {
		list = append(list, r.host)
	}
	for _, mirror := range r.mirrors {
		if u, err := url.Parse(mirror); err == nil {
			list = append(list, u.Host)
		}
	}
	return list
}

// withoutLogin is a URL as it may be shown.
func withoutLogin(text string) string {
	scheme, rest, _ := strings.Cut(text, "://")
	if _, after, found := strings.Cut(rest, "@"); found {
		return scheme + "://…@" + after
	}
	return text
}

func loginOf(user, password string) login {
	return login{Auth: base64.StdEncoding.EncodeToString([]byte(user + ":" + password))}
}

// runtime is containerd's folder with the settings for registries, and its files; "" when there are none. Each content has a folder of its own, so that no
// former setting stays.
func (r Registries) runtime() (folder string, files []ssh.File) {
	if r.schemes != nil {
		files = append(files, ssh.File{Path: r.host, Content: hostsFile(r.host, r.schemes)})
	}
	if len(r.mirrors) > 0 || r.through != "" {
		content := fmt.Appendf(nil, "server = %q\n", dockerHub)
		if r.through != "" {
			content = append(content, r.hostOfOwn(r.through, "  dial_timeout = \"2s\"\n")...)
		}
		files = append(files, ssh.File{Path: "docker.io", Content: append(content, hostsFile("", r.mirrors)...)})
	}
	if r.own != "" {
		files = append(files, ssh.File{Path: r.own, Content: r.hostOfOwn(r.address, "")})
	}
	if len(files) == 0 {
		return "", nil
	}
	sum := sha256.New()
	for _, file := range files {
		fmt.Fprintf(sum, "%s\n%s\n", file.Path, file.Content)
	}
	folder = fmt.Sprintf("/etc/containerd/registries/%.6x", sum.Sum(nil))
	for i, file := range files {
		files[i].Path = folder + "/" + file.Path + "/hosts.toml"
	}
	return folder, files
}

// hostOfOwn is a host of a hosts.toml: the cluster's own registry at this URL.
func (r Registries) hostOfOwn(address, more string) []byte {
	if u, err := url.Parse(address); err == nil && u.Path != "" {
		more += "  override_path = true\n"
	}
	return fmt.Appendf(nil, "\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n  ca = %q\n%s", address, TrustedFile, more)
}

// hostsFile lists the hosts of a hosts.toml of containerd: https://github.com/containerd/containerd/blob/main/docs/hosts.md. asked are schemes of a host,
// or URLs.
func hostsFile(host string, asked []string) []byte {
	var text bytes.Buffer
	for _, one := range asked {
		if host != "" {
			one += "://" + host
		}
		fmt.Fprintf(&text, "\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n", one)
		if host != "" && strings.HasPrefix(one, "https:") {
			text.WriteString("  skip_verify = true\n")
		}
		if u, err := url.Parse(one); err == nil && u.Path != "" {
			text.WriteString("  override_path = true\n")
		}
	}
	return text.Bytes()
}

// loginsFile holds the kubelet's logins, for every pod of the node. The kubelet reads it again every five minutes.
func (r Registries) loginsFile() (ssh.File, error) {
	logins := r.logins
	if logins == nil {
		logins = map[string]login{}
	}
	content, err := json.Marshal(map[string]any{"auths": logins})
	return ssh.File{Path: "/var/lib/kubelet/config.json", Content: append(content, '\n'), Mode: 0o600}, err
}
