package openstack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/applicationcredentials"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/roles"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/trusts"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
)

// ErrRefused is in the chain of an error when Keystone no longer accepts a trust or an application credential: it is gone, or its user is,
// or its user has lost one of its roles.
var ErrRefused = errors.New("Keystone refuses it")

// CreateTrust lets the service user act for the caller in the caller's project, with these of the caller's roles and the implied ones.
// It lasts until DeleteTrust or until expires (zero for never). The result granted has the trust's roles. The trust can be passed on,
// because Heat makes a trust of its own for each stack. Heat asks for all roles of its token, implied ones too, so the trust must name
// them.
func (s *Service) CreateTrust(ctx context.Context, caller identity.Caller, wanted []string, expires time.Time) (trustID string, granted []string, err error) {
	implied, err := s.implied.of(ctx, s.identity)
	if err != nil {
		return "", nil, err
	}
	granted = withImplied(wanted, implied, caller.Roles)
	named := make([]trusts.Role, len(granted))
	for i, role := range granted {
		named[i] = trusts.Role{Name: role}
	}
	options := trusts.CreateOpts{
		Impersonation:     true,
		AllowRedelegation: true,
		TrusteeUserID:     s.userID,
		TrustorUserID:     caller.UserID,
		ProjectID:         caller.ProjectID,
		Roles:             named,
	}
	if !expires.IsZero() {
		utc := expires.UTC()
		options.ExpiresAt = &utc
	}
	trust, err := makeTrust(ctx, s.as(caller.Token), options)
	if err != nil {
		if gophercloud.ResponseCodeIs(err, http.StatusForbidden) {
			return "", nil, fault.New(fault.Forbidden, "Keystone lets this caller make no trust for Burano, so nothing can be deployed on their behalf: "+
				"%s (%w)", remedy(caller.Credential), err)
		}
		if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
			return "", nil, fault.New(fault.Forbidden, "Keystone makes no trust for this caller, because it does not find a role that their token has, so nothing can be "+
				"deployed on their behalf. The token of a user of an identity provider may have roles that the user has not been given: an administrator "+
				"gives the roles in the project to the user, or sets authorization_ttl of the identity provider (%w)", err)
		}
		return "", nil, fmt.Errorf("make a trust for user %s in project %s: %w", caller.UserID, caller.ProjectID, err)
	}
	return trust, granted, nil
}

// withImplied adds to roles the held ones that they imply, directly or not.
func withImplied(wanted []string, implied map[string][]string, held []string) []string {
	all := slices.Clone(wanted)
	for i := 0; i < len(all); i++ {
		for _, role := range implied[all[i]] {
			if !slices.Contains(all, role) && slices.Contains(held, role) {
				all = append(all, role)
			}
		}
	}
	return all
}

// Missing returns the desired roles that are neither held nor implied by held ones.
func (s *Service) Missing(ctx context.Context, wanted, held []string) ([]string, error) {
	implied, err := s.implied.of(ctx, s.identity)
	if err != nil {
		return nil, err
	}
	return missing(wanted, implied, held), nil
}

func missing(wanted []string, implied map[string][]string, held []string) []string {
	all := withImplied(held, implied, wanted)
	return slices.DeleteFunc(slices.Clone(wanted), func(role string) bool { return slices.Contains(all, role) })
}

// implied remembers which roles Keystone takes others to imply.
type implied struct {
	mutex sync.Mutex
	roles map[string][]string
	until time.Time
}

// impliedFor is how long Keystone's word on implied roles is taken.
const impliedFor = 5 * time.Minute

// of returns by their names the roles that roles imply; none where Keystone does not reveal them: then the operator names them (trust-roles).
// Several callers may ask Keystone at once: while Keystone is away, none waits for another's answer.
func (i *implied) of(ctx context.Context, client *gophercloud.ServiceClient) (map[string][]string, error) {
	i.mutex.Lock()
	known, until := i.roles, i.until
	i.mutex.Unlock()
	if time.Now().Before(until) {
		return known, nil
	}
	rules, err := roles.ListRoleInferenceRules(ctx, client).Extract()
	if err != nil && !gophercloud.ResponseCodeIs(err, http.StatusForbidden) && !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return nil, fmt.Errorf("ask Keystone which roles imply which: %w", err)
	}
	told := map[string][]string{}
	if err == nil {
		for _, rule := range rules.RoleInferenceRuleList {
			for _, one := range rule.ImpliedRoles {
				told[rule.PriorRole.Name] = append(told[rule.PriorRole.Name], one.Name)
			}
		}
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.roles, i.until = told, time.Now().Add(impliedFor)
	return told, nil
}

