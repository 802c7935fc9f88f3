package signin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the reviewed files")

func corp() Issuer {
	return Issuer{URL: "https://id.example.org/realms/corp", Audiences: []string{"kubernetes"}}.WithDefaults()
}

func bundle(t *testing.T) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Unix(1<<32, 0), IsCA: true}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
}

func TestAnIssuerHasDefaults(t *testing.T) {
	require.Empty(t, Check([]Issuer{corp()}))
	require.Equal(t, []string{"sub", "oidc:", "groups", "oidc:"}, []string{corp().UsernameClaim, corp().UsernamePrefix, corp().GroupsClaim, corp().GroupsPrefix})
}

// The rules are those of the API server's validation (k8s.io/apiserver/pkg/apis/apiserver/validation), and Burano's of prefixes.
func TestIssuersAreAsStrictAsTheAPIServer(t *testing.T) {
	of := func(change func(*Issuer)) []Issuer {
		one := corp()
		change(&one)
		return []Issuer{one}
	}
	for mistake, issuers := range map[string][]Issuer{
		"does not begin with https":         of(func(i *Issuer) { i.URL = "http://id.example.org" }),
		"is no URL":                         of(func(i *Issuer) { i.URL = "https://" }),
		"has a user":                        of(func(i *Issuer) { i.URL = "https://anna@id.example.org" }),
		"has a query":                       of(func(i *Issuer) { i.URL = "https://id.example.org?" }),
		"or a fragment":                     of(func(i *Issuer) { i.URL = "https://id.example.org/#" }),
		"issuer of tokens for Service":      of(func(i *Issuer) { i.URL = "https://kubernetes.default.svc.cluster.local" }),
		"audiences needs 1 to 32":           of(func(i *Issuer) { i.Audiences = nil }),
		"audiences needs 1 to 32 values":    of(func(i *Issuer) { i.Audiences = []string{"a", ""} }),
		"audiences lists a value twice":     of(func(i *Issuer) { i.Audiences = []string{"a", "b", "a"} }),
		"has no certificates in PEM":        of(func(i *Issuer) { i.Authority = "nonsense" }),
		"has a private key":                 of(func(i *Issuer) { i.Authority = bundle(t) + "-----BEGIN EC PRIVATE KEY-----" }),
		`requiredClaims has the claim ""`:   of(func(i *Issuer) { i.RequiredClaims = map[string]string{"": "x"} }),
		"are names of claims":               of(func(i *Issuer) { i.UsernameClaim = strings.Repeat("x", 2000) }),
		"is listed twice":                   {corp(), corp()},
		"issuers lists 17":                  make([]Issuer, 17),
		"could have the names of":           {corp(), {URL: "https://other.example.org", Audiences: []string{"a"}, UsernameClaim: "sub", UsernamePrefix: "oidc:x/", GroupsClaim: "g", GroupsPrefix: "other:"}},
		`usernamePrefix is "system:"`:       of(func(i *Issuer) { i.UsernamePrefix = "system:" }),
		`groupsPrefix is "system:x:"`:       of(func(i *Issuer) { i.GroupsPrefix = "system:x:" }),
		`groupsPrefix is "burano:"`:         of(func(i *Issuer) { i.GroupsPrefix = "burano:" }),
		`usernamePrefix is "keystone:bob@"`: of(func(i *Issuer) { i.UsernamePrefix = "keystone:bob@" }),
		`groupsPrefix is "sys"`:             of(func(i *Issuer) { i.GroupsPrefix = "sys" }),
		`usernamePrefix is "with space:"`:   of(func(i *Issuer) { i.UsernamePrefix = "with space:" }),
	} {
		require.ErrorContains(t, errors.Join(Check(issuers)...), mistake)
	}
	require.Empty(t, Check([]Issuer{corp(), {URL: "https://other.example.org:8443", Audiences: []string{"a", "b"}, UsernameClaim: "email", UsernamePrefix: "https://other.example.org#", GroupsClaim: "roles", GroupsPrefix: "other/",
		Authority: bundle(t), RequiredClaims: map[string]string{"tenant": ""}}}))
}

// Whatever an issuer claims, its users and groups are none of those with other sources.
func TestNoClaimNamesAReservedUserOrGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reserved := rapid.SampledFrom(Reserved()).Draw(t, "reserved")
		prefix := rapid.OneOf(rapid.Just(reserved[:rapid.IntRange(0, len(reserved)).Draw(t, "length")]), rapid.StringMatching(`[a-z:/#]{0,12}`)).Draw(t, "prefix")
		if unfitPrefix(prefix) != "" {
			return
		}
		claim := rapid.OneOf(rapid.Just(strings.TrimPrefix(reserved+"masters", prefix)), rapid.String()).Draw(t, "claim")
		require.False(t, strings.HasPrefix(prefix+claim, reserved), "%s%s", prefix, claim)
	})
}

func TestTheConfigurationIsAsReviewed(t *testing.T) {
	base := []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n")
	none, err := Configuration(base, nil)
	require.NoError(t, err)
	require.Equal(t, base, none, "a cluster without issuers has the file that it had")
	partner := Issuer{URL: "https://login.example.net", Audiences: []string{"12345", "true"}, UsernameClaim: "email", UsernamePrefix: "partner:", GroupsClaim: "roles", GroupsPrefix: "partner:",
		Authority: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", RequiredClaims: map[string]string{"tenant": "yes", "hd": "example.net"}}
	written, err := Configuration(base, []Issuer{corp(), partner})
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile("testdata/configuration.yaml", written, 0o644))
	}
	reviewed, err := os.ReadFile("testdata/configuration.yaml")
	require.NoError(t, err)
	require.Equal(t, string(reviewed), string(written))
	again, err := Configuration(base, []Issuer{corp(), partner})
	require.NoError(t, err)
	require.Equal(t, written, again, "the file does not change by itself")
}

func TestWhatChangesTheNamesOfUsers(t *testing.T) {
	one, other := corp(), corp()
	require.True(t, one.Same(other))
	other.Audiences = []string{"another"}
	require.False(t, one.Same(other))
	require.True(t, one.SameNames(other))
	other.GroupsClaim = "roles"
	require.False(t, one.SameNames(other), fmt.Sprint(other))
}
