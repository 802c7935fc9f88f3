// Command seed makes the objects in a new OpenStack that the tests of the cloud driver need, and writes their clouds.yaml. It leaves
// existing objects unchanged. It runs inside the box (see ../openstack.sh).
//
//	seed identity   projects, users with their roles, and the catalog of services; needs Keystone
//	seed cloud      external network, flavor and image; needs the rest
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
)

const (
	keystone      = "http://127.0.0.1:5000/v3"
	briefKeystone = "http://127.0.0.1:5001/v3"
	region        = "RegionOne"
	password      = "secret"
	state         = "/srv"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "seed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	provider, err := openstack.AuthenticatedClient(ctx, gophercloud.AuthOptions{
		IdentityEndpoint: keystone, Username: "admin", Password: password, DomainID: "default",
		Scope: &gophercloud.AuthScope{ProjectName: "admin", DomainID: "default"},
	})
	if err != nil {
		return fmt.Errorf("sign in to Keystone: %w", err)
	}
	switch {
	case len(args) == 1 && args[0] == "identity":
		return seedIdentity(ctx, provider)
	case len(args) == 1 && args[0] == "cloud":
		return seedCloud(ctx, provider)
	}
	return fmt.Errorf("say identity or cloud")
}

// findOrMake returns the id of the object with this name, and makes it when there is none.
func findOrMake(what, name string, ids map[string]string, make func() (string, error)) (string, error) {
	if id, ok := ids[name]; ok {
		return id, nil
	}
	id, err := make()
	if err != nil {
		return "", fmt.Errorf("make %s %s: %w", what, name, err)
	}
	ids[name] = id
	return id, nil
}