// remedy describes how a caller that Keystone refuses could make a trust. Until 2026 an application credential could when it was made
// for that (https://docs.openstack.org/keystone/latest/user/application_credentials.html), since then none can
// (https://bugs.launchpad.net/keystone/+bug/2150089).
func remedy(credential *identity.Credential) string {
	const whole = "sign in with a password or by federation, or have a manager of the project let Burano work in it with a role of its own: burano project enable"
	switch {
	case credential == nil:
		return whole + ". Where that was a password's token, Keystone's policy may have a rule identity:create_trust of its own, which must name " +
			"%(target.trust.trustor_user_id)s since the security fixes of 2026: burano doctor tells"
	case credential.Restricted:
		return fmt.Sprintf("application credential %q is restricted; make one with openstack application credential create --unrestricted, or %s, which "+
			"is the only way where Keystone has the security fixes of 2026", credential.Name, whole)
	}
	return fmt.Sprintf("since the security fixes of 2026 it takes none from application credentials, not even from those made with --unrestricted "+
		"such as %q; %s", credential.Name, whole)
}

// DeleteTrust ends a trust; one that is gone already is no error.
func (s *Service) DeleteTrust(ctx context.Context, trustID string) error {
	err := s.deleteTrust(ctx, trustID)
	if err == nil {
		return nil
	}
	// Keystone answers a sign-in through a deleted trust like one with a wrong password: it does not reveal whether the trust
	// exists. The trustee, however, may look.
	if there := trusts.Get(ctx, s.identity, trustID).Err; gophercloud.ResponseCodeIs(there, http.StatusNotFound) {
		return nil
	}
	if errors.Is(err, ErrRefused) && trusts.Delete(ctx, s.identity, trustID).ExtractErr() == nil {
		return nil // some operators let administrators delete others' trusts
	}
	return err
}

func (s *Service) deleteTrust(ctx context.Context, trustID string) error {
	// Only the trustor may delete a trust, and a token of the trust impersonates them.
	provider, err := s.signIn(ctx, trustID)
	if err != nil {
		return err
	}
	client, err := openstack.NewIdentityV3(provider, s.home.endpoint)
	if err != nil {
		return fmt.Errorf("find Keystone v3 in the service catalog: %w", err)
	}
	if err := trusts.Delete(ctx, client, trustID).ExtractErr(); err != nil {
		return fmt.Errorf("delete trust %s: %w", trustID, err)
	}
	return nil
}

// HasTrust reports whether Keystone knows a trust. It goes with its user, and with its project.
func (s *Service) HasTrust(ctx context.Context, trustID string) (bool, error) {
	err := trusts.Get(ctx, s.identity, trustID).Err
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at trust %s: %w", trustID, err)
	}
	return true, nil
}

// PassedOn reports whether there is a trust that was made through this one. Heat makes one for each stack that is created through a trust,
// or changed by another user than before, and keeps it until the stack is gone or another user changes it. It ends with the trust that it
// was made through. If the trust of a stack has ended, Heat refuses every further change of it, by any user, with 500.
func (s *Service) PassedOn(ctx context.Context, trustID string) (bool, error) {
	trust, err := trusts.Get(ctx, s.identity, trustID).Extract()
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at trust %s: %w", trustID, err)
	}
	all, err := listAll(ctx, trusts.List(s.identity, trusts.ListOpts{TrustorUserID: trust.TrustorUserID}), trusts.ExtractTrusts)
	if err != nil {
		return false, fmt.Errorf("list the trusts of user %s: %w", trust.TrustorUserID, err)
	}
	return slices.ContainsFunc(all, func(other trusts.Trust) bool { return other.RedelegatedTrustID == trustID }), nil
}

// lostTrust adds the possible reason to an error of an update when Heat has given none for long.
func lostTrust(err error) error {
	var answer *outage
	if errors.As(err, &answer) && answer.status == http.StatusInternalServerError || gophercloud.ResponseCodeIs(err, http.StatusInternalServerError) {
		return fmt.Errorf("%w. Heat answers so for good when it can act no more for the user whose trust it keeps for this stack: they have left, or lost a "+
			"role in the project. Give it back for the time of one deployment by another member, or delete the environment", err)
	}
	return err
}

