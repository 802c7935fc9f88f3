package cloud

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/applicationcredentials"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/trusts"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	driver "github.com/burano/burano/orchestrator/openstack"
)

func aTokenTellsWhoseItIs(t *testing.T, c *cloud) {
	service := c.service(t)
	demo := c.as(t, "demo").caller(t, service)
	require.NotEmpty(t, demo.UserID)
	require.NotEmpty(t, demo.ProjectID)
	require.Equal(t, "demo", demo.ProjectName)
	require.Contains(t, demo.Roles, "member")
	require.False(t, demo.Admin)

	other := c.as(t, "other").caller(t, service)
	require.NotEqual(t, demo.UserID, other.UserID)
	require.NotEqual(t, demo.ProjectID, other.ProjectID)
	require.True(t, c.as(t, "admin").caller(t, service).Admin)
}

func aBadTokenIsRefused(t *testing.T, c *cloud) {
	service := c.service(t)
	refused := func(token, why string) {
		_, err := service.Validate(t.Context(), token)
		require.Errorf(t, err, why)
		require.Equalf(t, fault.Unauthorized, fault.KindOf(err), "%s: %v", why, err)
	}
	refused("", "no token at all")
	refused("nonsense", "no token of any Keystone")
	refused("gAAAAABnU0j3Zr0S2cC5bq9V3q1o0b7l5mY4d8xJr6n1H2k3T4w5X6y7Z8a9B0c1D2e3F4g5H6i7J8k9L0m1N2o3P4q5R6s7T8u9V0w1X2y3Z4a5B6c7D8e9F0g1",
		"a token that another Keystone signed")

	demo := c.as(t, "demo")
	require.NoError(t, tokens.Revoke(t.Context(), demo.keystone(t), demo.provider.Token()).Err)
	refused(demo.provider.Token(), "a token that was given back")

	nowhere, err := service.Validate(t.Context(), tokenOfNoProject(t, c))
	require.NoError(t, err)
	require.Empty(t, nowhere.ProjectID)
	require.NotEmpty(t, nowhere.UserID)
}

func aUserSignsInAndChoosesAProject(t *testing.T, c *cloud) {
	service := c.service(t)
	demo := c.as(t, "demo").caller(t, service)
	options, _ := c.options(t, "demo")
	proof := identity.Proof{User: options.Username, Domain: "Default", Password: options.Password}
	base, err := service.SignIn(t.Context(), proof)
	require.NoError(t, err)
	mine, err := service.Projects(t.Context(), base)
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(mine, func(one identity.Project) bool { return one.ID == demo.ProjectID && one.Name == "demo" }), "%v", mine)
	token, err := service.Scope(t.Context(), base, demo.ProjectID)
	require.NoError(t, err)
	seen, err := service.Validate(t.Context(), token)
	require.NoError(t, err)
	require.Equal(t, demo.UserID, seen.UserID)
	require.Equal(t, "demo", seen.UserName)
	require.Equal(t, demo.ProjectID, seen.ProjectID)
	require.Nil(t, seen.Credential)
	_, err = service.Scope(t.Context(), base, c.as(t, "other").caller(t, service).ProjectID)
	require.Equal(t, fault.Forbidden, fault.KindOf(err), err)
	require.NoError(t, service.Revoke(t.Context(), token))
	require.NoError(t, service.Revoke(t.Context(), token), "it is gone already")
	_, err = service.Validate(t.Context(), token)
	require.Equal(t, fault.Unauthorized, fault.KindOf(err), err)
	_, err = service.Validate(t.Context(), base)
	require.NoError(t, err, "the one that it was made of stays")
	require.NoError(t, service.Revoke(t.Context(), base))
	_, err = service.Projects(t.Context(), base)
	require.Equal(t, fault.Unauthorized, fault.KindOf(err), err)

	proof.Password = "not " + options.Password
	_, err = service.SignIn(t.Context(), proof)
	require.Equal(t, fault.Unauthorized, fault.KindOf(err), err)
	require.NoError(t, service.Answers(t.Context()), "the service user's own token has nothing to do with it")

	keystone := c.as(t, "demo").keystone(t)
	made, err := applicationcredentials.Create(t.Context(), keystone, demo.UserID, applicationcredentials.CreateOpts{Name: "burano-test-signin"}).Extract()
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, applicationcredentials.Delete(context.Background(), keystone, demo.UserID, made.ID).ExtractErr())
	})
	for _, proof := range []identity.Proof{{CredentialID: made.ID, Secret: made.Secret},
		{CredentialName: made.Name, User: options.Username, Domain: "Default", Secret: made.Secret}} {
		token, err = service.SignIn(t.Context(), proof)
		require.NoError(t, err)
		seen, err = service.Validate(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, &identity.Credential{ID: made.ID, Name: made.Name, Restricted: true}, seen.Credential)
		require.Equal(t, demo.ProjectID, seen.ProjectID)
		require.NoError(t, service.Revoke(t.Context(), token))
		proof.Secret = "not " + proof.Secret
		_, err = service.SignIn(t.Context(), proof)
		require.Equal(t, fault.Unauthorized, fault.KindOf(err), err)
	}
}

// tokenOfNoProject asks for a token of no scope, also for a user with a default project; gophercloud cannot.
func tokenOfNoProject(t *testing.T, c *cloud) string {
	options, _ := c.options(t, "demo")
	keystone := c.as(t, "demo").keystone(t)
	response, err := keystone.Post(t.Context(), keystone.ServiceURL("auth", "tokens"), map[string]any{"auth": map[string]any{
		"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{"user": map[string]any{
			"name": options.Username, "password": options.Password, "domain": map[string]any{"name": "Default"},
		}}},
		"scope": "unscoped",
	}}, nil, &gophercloud.RequestOpts{OkCodes: []int{http.StatusCreated}})
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	token := response.Header.Get("X-Subject-Token")
	require.NotEmpty(t, token)
	return token
}

