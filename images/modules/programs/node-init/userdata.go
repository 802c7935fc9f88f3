package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/textproto"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// userData is a user's data: scripts, and the understood part of cloud-configs (https://cloudinit.readthedocs.io/en/latest/reference/modules.html).
type userData struct {
	Scripts        [][]byte
	Hostname       string
	AuthorizedKeys []string
	// HostKeys has the keys "<type>_private" and "<type>_public", type being ed25519, ecdsa or rsa.
	HostKeys       map[string]string
	DeleteHostKeys bool
	Accounts       []account
	Files          []file
	Commands       []command
	// CloudInit is set when cloud-init applies the user data.
	CloudInit bool
}

// account is a user beside root.
type account struct {
	Name, Comment, Shell string
	// Sudo is the user's rule in sudoers: "ALL=(ALL) NOPASSWD:ALL"; "" for none.
	Sudo           string
	AuthorizedKeys []string
	// Partial is set when the user has further properties.
	Partial bool
}

type file struct {
	Path    string
	Content []byte
	Mode    fs.FileMode
	// Owner is "user" or "user:group".
	Owner  string
	Append bool
}

// command is a line for the shell, or the words of a program and its arguments.
type command struct {
	Line  string
	Words []string
}

// parseUserData reads the understood part and reports the rest, one sentence per problem.
func parseUserData(content []byte) (userData, []string) {
	data := userData{DeleteHostKeys: true}
	if len(bytes.TrimSpace(content)) == 0 {
		return data, nil
	}
	parts := [][]byte{content}
	if isMessage(content) {
		var err error
		if parts, err = partsOf(textproto.MIMEHeader{}, content); err != nil {
			return data, []string{fmt.Sprintf("it is to have several parts, and is ignored from where they cannot be read: %v", err)}
		}
	}
	var problems []string
	for i, part := range parts {
		for _, problem := range data.readPart(part) {
			if len(parts) > 1 {
				problem = fmt.Sprintf("part %d: %s", i+1, problem)
			}
			problems = append(problems, problem)
		}
	}
	return data, problems
}

// readPart reads a script or a cloud-config. A later part extends a former one.
func (d *userData) readPart(content []byte) []string {
	first, _, _ := bytes.Cut(bytes.TrimLeft(content, "\r\n\t "), []byte("\n"))
	heading := strings.TrimSpace(string(first))
	switch {
	case strings.HasPrefix(heading, "#!"):
		d.Scripts = append(d.Scripts, content)
		return nil
	case heading != "#cloud-config":
		return []string{fmt.Sprintf("it begins with %q; understood are scripts (#!) and #cloud-config: all of it is ignored", shorten(heading))}
	}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return []string{fmt.Sprintf("it is no YAML, all of it is ignored: %v", err)}
	}
	if document.Kind == 0 {
		return nil
	}
	if root := document.Content[0]; root.Kind == yaml.MappingNode {
		return d.readCloudConfig(root)
	}
	return []string{"it is no mapping of keys to values: all of it is ignored"}
}

func shorten(text string) string {
	if len(text) > 40 {
		return text[:40] + "…"
	}
	return text
}

func (d *userData) readCloudConfig(root *yaml.Node) (problems []string) {
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		for _, err := range d.readKey(key.Value, value) {
			problems = append(problems, fmt.Sprintf("line %d, %s: %v", key.Line, key.Value, err))
		}
	}
	return problems
}

func (d *userData) readKey(key string, value *yaml.Node) []error {
	switch key {
	case "merge_how", "merge_type":
		return nil // a later part always extends a former one
	case "hostname":
		return one(value.Decode(&d.Hostname))
	case "ssh_authorized_keys":
		return one(appendKeys(&d.AuthorizedKeys, value))
	case "ssh_keys":
		return d.readHostKeys(value)
	case "ssh_deletekeys":
		return one(value.Decode(&d.DeleteHostKeys))
	case "disable_root":
		var disable bool
		if err := value.Decode(&disable); err != nil {
			return one(err)
		}
		if disable {
			return one(errors.New("root is the only user of this image and stays enabled"))
		}
		return nil
	case "write_files":
		return d.readFiles(value)
	case "runcmd":
		return d.readCommands(value)
	case "users":
		return d.readUsers(value)
	default:
		return one(errors.New("this key is not known and is ignored"))
	}
}

func one(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}

func appendKeys(to *[]string, value *yaml.Node) error {
	var keys []string
	if err := value.Decode(&keys); err != nil {
		return err
	}
	for _, key := range keys {
		*to = append(*to, strings.TrimSpace(key))
	}
	return nil
}

var hostKeyNames = []string{"ed25519_private", "ed25519_public", "ecdsa_private", "ecdsa_public", "rsa_private", "rsa_public"}

func (d *userData) readHostKeys(value *yaml.Node) (problems []error) {
	var keys map[string]string
	if err := value.Decode(&keys); err != nil {
		return one(err)
	}
	for _, name := range sortedKeys(keys) {
		if !slices.Contains(hostKeyNames, name) {
			problems = append(problems, fmt.Errorf("%q is none of %s", name, strings.Join(hostKeyNames, ", ")))
			continue
		}
		if d.HostKeys == nil {
			d.HostKeys = map[string]string{}
		}
		if d.HostKeys[name] == "" {
			d.HostKeys[name] = keys[name]
		}
	}
	return problems
}

