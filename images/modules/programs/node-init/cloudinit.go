package main

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
)

// An image for machines has cloud-init, too. It takes seconds to start, so it is used only for user data that node-init does not understand completely:
// other packages, groups of users, and the like. Then it applies all of the user data, except host name, network and keys of sshd, which have to be ready
// before sshd starts, and plain users, who may log in at once.

// seedFolder is where cloud-init's data source NoCloud looks (https://docs.cloud-init.io/en/latest/reference/datasources/nocloud.html).
const seedFolder = "var/lib/cloud/seed/nocloud"

func (s server) hasCloudInit() bool {
	_, err := os.Stat(s.path("usr/bin/cloud-init"))
	return err == nil
}

// forCloudInit is the rest of the user data for cloud-init: nothing is done twice. It leaves existing users unchanged.
func (d userData) forCloudInit() userData {
	d.Accounts = slices.DeleteFunc(d.Accounts, func(one account) bool { return one.Partial })
	d.Scripts, d.Files, d.Commands, d.CloudInit = nil, nil, nil, true
	return d
}

// seedCloudInit passes the user data to cloud-init, or removes the data of a former instance of this disk.
func (s server) seedCloudInit(d *drive, data userData) error {
	if !data.CloudInit {
		return os.RemoveAll(s.path(seedFolder))
	}
	metadata, err := json.Marshal(map[string]any{"instance-id": d.Metadata.UUID, "local-hostname": d.Metadata.Hostname, "public-keys": d.Metadata.keys()})
	if err != nil {
		return err
	}
	// The user data comes last: it triggers cloud-init's unit.
	return errors.Join(
		s.write(s.path(seedFolder, "meta-data"), metadata, 0o600),
		s.write(s.path(seedFolder, "user-data"), d.UserData, 0o600),
	)
}
