package openstack

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/trusts"
)

// unlimitedTrust is after how long a trust ends whose end nobody has chosen. It is deleted long before.
const unlimitedTrust = 10 * 365 * 24 * time.Hour

// makeTrust makes a trust once, also when the answer is lost: trusts have no names, but the fraction of the second in which one expires is
// as good as one.
func makeTrust(ctx context.Context, client *gophercloud.ServiceClient, options trusts.CreateOpts) (*trusts.Trust, error) {
	expires := time.Now().Add(unlimitedTrust)
	if options.ExpiresAt != nil {
		expires = *options.ExpiresAt
	}
	expires = expires.UTC().Truncate(time.Second).Add(time.Duration(1+rand.IntN(999_999)) * time.Microsecond)
	options.ExpiresAt = &expires
	var made *trusts.Trust
	tries := 0
	err := patiently(ctx, "identity", func(ctx context.Context) (err error) {
		if tries++; tries > 1 {
			if made, err = findTrust(ctx, client, options); err != nil || made != nil {
				return err
			}
		}
		made, err = trusts.Create(ctx, client, options).Extract()
		if gophercloud.ResponseCodeIs(err, http.StatusConflict) && tries <= conflicts {
			return &outage{status: http.StatusConflict, text: err.Error()}
		}
		return err
	})
	return made, err
}

// findTrust returns the trust that was made with these options, nil when there is none.
func findTrust(ctx context.Context, client *gophercloud.ServiceClient, options trusts.CreateOpts) (*trusts.Trust, error) {
	pages, err := trusts.List(client, trusts.ListOpts{TrustorUserID: options.TrustorUserID}).AllPages(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for a trust: %w", err)
	}
	all, err := trusts.ExtractTrusts(pages)
	if err != nil {
		return nil, fmt.Errorf("look for a trust: %w", err)
	}
	for _, one := range all {
		if one.TrusteeUserID == options.TrusteeUserID && one.ProjectID == options.ProjectID && one.ExpiresAt.Equal(*options.ExpiresAt) {
			return &one, nil
		}
	}
	return nil, nil
}
