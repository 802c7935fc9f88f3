// Package systemd writes units for nodes and decides when one has to be restarted.
//
// A unit knows the files it reads when it starts. Its fingerprint changes with any of them. A node stores the fingerprint at each start, and so knows
// whether the running unit is the wanted one.
package systemd

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/burano/burano/nodes/ssh"
)

// Folder is where our units are on a node.
const Folder = "/etc/systemd/system"

// Unit is a service of a node.
type Unit struct {
	Name        string     // without ".service"
	Description string     // for the unit file
	Command     []string   // program and arguments
	Service     []string   // further lines of the [Service] section, in order: "Type=notify"
	Files       []ssh.File // files that it reads when it starts: configuration, keys
	Live        []ssh.File // files that it reads again while it runs: no reason to restart it; one with a path of Files is in place of that one
	Packaged    bool       // the image has the unit file: it is enabled and started, not written
	After       string     // another unit, with ".service", that starts before it and stops after it, where both do; no reason to start it anew; may be empty
	Needs       string     // a file without which it does not begin, also not at boot; may be empty
	Binary      string     // digest of a program that is no file of ours in Files (Burano's own binary), may be empty
	Reloads     bool       // it takes other Files over while it runs (ExecReload), without a restart
}

// Path of the unit's file.
func (u Unit) Path() string {
	if u.Packaged {
		return "/lib/systemd/system/" + u.Name + ".service"
	}
	return Folder + "/" + u.Name + ".service"
}

// Text is the unit's file. Every unit restarts for ever, half a second after it ended: its dependencies may come late.
func (u Unit) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[Unit]\nDescription=%s\nAfter=%s\nStartLimitIntervalSec=0\n", u.Description, strings.TrimSpace("network.target "+u.After))
	if u.Needs != "" {
		fmt.Fprintf(&b, "ConditionPathExists=%s\n", u.Needs)
	}
	fmt.Fprintf(&b, "\n[Service]\nExecStart=%s\n", strings.Join(escaped(u.Command), " \\\n  "))
	if !slices.ContainsFunc(u.Service, func(line string) bool { return strings.HasPrefix(line, "Restart=") }) {
		b.WriteString("Restart=always\nRestartSec=500ms\n")
	}
	for _, line := range u.Service {
		b.WriteString(line + "\n")
	}
	b.WriteString("\n[Install]\nWantedBy=multi-user.target\n")
	return b.String()
}

// escaped protects characters that systemd would expand in a command line.
func escaped(words []string) []string {
	out := make([]string, len(words))
	for i, word := range words {
		word = strings.ReplaceAll(strings.ReplaceAll(word, "%", "%%"), "$", "$$")
		if word == "" || strings.ContainsAny(word, " \t\"'\\;") {
			word = `"` + strings.ReplaceAll(strings.ReplaceAll(word, `\`, `\\`), `"`, `\"`) + `"`
		}
		out[i] = word
	}
	return out
}

// Install returns all files of the unit: the files that it reads, its unit file, and the link that enables it at boot.
func (u Unit) Install() []ssh.File {
	files := slices.Concat(u.Files, u.Live)
	if !u.Packaged {
		files = append(files, ssh.File{Path: u.Path(), Content: []byte(u.Text())})
	}
	return append(files, ssh.File{Path: Folder + "/multi-user.target.wants/" + u.Name + ".service", Link: u.Path()})
}

// Fingerprint changes with everything the unit is started with. Of a unit that reloads it has two parts, and only another first one is a
// reason to start it anew: FIRST-SECOND.
func (u Unit) Fingerprint() string {
	hash := sha256.New()
	if !u.Packaged {
		u.After = "" // systemd follows it without a start
		fmt.Fprintf(hash, "%s\n", u.Text())
	}
	fmt.Fprintf(hash, "%s\n", u.Binary)
	first := ""
	if u.Reloads {
		first = hex.EncodeToString(hash.Sum(nil)) + "-"
		hash = sha256.New()
	}
	for _, file := range u.Files {
		fmt.Fprintf(hash, "%s %o %s %s\n", file.Path, file.Mode, file.Link, file.Digest())
	}
	return first + hex.EncodeToString(hash.Sum(nil))
}
