// Command node-init makes a server out of an image: it applies OpenStack's data about the server (a config drive with metadata, network and user data), as
// cloud-init would, but in a few milliseconds and only in the part that nodes need.
//
// It runs twice at a boot. `node-init early`, before the network and sshd, sets host name, network, keys and files; `node-init late`, when the network is
// up, runs the user's commands. Each does its work once per instance id.
package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
)

const usage = `usage: node-init early|late
  early  set host name, network, keys and files   (before the network)
  late   run the user's commands                  (after the network)
environment: NODE_INIT_DRIVE (default /run/config-drive), NODE_INIT_ROOT (default /)`

func main() {
	// The journal adds time and level.
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	if len(os.Args) != 2 || (os.Args[1] != early && os.Args[1] != late) {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	server := server{root: environment("NODE_INIT_ROOT", "/"), log: log}
	if err := run(server, environment("NODE_INIT_DRIVE", "/run/config-drive"), os.Args[1]); err != nil {
		log.Error(err.Error())
		os.Exit(1)
	}
}

func environment(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

const (
	early = "early"
	late  = "late"
)

// run does one phase, unless it was done for this instance before.
func run(server server, folder, phase string) error {
	drive, err := readDrive(folder)
	if err != nil {
		return err
	}
	if drive == nil {
		server.log.Info("no config drive, nothing to do", "folder", folder)
		return nil
	}
	marker := server.path("var/lib/burano-init", drive.Metadata.UUID, phase)
	if _, err := os.Stat(marker); err == nil {
		server.log.Info("done before for this instance", "instance", drive.Metadata.UUID, "phase", phase)
		return nil
	}
	data, problems := parseUserData(drive.UserData)
	for _, problem := range problems {
		server.log.Warn("user data: " + problem)
	}
	if len(problems) > 0 && server.hasCloudInit() {
		server.log.Info("files and commands of this user data are cloud-init's")
		data = data.forCloudInit()
	}
	// A failed setup can be tried again at the next boot. Commands cannot: their progress is unknown.
	steps := []func() error{func() error { return server.early(drive, data) }, func() error { return mark(marker) }}
	if phase == late {
		steps = []func() error{func() error { return mark(marker) }, func() error { return server.late(data) }}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("%s phase of instance %s: %w", phase, drive.Metadata.UUID, err)
		}
	}
	return nil
}

func mark(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o644)
}
