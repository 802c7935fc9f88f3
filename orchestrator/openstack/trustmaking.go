package openstack

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/trusts"
)

// trustName is an attribute that Keystone keeps with a trust and lists, as it does with every one that it does not know.
const trustName = "burano_name"

// namedTrust creates a trust with a name. Unless its end is chosen it has none. A trust that Heat makes through an ending one has the same
// end, and Keystone refuses the second trust of a user for Heat with the same end: no second stack could be made.
type namedTrust struct {
	trusts.CreateOpts
	name string
}

func (t namedTrust) ToTrustCreateMap() (map[string]any, error) {
	body, err := t.CreateOpts.ToTrustCreateMap()
	if err == nil {
		body["trust"].(map[string]any)[trustName] = t.name
	}
	return body, err
}

// makeTrust makes a trust once, also when the answer is lost: it is found by its name.
func makeTrust(ctx context.Context, client *gophercloud.ServiceClient, options trusts.CreateOpts) (id string, err error) {
	if options.ExpiresAt != nil {
		// Keystone refuses two trusts that end at the same instant.
		expires := options.ExpiresAt.UTC().Truncate(time.Second).Add(time.Duration(1+mathrand.IntN(999_999)) * time.Microsecond)
		options.ExpiresAt = &expires
	}
	wanted := namedTrust{CreateOpts: options, name: rand.Text()}
	tries := 0
	err = Patiently(ctx, "identity", func(ctx context.Context) (err error) {
		if tries++; tries > 1 {
			if id, err = findTrust(ctx, client, wanted); err != nil || id != "" {
				return err
			}
		}
		made, err := trusts.Create(ctx, client, wanted).Extract()
		if err == nil {
			id = made.ID
		}
		return Contested(err, tries)
	})
	return id, err
}

// findTrust returns the id of the trust that was made with this name, "" when there is none.
func findTrust(ctx context.Context, client *gophercloud.ServiceClient, wanted namedTrust) (string, error) {
	pages, err := allPages(ctx, trusts.List(client, trusts.ListOpts{TrustorUserID: wanted.TrustorUserID}))
	if err != nil {
		return "", fmt.Errorf("look for a trust: %w", err)
	}
	var list struct {
		Trusts []struct {
			ID   string
			Name string `json:"burano_name"`
		}
	}
	if err := pages.(trusts.TrustPage).ExtractInto(&list); err != nil {
		return "", fmt.Errorf("look for a trust: %w", err)
	}
	for _, one := range list.Trusts {
		if one.Name == wanted.name {
			return one.ID, nil
		}
	}
	return "", nil
}
