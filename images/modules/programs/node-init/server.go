package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// server is the machine to be set up; root is its file system, "/" but for tests.
type server struct {
	root string
	log  *slog.Logger
}

func (s server) path(parts ...string) string {
	return filepath.Join(append([]string{s.root}, parts...)...)
}

// early sets the parts that must be ready before the network and sshd start.
func (s server) early(d *drive, data userData) error {
	return errors.Join(
		s.setHostname(d, data),
		s.setNetwork(d.Network),
		s.setAuthorizedKeys(append(d.Metadata.keys(), data.AuthorizedKeys...)),
		s.makeAccounts(data.Accounts),
		s.setHostKeys(data),
		s.writeFiles(data.Files),
		s.seedCloudInit(d, data),
	)
}

// late runs the user's commands: all of them, also when one fails, as cloud-init does.
func (s server) late(data userData) error {
	var failures error
	for i, text := range data.Scripts {
		script := s.path("var/lib/burano-init", fmt.Sprintf("script-%d", i+1))
		if err := s.write(script, text, 0o700); err != nil {
			return err
		}
		failures = errors.Join(failures, s.run(exec.Command(script)))
	}
	for _, command := range data.Commands {
		program := exec.Command("/bin/sh", "-c", command.Line)
		if len(command.Words) > 0 {
			program = exec.Command(command.Words[0], command.Words[1:]...)
		}
		failures = errors.Join(failures, s.run(program))
	}
	return failures
}

// run lets the output go to the journal.
func (s server) run(command *exec.Cmd) error {
	command.Dir, command.Stdout, command.Stderr = s.root, os.Stdout, os.Stderr
	s.log.Info("running", "command", strings.Join(command.Args, " "))
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(command.Args, " "), err)
	}
	return nil
}

func (s server) setHostname(d *drive, data userData) error {
	full := data.Hostname
	for _, other := range []string{d.Metadata.Hostname, d.Metadata.Name} {
		if full == "" {
			full = other
		}
	}
	if full == "" {
		return nil
	}
	short, _, _ := strings.Cut(full, ".")
	names := short
	if full != short {
		names = full + " " + short
	}
	hosts := fmt.Sprintf("127.0.0.1 localhost\n127.0.1.1 %s\n::1 localhost ip6-localhost ip6-loopback\n", names)
	err := errors.Join(s.write(s.path("etc/hostname"), []byte(short+"\n"), 0o644), s.write(s.path("etc/hosts"), []byte(hosts), 0o644))
	if s.root == "/" {
		err = errors.Join(err, syscall.Sethostname([]byte(short)))
	}
	return err
}

func (s server) setNetwork(n network) error {
	files, nameServers, problems := networkFiles(n)
	for _, problem := range problems {
		s.log.Warn("network data: " + problem)
	}
	var failures error
	for _, name := range sortedKeys(files) {
		failures = errors.Join(failures, s.write(s.path("etc/systemd/network", name), []byte(files[name]), 0o644))
	}
	if len(nameServers) > 0 {
		var lines strings.Builder
		for _, server := range nameServers {
			fmt.Fprintf(&lines, "nameserver %s\n", server)
		}
		failures = errors.Join(failures, s.write(s.path("etc/resolv.conf"), []byte(lines.String()), 0o644))
	}
	return failures
}

// setAuthorizedKeys adds to the keys of the image or an earlier instance.
func (s server) setAuthorizedKeys(keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	path := s.path("root/.ssh/authorized_keys")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return s.addKeys(path, keys)
}

// addKeys adds to the keys of a file that is there.
func (s server) addKeys(path string, keys []string) error {
	existing, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(existing)), "\n")
	lines = slices.DeleteFunc(unique(append(lines, keys...)), func(line string) bool { return line == "" })
	return s.write(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

func (s server) setHostKeys(data userData) error {
	var failures error
	if data.DeleteHostKeys {
		old, err := filepath.Glob(s.path("etc/ssh/ssh_host_*key*"))
		failures = err
		for _, path := range old {
			failures = errors.Join(failures, os.Remove(path))
		}
	}
	for _, name := range sortedKeys(data.HostKeys) {
		kind, part, _ := strings.Cut(name, "_")
		path, mode := "ssh_host_"+kind+"_key", fs.FileMode(0o600)
		if part == "public" {
			path, mode = path+".pub", 0o644
		}
		content := strings.TrimSpace(data.HostKeys[name]) + "\n"
		failures = errors.Join(failures, s.write(s.path("etc/ssh", path), []byte(content), mode))
	}
	return failures
}

func (s server) writeFiles(files []file) error {
	var failures error
	for _, file := range files {
		if err := s.writeFile(file); err != nil {
			failures = errors.Join(failures, fmt.Errorf("write file %s: %w", file.Path, err))
		}
	}
	return failures
}

func (s server) writeFile(f file) error {
	path := s.path(f.Path)
	content := f.Content
	if f.Append {
		existing, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		content = append(existing, content...)
	}
	if err := s.write(path, content, f.Mode); err != nil {
		return err
	}
	if f.Owner == "" || f.Owner == "root" || f.Owner == "root:root" {
		return nil
	}
	uid, gid, err := owner(f.Owner)
	if err != nil {
		return err
	}
	return os.Chown(path, uid, gid)
}

// owner looks up "user" or "user:group"; a user alone has its own group.
func owner(text string) (uid, gid int, err error) {
	name, group, hasGroup := strings.Cut(text, ":")
	account, err := user.Lookup(name)
	if err != nil {
		return 0, 0, err
	}
	groupID := account.Gid
	if hasGroup {
		found, err := user.LookupGroup(group)
		if err != nil {
			return 0, 0, err
		}
		groupID = found.Gid
	}
	uid, err = strconv.Atoi(account.Uid)
	if err != nil {
		return 0, 0, err
	}
	gid, err = strconv.Atoi(groupID)
	return uid, gid, err
}

// write replaces a file atomically, so that half of it, or a key with too open a mode, can never be read. A file that is a mount of its own cannot be
// replaced and is overwritten.
func (s server) write(path string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".node-init-")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.Write(content)
	if err := errors.Join(err, temporary.Chmod(mode), temporary.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary.Name(), path); errors.Is(err, syscall.EBUSY) {
		return os.WriteFile(path, content, mode)
	} else {
		return err
	}
}
