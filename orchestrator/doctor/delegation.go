package doctor

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/applicationcredentials"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
)

// This file is about Keystone's security fixes of 2026 (OSSA-2026-015, https://bugs.launchpad.net/keystone/+bug/2150089).

// createTrustRule explains why Keystone may refuse all trusts: the rule has other targets since 2026 (https://bugs.launchpad.net/keystone/+bug/2148398).
const createTrustRule = "where Keystone's policy file has a rule identity:create_trust of its own, it must name %(target.trust.trustor_user_id)s since the fixes of 2026, in place of " +
	"%(trust.trustor_user_id)s, or Keystone refuses everybody: change it, or take it out. Projects can do without users' trusts: burano project enable"

const (
	noEscalation = "[security_compliance] allow_insecure_application_credential_trust_escalation"
	enableRoles  = "robots that sign in with application credentials deploy in projects that let Burano work with a role of its own (burano project enable)"
)

// delegation tries whether Keystone takes a trust from an application credential, which it deletes again. Since 2026 it does not.
func (e *examination) delegation(ctx context.Context) bool {
	const check = "application credentials"
	roles := e.trusted()
	if len(roles) == 0 {
		roles = e.caller.Roles
	}
	made, err := e.credentialMakesTrust(ctx, roles)
	switch {
	case err != nil:
		e.add(check, Warning, "see what Keystone says in its log", "whether Keystone takes trusts from them cannot be tried: %s", err)
	case made:
		e.add(check, Warning, "update Keystone, and have "+noEscalation+" off; "+enableRoles, "Keystone takes trusts from them: it is without the security fixes of 2026, or "+noEscalation+" is on. "+
			"Whoever has one can have all roles of its user")
	default:
		e.add(check, OK, "", "they make no trusts, as since the security fixes of 2026: %s", enableRoles)
	}
	return true
}

// credentialMakesTrust reports whether Keystone makes a trust for an unrestricted application credential of the caller.
func (e *examination) credentialMakesTrust(ctx context.Context, roles []string) (makes bool, err error) {
	keystone, err := openstack.NewIdentityV3(e.provider, e.endpoint)
	if err != nil {
		return false, err
	}
	wanted := make([]applicationcredentials.Role, len(roles))
	for i, role := range roles {
		wanted[i] = applicationcredentials.Role{Name: role}
	}
	until := time.Now().Add(trustTime).UTC()
	credential, err := applicationcredentials.Create(ctx, keystone, e.caller.UserID, applicationcredentials.CreateOpts{Name: "burano-doctor-" + rand.Text(), Unrestricted: true, Roles: wanted,
		ExpiresAt: &until}).Extract()
	if err != nil {
		return false, fmt.Errorf("make one: %w", err)
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		if removed := applicationcredentials.Delete(ending, keystone, e.caller.UserID, credential.ID).ExtractErr(); removed != nil && err == nil {
			err = fmt.Errorf("delete %s, which ends by itself in %s: %w", credential.Name, trustTime, removed)
		}
	}()
	token, err := e.service.SignIn(ctx, identity.Proof{CredentialID: credential.ID, Secret: credential.Secret})
	if err != nil {
		return false, err
	}
	robot, err := e.service.Validate(ctx, token)
	if err != nil {
		return false, err
	}
	trust, _, err := e.service.CreateTrust(ctx, robot, roles, until)
	if fault.KindOf(err) == fault.Forbidden || gophercloud.ResponseCodeIs(err, 401) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return true, e.service.DeleteTrust(ending, trust)
}