func aTrustActsUntilItIsDeleted(t *testing.T, c *cloud) {
	service := c.service(t)
	demo := c.as(t, "demo")
	caller := demo.caller(t, service)
	trust, _, err := service.CreateTrust(t.Context(), caller, caller.Roles, time.Time{})
	require.NoError(t, err)
	project, err := service.Project(t.Context(), trust)
	require.NoError(t, err)
	_, err = project.ExternalNetwork(t.Context(), "")
	require.NoError(t, err)
	shown, err := trusts.Get(t.Context(), demo.keystone(t), trust).Extract()
	require.NoError(t, err)
	require.Equal(t, caller.UserID, shown.TrustorUserID)
	require.Equal(t, caller.ProjectID, shown.ProjectID)

	again := c.service(t)
	_, err = again.Project(t.Context(), trust)
	require.NoError(t, err, "a trust is used by a Burano that did not make it")

	require.NoError(t, service.DeleteTrust(t.Context(), trust))
	require.NoError(t, service.DeleteTrust(t.Context(), trust), "a second time")
	require.NoError(t, again.DeleteTrust(t.Context(), trust), "by one that still has it open")
	require.NoError(t, c.service(t).DeleteTrust(t.Context(), trust), "by one that never had it open")
	_, err = service.Project(t.Context(), trust)
	require.Error(t, err)
	require.Contains(t, err.Error(), trust)
}

func aTrustDeletedByItsTrustorIsNoError(t *testing.T, c *cloud) {
	service := c.service(t)
	demo := c.as(t, "demo")
	trust, _, err := service.CreateTrust(t.Context(), demo.caller(t, service), []string{"member"}, time.Time{})
	require.NoError(t, err)
	_, err = service.Project(t.Context(), trust)
	require.NoError(t, err)
	require.NoError(t, trusts.Delete(t.Context(), demo.keystone(t), trust).ExtractErr())
	require.NoError(t, service.DeleteTrust(t.Context(), trust))
	_, err = service.Project(t.Context(), trust)
	require.Error(t, err, "it is not remembered")
}

// anApplicationCredentialMakesNoTrust: Keystone refuses it since 2026 also to unrestricted ones
// (https://bugs.launchpad.net/keystone/+bug/2150089).
func anApplicationCredentialMakesNoTrust(t *testing.T, c *cloud) {
	service := c.service(t)
	demo := c.as(t, "demo")
	caller := demo.caller(t, service)
	until := time.Now().Add(10 * time.Minute).UTC() // Keystone uses another format for the end of a token that ends with its credential
	for _, unrestricted := range []bool{true, false} {
		made, err := applicationcredentials.Create(t.Context(), demo.keystone(t), caller.UserID, applicationcredentials.CreateOpts{
			Name: "burano-test-" + strconv.FormatBool(unrestricted), Unrestricted: unrestricted, ExpiresAt: &until,
			Roles: []applicationcredentials.Role{{Name: "member"}},
		}).Extract()
		require.NoError(t, err)
		t.Cleanup(func() {
			require.NoError(t, applicationcredentials.Delete(context.Background(), demo.keystone(t), caller.UserID, made.ID).ExtractErr())
		})
		options, endpoint := c.options(t, "demo")
		signing := gophercloud.AuthOptions{
			IdentityEndpoint: options.IdentityEndpoint, ApplicationCredentialID: made.ID, ApplicationCredentialSecret: made.Secret,
		}
		credential := signIn(t, signing, endpoint)
		through := credential.caller(t, service)
		require.Equal(t, caller.ProjectID, through.ProjectID)
		require.Contains(t, through.Roles, "member")
		require.NotContains(t, through.Roles, "heat_stack_owner", "it has the roles that it was made with")
		_, err = driver.NewService(t.Context(), signing, endpoint, nil)
		require.ErrorContains(t, err, "no password", "nobody is a trustee by it either")
		_, _, err = service.CreateTrust(t.Context(), through, []string{"member"}, time.Time{})
		require.Equal(t, fault.Forbidden, fault.KindOf(err), err)
		require.ErrorContains(t, err, made.Name)
		require.ErrorContains(t, err, "--unrestricted")
		require.ErrorContains(t, err, "sign in with a password", "it says what to do")
	}
}

// workOutlivesItsTokens: the trust's token and the service user's end while a stack is changed again and again.
func workOutlivesItsTokens(t *testing.T, c *cloud) {
	service := c.serviceAs(t, c.brief)
	demo := c.as(t, "demo")
	project := demo.project(t, service)
	name := begin(t, project, "tokens")
	younger := c.as(t, c.brief).provider.Token() // ends after the tokens of service and project
	lasts := func() bool {
		_, err := c.service(t).Validate(t.Context(), younger)
		if err != nil {
			require.Equal(t, fault.Unauthorized, fault.KindOf(err), err)
		}
		return err == nil
	}
	require.True(t, lasts())
	changes := 0
	eventually(t, "a token has ended", func() bool {
		template := plan(t, project)
		template.addSecurityGroup("group", "burano-test", []groupRule{{Protocol: "tcp", Ports: [2]int{1000 + changes, 1000 + changes}, From: everyone}})
		_, err := project.ApplyStack(t.Context(), name, template.content(t))
		require.NoError(t, err)
		changes++
		return !lasts()
	})
	_, err := project.ApplyStack(t.Context(), name, plan(t, project).content(t))
	require.NoError(t, err)
	t.Logf("%d changes", changes+1)
	require.Equal(t, demo.caller(t, c.service(t)).UserID, demo.caller(t, service).UserID, "the service user signs in again too")
}
