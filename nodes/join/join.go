// Package join prepares its machine for Burano's login, and reports problems.
package join

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/crypto/ssh"
)

// patience is how long this machine's own sshd is waited for.
const patience = 10 * time.Second

// OwnAddress is the address from which this machine reaches a server, host and port; it must be of IPv4.
func OwnAddress(ctx context.Context, server string) (netip.Addr, error) {
	route, err := (&net.Dialer{}).DialContext(ctx, "udp4", server) // nothing is sent
	if err != nil {
		return netip.Addr{}, fmt.Errorf("find out by which of its addresses this machine reaches %s: %w. Give the one of the machine by --address", server, err)
	}
	defer route.Close()
	own, err := netip.ParseAddrPort(route.LocalAddr().String())
	if err == nil && own.Addr().IsLoopback() {
		err = fmt.Errorf("the server %s is reached from %s, where no other node reaches this machine: give its own address by --address", server, own.Addr())
	}
	return own.Addr(), err
}

// HostKey asks the sshd at an address of this machine for its public host key of type ed25519, as authorized_keys has keys.
func HostKey(ctx context.Context, at netip.AddrPort) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	socket, err := (&net.Dialer{}).DialContext(ctx, "tcp", at.String())
	if err != nil {
		return "", fmt.Errorf("no sshd answers at %s: install one and start it (apt install openssh-server), or say by --port where it listens: %w", at, err)
	}
	defer context.AfterFunc(ctx, func() { socket.Close() })()
	defer socket.Close()
	var shown ssh.PublicKey
	_, _, _, err = ssh.NewClientConn(socket, at.String(), &ssh.ClientConfig{User: "root", HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			shown = key
			return errSeen
		}})
	if shown == nil {
		return "", fmt.Errorf("the sshd at %s shows no host key of type ed25519: make one (ssh-keygen -A) and start sshd again: %w", at, err)
	}
	return line(shown), nil
}

// errSeen ends a connection whose host key was seen.
var errSeen = errors.New("the host key is known now")

func line(key ssh.PublicKey) string { return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) }

// Login is how Burano is to log in to this machine.
type Login struct {
	User *user.User
	File string // of the keys that are let in as the user
}

// LookUp finds out from sshd's settings how the user logs in by a key from an address. Problems are sentences about obstacles to Burano's login, with
// their remedy.
func LookUp(ctx context.Context, name string, from netip.Addr) (login Login, problems []string, err error) {
	if login.User, err = user.Lookup(name); err != nil {
		return login, nil, fmt.Errorf("the user %s, as whom Burano is to log in: %w", name, err)
	}
	settings := sshd(ctx, name, from)
	if settings["pubkeyauthentication"] == "no" {
		problems = append(problems, "sshd lets nobody in by a key: set PubkeyAuthentication yes in /etc/ssh/sshd_config and reload it")
	}
	if root := settings["permitrootlogin"]; name == "root" && (root == "no" || root == "forced-commands-only") {
		problems = append(problems, fmt.Sprintf("sshd does not let root in (PermitRootLogin %s): set it to prohibit-password in /etc/ssh/sshd_config and reload sshd, or join with --user and somebody who becomes root by sudo without a password", root))
	}
	if name != "root" {
		if said, err := exec.CommandContext(ctx, "runuser", "-u", name, "--", "sudo", "-n", "true").CombinedOutput(); err != nil {
			problems = append(problems, fmt.Sprintf("%s does not become root by sudo without a password (%s): allow it, such as by the line \"%s ALL=(ALL) NOPASSWD:ALL\" in /etc/sudoers.d/burano",
				name, strings.TrimSpace(string(said)), name))
		}
	}
	first, _, _ := strings.Cut(settings["authorizedkeysfile"], " ")
	switch {
	case first == "":
		first = ".ssh/authorized_keys"
	case first == "none":
		return login, append(problems, "sshd reads no file of authorized keys (AuthorizedKeysFile none): set it to .ssh/authorized_keys in /etc/ssh/sshd_config and reload sshd"), nil
	}
	login.File = strings.NewReplacer("%%", "%", "%h", login.User.HomeDir, "%u", name, "%U", login.User.Uid).Replace(first)
	if !filepath.IsAbs(login.File) {
		login.File = filepath.Join(login.User.HomeDir, login.File)
	}
	if settings["strictmodes"] != "no" {
		problems = append(problems, login.open()...)
	}
	return login, problems, nil
}

// sshd are sshd's settings for a user; none if it does not print them.
func sshd(ctx context.Context, name string, from netip.Addr) map[string]string {
	program, err := exec.LookPath("sshd")
	if err != nil {
		program = "/usr/sbin/sshd"
	}
	said, err := exec.CommandContext(ctx, program, "-T", "-C", "user="+name+",host="+from.String()+",addr="+from.String()).Output()
	if err != nil {
		return nil // the login shows it
	}
	settings := map[string]string{}
	for line := range strings.Lines(string(said)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		settings[key] = value
	}
	return settings
}

// open are the folders, and the file, which others than their owner may write, so that sshd does not believe the file.
func (l Login) open() (problems []string) {
	for _, path := range []string{l.User.HomeDir, filepath.Dir(l.File), l.File} {
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o022 != 0 {
			problems = append(problems, fmt.Sprintf("others may write %s, so that sshd ignores the keys of %s: chmod go-w %s", path, l.User.Username, path))
		}
	}
	return problems
}

// Authorize adds a key, a line of authorized_keys, of which only the key itself is used. The note stands beside it. An authorized key does not change.
func (l Login) Authorize(key, note string) (added bool, err error) {
	wanted, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key))
	if err != nil {
		return false, fmt.Errorf("the key that is to be let in: %w", err)
	}
	present, err := os.ReadFile(l.File)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	for rest := present; len(rest) > 0; {
		one, _, _, next, err := ssh.ParseAuthorizedKey(rest)
		if err != nil {
			break // no more of them
		}
		if bytes.Equal(one.Marshal(), wanted.Marshal()) {
			return false, nil
		}
		rest = next
	}
	if err := l.own(filepath.Dir(l.File), func(path string) error { return os.Mkdir(path, 0o700) }); err != nil {
		return false, err
	}
	if err := l.own(l.File, func(path string) error { return os.WriteFile(path, nil, 0o600) }); err != nil {
		return false, err
	}
	file, err := os.OpenFile(l.File, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return false, err
	}
	note = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, note)
	text := line(wanted) + " " + note + "\n"
	if len(present) > 0 && present[len(present)-1] != '\n' {
		text = "\n" + text
	}
	_, err = file.WriteString(text)
	return err == nil, errors.Join(err, file.Close())
}

// own makes a missing file or folder, and makes the user its owner.
func (l Login) own(path string, make func(path string) error) error {
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := make(path); err != nil {
		return err
	}
	uid, err := strconv.Atoi(l.User.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(l.User.Gid)
	if err != nil {
		return err
	}
	if err := os.Chown(path, uid, gid); err != nil && !errors.Is(err, syscall.EPERM) {
		return err
	}
	return nil
}
