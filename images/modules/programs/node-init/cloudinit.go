package main

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
)

// An image for machines has cloud-init, too. It takes seconds to start, so it is used only for user data that node-init does not understand whole: other
// packages, groups of users, and the like. Then it does all that the user data asks for, but for host name, network and keys of sshd, which have to be
// there before sshd starts, and users of whom nothing special is asked, who may log in at once.

// seedFolder is where cloud-init's data source NoCloud looks (https://docs.cloud-init.io/en/latest/reference/datasources/nocloud.html).
const seedFolder = "var/lib/cloud/seed/nocloud"

func (s server) hasCloudInit() bool {
	_, err := os.Stat(s.path("usr/bin/cloud-init"))
	return err == nil
}

// forCloudInit is the user data without what cloud-init does: nothing is to be done twice. A user who is there already it leaves as it is.
func (d userData) forCloudInit() userData {
	d.Accounts = slices.DeleteFunc(d.Accounts, func(one account) bool { return one.Partial })
	d.Scripts, d.Files, d.Commands, d.CloudInit = nil, nil, nil, true
	return d
}

// seedCloudInit gives the user data on, or takes back what a former instance of this disk was given.
func (s server) seedCloudInit(d *drive, data userData) error {
	if !data.CloudInit {
		return os.RemoveAll(s.path(seedFolder))
	}
	metadata, err := json.Marshal(map[string]any{"instance-id": d.Metadata.UUID, "local-hostname": d.Metadata.Hostname, "public-keys": d.Metadata.keys()})
	if err != nil {
		return err
	}
	// The user data comes last: it is what cloud-init's unit is started by.
	return errors.Join(
		s.write(s.path(seedFolder, "meta-data"), metadata, 0o600),
		s.write(s.path(seedFolder, "user-data"), d.UserData, 0o600),
	)
}
