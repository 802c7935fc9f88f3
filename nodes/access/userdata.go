package access

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/ssh"
)

// How cloud-init and Burano read user data: https://docs.cloud-init.io/en/latest/explanation/format.html.

// User is Burano's user on servers that it did not set up as nodes: a user who may become root.
const User = "burano"

// mark begins the line of user data by which Burano recognises that it can reach the server. The digest of the other user data follows.
const mark = "# Burano reaches this server over SSH. SHA-256 of the other user data: "

// Marked is true if user data lets Burano reach its server.
func Marked(userData string) bool { return strings.Contains(userData, mark) }

// MadeOf is true if user data lets Burano reach its server and is made of this other user data, by any version of Burano.
func MadeOf(userData, other string) bool { return strings.Contains(userData, mark+digest(other)) }

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// UserData is user data that also lets Burano in, beside the contents of other: a user with Burano's key, and the host key of the first connection. The
// bytes are the same each time. Its error is ErrForeign when cloud-init does not take other.
func (k *Keys) UserData(ctx context.Context, server, other string) (string, error) {
	if Foreign(other) {
		return "", ErrForeign
	}
	own, err := k.Own(ctx)
	if err != nil {
		return "", err
	}
	first, private, err := k.First(ctx, server)
	if err != nil {
		return "", err
	}
	config := cloudConfig{
		// The other user data keep their values, and lists are extended.
		Merge:      []merger{{"list", []string{"append"}}, {"dict", []string{"no_replace", "recurse_list"}}},
		DeleteKeys: true,
		HostKeys: map[string]string{
			"ed25519_private": string(private),
			"ed25519_public":  strings.TrimSpace(string(ssh.MarshalAuthorizedKey(first.PublicKey()))),
		},
		Users: []any{account{Name: User, Comment: "Burano", Shell: "/bin/bash", Locked: true, Sudo: "ALL=(ALL) NOPASSWD:ALL", Keys: []string{Authorized(own.PublicKey())}}},
	}
	if !namesUsers(other) { // else the list itself decides whether the image's own user is made
		config.Users = append([]any{"default"}, config.Users...)
	}
	document, err := yaml.Marshal(config)
	if err != nil {
		return "", fmt.Errorf("write the user data of %s: %w", server, err)
	}
	part := "#cloud-config\n" + mark + digest(other) + "\n" + string(document)
	if strings.TrimSpace(other) == "" {
		return part, nil
	}
	return parts(contentType(other), other, part), nil
}

type (
	cloudConfig struct {
		Merge      []merger          `yaml:"merge_how"`
		DeleteKeys bool              `yaml:"ssh_deletekeys"`
		HostKeys   map[string]string `yaml:"ssh_keys"`
		Users      []any             `yaml:"users"`
	}
	merger struct {
		Name     string   `yaml:"name"`
		Settings []string `yaml:"settings"`
	}
	account struct {
		Name    string   `yaml:"name"`
		Comment string   `yaml:"gecos"`
		Shell   string   `yaml:"shell"`
		Locked  bool     `yaml:"lock_passwd"`
		Sudo    string   `yaml:"sudo"`
		Keys    []string `yaml:"ssh_authorized_keys"`
	}
)

// ErrForeign is user data that is no cloud-init's, so that nothing can be put beside it.
var ErrForeign = errors.New("user data is nothing that cloud-init takes")

// Foreign is true for user data that cloud-init does not take.
func Foreign(userData string) bool { return contentType(userData) == "" }

// manyParts is user data that consists of several already.
const manyParts = "multipart/mixed"

// contentTypes are the types of user data by how it begins, blanks aside; the first one that fits counts.
var contentTypes = []struct{ beginning, kind string }{
	{"#!", "text/x-shellscript"},
	{"#cloud-config-archive", "text/cloud-config-archive"},
	{"#cloud-config", "text/cloud-config"},
	{"#cloud-boothook", "text/cloud-boothook"},
	{"#include-once", "text/x-include-once-url"},
	{"#include", "text/x-include-url"},
	{"#part-handler", "text/part-handler"},
	{"## template: jinja", "text/jinja2"},
}

