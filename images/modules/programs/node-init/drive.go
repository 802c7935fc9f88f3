package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// drive is an OpenStack config drive (https://docs.openstack.org/nova/latest/user/metadata.html), version "latest".
type drive struct {
	Metadata metadata
	Network  network
	UserData []byte
}

type metadata struct {
	UUID       string            `json:"uuid"`
	Hostname   string            `json:"hostname"`
	Name       string            `json:"name"`
	PublicKeys map[string]string `json:"public_keys"`
}

// network is network_data.json.
type network struct {
	Links    []link    `json:"links"`
	Networks []subnet  `json:"networks"`
	Services []service `json:"services"`
}

type link struct {
	ID  string `json:"id"`
	MAC string `json:"ethernet_mac_address"`
	MTU int    `json:"mtu"`
}

type subnet struct {
	ID       string    `json:"id"`
	Link     string    `json:"link"`
	Type     string    `json:"type"`
	Address  string    `json:"ip_address"`
	Netmask  string    `json:"netmask"`
	Gateway  string    `json:"gateway"`
	Routes   []route   `json:"routes"`
	Services []service `json:"services"`
}

type route struct {
	Network string `json:"network"`
	Netmask string `json:"netmask"`
	Gateway string `json:"gateway"`
}

type service struct {
	Type    string `json:"type"`
	Address string `json:"address"`
}

var instanceID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// readDrive gives nil where there is no drive.
func readDrive(folder string) (*drive, error) {
	latest := filepath.Join(folder, "openstack", "latest")
	var read drive
	if err := readJSON(filepath.Join(latest, "meta_data.json"), &read.Metadata); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if !instanceID.MatchString(read.Metadata.UUID) {
		return nil, fmt.Errorf("meta_data.json: uuid %q is no instance id", read.Metadata.UUID)
	}
	if err := readJSON(filepath.Join(latest, "network_data.json"), &read.Network); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var err error
	if read.UserData, err = os.ReadFile(filepath.Join(latest, "user_data")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read user data: %w", err)
	}
	return &read, nil
}

func readJSON(path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return nil
}

// keys are the public keys of the metadata, each on one line, in the order of their names.
func (m metadata) keys() []string {
	var keys []string
	for _, name := range sortedKeys(m.PublicKeys) {
		keys = append(keys, strings.TrimSpace(m.PublicKeys[name]))
	}
	return keys
}
