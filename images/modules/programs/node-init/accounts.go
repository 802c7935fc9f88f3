package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// makeAccounts makes users beside root, who can log in only by a key.
func (s server) makeAccounts(accounts []account) error {
	var failures error
	for _, one := range accounts {
		if err := s.makeAccount(one); err != nil {
			failures = errors.Join(failures, fmt.Errorf("make user %s: %w", one.Name, err))
		}
	}
	return failures
}

func (s server) makeAccount(one account) error {
	_, _, _, err := s.accountOf(one.Name)
	if errors.Is(err, fs.ErrNotExist) {
		arguments := []string{"--create-home", "--user-group", "--shell", one.Shell, "--comment", one.Comment}
		if s.root != "/" {
			arguments = append(arguments, "--prefix", s.root)
		}
		err = s.run(exec.Command("useradd", append(arguments, one.Name)...))
	}
	if err != nil {
		return err
	}
	uid, gid, home, err := s.accountOf(one.Name)
	if err != nil {
		return err
	}
	if one.Sudo != "" {
		// sudo reads no file whose name has a dot, which no name of a user has.
		if err := s.write(s.path("etc/sudoers.d", "90-"+one.Name), []byte(one.Name+" "+one.Sudo+"\n"), 0o440); err != nil {
			return err
		}
	}
	if len(one.AuthorizedKeys) == 0 {
		return nil
	}
	keys := s.path(home, ".ssh", "authorized_keys")
	if err := os.MkdirAll(s.path(home, ".ssh"), 0o700); err != nil {
		return err
	}
	return errors.Join(s.addKeys(keys, one.AuthorizedKeys), os.Chown(s.path(home, ".ssh"), uid, gid), os.Chown(keys, uid, gid))
}

// accountOf looks a user up in the server's own list; fs.ErrNotExist when there is none of that name.
func (s server) accountOf(name string) (uid, gid int, home string, err error) {
	content, err := os.ReadFile(s.path("etc/passwd"))
	if err != nil {
		return 0, 0, "", err
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) < 6 || fields[0] != name {
			continue
		}
		uid, wrong := strconv.Atoi(fields[2])
		gid, bad := strconv.Atoi(fields[3])
		return uid, gid, fields[5], errors.Join(wrong, bad)
	}
	return 0, 0, "", fmt.Errorf("user %s: %w", name, fs.ErrNotExist)
}