// Changing reports whether Heat is changing one of these stacks, which it does with a token of the request's trust. Nothing is done any
// more through a trust that Keystone refuses. names are the stacks that were noted (Project.Noting).
func (s *Service) Changing(ctx context.Context, trustID string, names []string) (bool, error) {
	if len(names) == 0 {
		return false, nil
	}
	project, err := s.Project(ctx, trustID)
	if errors.Is(err, ErrRefused) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, noted := range names {
		name, region := ofNoted(noted)
		there, err := project.In(ctx, region)
		if fault.KindOf(err) == fault.Invalid {
			continue // the region is gone, with its Heat
		}
		if err != nil {
			return false, err
		}
		if there.orchestration == nil {
			continue
		}
		found, err := there.byHeat().List(ctx, name)
		if err != nil {
			return false, fmt.Errorf("look for stack %s: %w", name, err)
		}
		if slices.ContainsFunc(found, func(one stacks.ListedStack) bool { return strings.HasSuffix(one.Status, "_IN_PROGRESS") }) {
			return true, nil
		}
	}
	return false, nil
}

// Project signs in through a trust: all calls are then the trustor's in the trust's project.
func (s *Service) Project(ctx context.Context, trustID string) (*Project, error) {
	provider, err := s.signIn(ctx, trustID)
	if err != nil {
		return nil, err
	}
	return s.signedInTo(ctx, provider)
}

func (s *Service) signIn(ctx context.Context, trustID string) (*gophercloud.ProviderClient, error) {
	options := s.options
	options.TenantID, options.TenantName = "", ""
	options.Scope = &gophercloud.AuthScope{TrustID: trustID}
	provider, err := authenticate(ctx, options, s.transport)
	if err := signedIn(err, "trust "+trustID); err != nil {
		return nil, err
	}
	renewing(provider, "trust "+trustID)
	s.addresses.note(provider)
	return provider, nil
}

// renewing makes a provider return the reason why it gets no new token any more.
func renewing(provider *gophercloud.ProviderClient, through string) {
	renew := provider.ReauthFunc
	provider.ReauthFunc = func(ctx context.Context) error {
		err := signedIn(renew(ctx), through)
		if errors.Is(err, ErrRefused) {
			return fmt.Errorf("Burano can act for the user who started this no more: they have left, lost a role in the project, or revoked it. "+
				"Another member of the project can start it again: %w", err)
		}
		return err
	}
}

// ProjectByCredential is Project by an application credential.
func (s *Service) ProjectByCredential(ctx context.Context, id, secret string) (*Project, error) {
	options := gophercloud.AuthOptions{IdentityEndpoint: s.options.IdentityEndpoint, ApplicationCredentialID: id, ApplicationCredentialSecret: secret, AllowReauth: true}
	provider, err := authenticate(ctx, options, s.transport)
	if err := signedIn(err, "application credential "+id); err != nil {
		return nil, err
	}
	renewing(provider, "application credential "+id)
	s.addresses.note(provider)
	return s.signedInTo(ctx, provider)
}

// signedInTo is the project of a provider's token.
func (s *Service) signedInTo(ctx context.Context, provider *gophercloud.ProviderClient) (*Project, error) {
	token, ok := provider.GetAuthResult().(tokens.CreateResult)
	if !ok {
		return nil, errors.New("the token from Keystone has no service catalog")
	}
	catalog, err := token.ExtractServiceCatalog()
	if err != nil {
		return nil, fmt.Errorf("read the service catalog: %w", err)
	}
	return s.atHome(ctx, provider, catalog)
}

// signedIn is the error of an attempt to sign in through something.
func signedIn(err error, through string) error {
	switch {
	case err == nil:
		return nil
	case gophercloud.ResponseCodeIs(err, http.StatusUnauthorized), gophercloud.ResponseCodeIs(err, http.StatusForbidden), gophercloud.ResponseCodeIs(err, http.StatusNotFound):
		return fmt.Errorf("sign in through %s: %w: %w", through, ErrRefused, err)
	}
	return fmt.Errorf("sign in through %s: %w", through, err)
}

// CheckCredential signs in by an application credential and returns its owner, with roles and project, and when it ends (zero for never,
// and where Keystone does not return it). If Keystone does not accept it, the error is a fault of kind Unauthorized.
func (s *Service) CheckCredential(ctx context.Context, id, secret string) (owner identity.Caller, expires time.Time, err error) {
	if err := identified("application credential", id); err != nil {
		return identity.Caller{}, time.Time{}, err
	}
	token, err := s.SignIn(ctx, identity.Proof{CredentialID: id, Secret: secret})
	if err != nil {
		return identity.Caller{}, time.Time{}, err
	}
	defer func() { err = errors.Join(err, s.Revoke(context.WithoutCancel(ctx), token)) }()
	if owner, err = s.Validate(ctx, token); err != nil {
		return identity.Caller{}, time.Time{}, err
	}
	if shown, err := applicationcredentials.Get(ctx, s.as(token), owner.UserID, id).Extract(); err == nil {
		expires = shown.ExpiresAt
	}
	return owner, expires, nil
}