func (d *userData) readFiles(value *yaml.Node) (problems []error) {
	var entries []struct {
		Path        string    `yaml:"path"`
		Content     string    `yaml:"content"`
		Encoding    string    `yaml:"encoding"`
		Permissions yaml.Node `yaml:"permissions"`
		Owner       string    `yaml:"owner"`
		Append      bool      `yaml:"append"`
	}
	if err := value.Decode(&entries); err != nil {
		return one(err)
	}
	for _, entry := range entries {
		written := file{Path: entry.Path, Content: []byte(entry.Content), Mode: 0o644, Owner: entry.Owner, Append: entry.Append}
		var err error
		if !filepath.IsAbs(entry.Path) {
			err = errors.New("the path is not absolute")
		}
		switch entry.Encoding {
		case "", "text/plain":
		case "b64", "base64":
			if content, wrong := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(entry.Content), "")); wrong != nil {
				err = errors.Join(err, wrong)
			} else {
				written.Content = content
			}
		default:
			err = errors.Join(err, fmt.Errorf("encoding %q is not known (b64 is)", entry.Encoding))
		}
		// Permissions are octal whether they are quoted or not: the text counts, not the number that YAML makes of it.
		if text := entry.Permissions.Value; text != "" {
			mode, wrong := strconv.ParseUint(strings.TrimPrefix(text, "0o"), 8, 32)
			if wrong != nil || mode > 0o7777 {
				err = errors.Join(err, fmt.Errorf("permissions %q are no octal number", text))
			}
			written.Mode = fileMode(uint32(mode))
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("file %q is not written: %w", entry.Path, err))
			continue
		}
		d.Files = append(d.Files, written)
	}
	return problems
}

// fileMode turns Unix bits into Go's.
func fileMode(bits uint32) fs.FileMode {
	mode := fs.FileMode(bits & 0o777)
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if bits&bit != 0 {
			mode |= flag
		}
	}
	return mode
}

func (d *userData) readCommands(value *yaml.Node) (problems []error) {
	if value.Kind != yaml.SequenceNode {
		return one(errors.New("a list of commands is wanted"))
	}
	for _, entry := range value.Content {
		read := command{Line: entry.Value}
		if entry.Kind == yaml.SequenceNode {
			if err := entry.Decode(&read.Words); err != nil || len(read.Words) == 0 {
				problems = append(problems, fmt.Errorf("line %d: a list of words is wanted", entry.Line))
				continue
			}
		} else if entry.Kind != yaml.ScalarNode {
			problems = append(problems, fmt.Errorf("line %d: a command is a text or a list of words", entry.Line))
			continue
		}
		d.Commands = append(d.Commands, read)
	}
	return problems
}

func (d *userData) readUsers(value *yaml.Node) (problems []error) {
	if value.Kind != yaml.SequenceNode {
		return one(errors.New("a list of users is wanted"))
	}
	for _, entry := range value.Content {
		if entry.Kind == yaml.ScalarNode {
			if entry.Value != "default" && entry.Value != "root" {
				problems = append(problems, fmt.Errorf("user %q is ignored: a user is a mapping with a name", entry.Value))
			}
			continue
		}
		problems = append(problems, d.readUser(entry)...)
	}
	return problems
}

var accountName = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)

func (d *userData) readUser(entry *yaml.Node) (problems []error) {
	var fields map[string]yaml.Node
	if err := entry.Decode(&fields); err != nil {
		return one(err)
	}
	name := fields["name"]
	made := account{Name: name.Value, Shell: "/bin/sh"}
	if !accountName.MatchString(made.Name) {
		return one(fmt.Errorf("user %q is ignored: that is no name for one", made.Name))
	}
	isRoot := made.Name == "root"
	for _, field := range sortedKeys(fields) {
		content := fields[field]
		switch {
		case field == "name":
		case field == "ssh_authorized_keys":
			if err := appendKeys(&made.AuthorizedKeys, &content); err != nil {
				problems = append(problems, err)
			}
		case field == "gecos" && !isRoot:
			made.Comment = strings.NewReplacer(":", " ", "\n", " ").Replace(content.Value)
		case field == "shell" && !isRoot:
			made.Shell = content.Value
		case field == "sudo" && !isRoot && content.Kind == yaml.ScalarNode && !strings.Contains(content.Value, "\n"):
			made.Sudo = content.Value
		case field == "lock_passwd" && content.Value == "true": // there are no passwords
		default:
			problems = append(problems, fmt.Errorf("%s of user %s is not known and is ignored", field, made.Name))
			made.Partial = true
		}
	}
	if isRoot {
		d.AuthorizedKeys = append(d.AuthorizedKeys, made.AuthorizedKeys...)
	} else {
		d.Accounts = append(d.Accounts, made)
	}
	return problems
}