var headers = regexp.MustCompile(`(?i)^(mime-version|content-type):`)

// contentType is the kind of user data, "" for a kind that cloud-init does not know. No user data counts as a script.
func contentType(userData string) string {
	if strings.TrimSpace(userData) == "" {
		return contentTypes[0].kind
	}
	if headers.MatchString(userData) {
		return manyParts
	}
	beginning := strings.ToLower(strings.TrimSpace(userData))
	for _, known := range contentTypes {
		if strings.HasPrefix(beginning, known.beginning) {
			return known.kind
		}
	}
	return ""
}

// namesUsers is true if user data has a list of users.
func namesUsers(userData string) bool {
	if contentType(userData) != manyParts {
		return usersKey.MatchString(userData)
	}
	message, err := mail.ReadMessage(strings.NewReader(userData))
	if err != nil {
		return false
	}
	kind, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") {
		return false
	}
	reader := multipart.NewReader(message.Body, parameters["boundary"])
	for {
		part, err := reader.NextPart() // quoted-printable is decoded
		if err != nil {
			return false
		}
		var content io.Reader = part
		if strings.EqualFold(part.Header.Get("Content-Transfer-Encoding"), "base64") {
			content = base64.NewDecoder(base64.StdEncoding, part)
		}
		text, err := io.ReadAll(content)
		if err == nil && usersKey.Match(text) {
			return true
		}
	}
}

var usersKey = regexp.MustCompile(`(?m)^["']?users["']?:`)

// Configured is user data of a script, or of anything else that cloud-init takes, and of a configuration for cloud-init beside it. Without a
// configuration it is the script. Its error is ErrForeign when nothing can be put beside the script.
func Configured(script string, config map[string]any) (string, error) {
	if len(config) == 0 {
		return script, nil
	}
	document, err := yaml.Marshal(config) // keys in order, so that the text is the same each time
	if err != nil {
		return "", fmt.Errorf("write the configuration of cloud-init: %w", err)
	}
	own := "#cloud-config\n" + string(document)
	switch {
	case strings.TrimSpace(script) == "":
		return own, nil
	case Foreign(script):
		return "", ErrForeign
	}
	return parts(contentType(script), script, own), nil
}

// parts makes one document of two.
func parts(kind, other, own string) string {
	boundary := "burano-" + digest(other + own)[:32]
	var made bytes.Buffer
	fmt.Fprintf(&made, "Content-Type: %s; boundary=%q\nMIME-Version: 1.0\n\n", manyParts, boundary)
	fmt.Fprintf(&made, "--%s\n", boundary)
	if kind == manyParts {
		made.WriteString(other) // with its own headers
	} else {
		writePart(&made, kind, other)
	}
	fmt.Fprintf(&made, "\n--%s\n", boundary)
	writePart(&made, "text/cloud-config", own)
	fmt.Fprintf(&made, "\n--%s--\n", boundary)
	return made.String()
}

// lineLimit is how long a line of a message may be (RFC 5322, section 2.1.1).
const lineLimit = 998

func writePart(to *bytes.Buffer, kind, content string) {
	plain := !strings.Contains(content, "\r")
	for line := range strings.Lines(content) {
		plain = plain && len(line) <= lineLimit
	}
	for _, r := range content {
		plain = plain && r < 0x80
	}
	encoding := "7bit"
	if !plain {
		encoding = "base64"
	}
	fmt.Fprintf(to, "Content-Type: %s; charset=\"utf-8\"\nMIME-Version: 1.0\nContent-Transfer-Encoding: %s\n\n", kind, encoding)
	if plain {
		to.WriteString(content)
		return
	}
	text := base64.StdEncoding.EncodeToString([]byte(content))
	for len(text) > 76 {
		to.WriteString(text[:76] + "\n")
		text = text[76:]
	}
	to.WriteString(text)
}
