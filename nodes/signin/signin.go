// Package signin describes how users sign in at the API server without a certificate of the cluster: with tokens of issuers of OpenID Connect.
package signin

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/client-go/util/cert"
)

// Defaults of an issuer's properties.
const (
	defaultUsernameClaim = "sub"
	defaultGroupsClaim   = "groups"
	defaultPrefix        = "oidc:"
)

// Bounds of issuers.
const (
	mostIssuers  = 16
	mostOfOne    = 32       // audiences, and required claims
	mostText     = 1024     // bytes of a URL, an audience or a claim
	mostPrefix   = 128      // bytes
	mostOfBundle = 64 << 10 // bytes of the certificates of authorities
)

// Reserved are the beginnings of names of users and groups that have other sources: Kubernetes, Burano and Keystone.
func Reserved() []string { return []string{"system:", "burano:", "keystone:"} }

// prefixText is a prefix that ends in a separator, so that a claim cannot complete a word of it.
var prefixText = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9_.:@/#]*[:#/]$`)

// Issuer is an issuer of OpenID Connect, whose tokens sign users in.
type Issuer struct {
	URL       string   `json:"url"`
	Audiences []string `json:"audiences"`
	// Authority has the certificates by which the issuer's own is verified, in PEM; "" for the authorities of the masters.
	Authority      string            `json:"authority,omitempty"`
	UsernameClaim  string            `json:"usernameClaim"`
	UsernamePrefix string            `json:"usernamePrefix"`
	GroupsClaim    string            `json:"groupsClaim"`
	GroupsPrefix   string            `json:"groupsPrefix"`
	RequiredClaims map[string]string `json:"requiredClaims,omitempty"`
}

// WithDefaults is the issuer with the defaults of the values that it lacks.
func (i Issuer) WithDefaults() Issuer {
	i.UsernameClaim, i.GroupsClaim = cmp.Or(i.UsernameClaim, defaultUsernameClaim), cmp.Or(i.GroupsClaim, defaultGroupsClaim)
	i.UsernamePrefix, i.GroupsPrefix = cmp.Or(i.UsernamePrefix, defaultPrefix), cmp.Or(i.GroupsPrefix, defaultPrefix)
	return i
}

// Same reports whether two issuers are equal in everything.
func (i Issuer) Same(other Issuer) bool {
	return i.URL == other.URL && i.Authority == other.Authority && i.SameNames(other) && slices.Equal(i.Audiences, other.Audiences) && maps.Equal(i.RequiredClaims, other.RequiredClaims)
}

// SameNames reports whether users and groups of two issuers have the same names in the cluster.
func (i Issuer) SameNames(other Issuer) bool {
	return i.UsernameClaim == other.UsernameClaim && i.UsernamePrefix == other.UsernamePrefix && i.GroupsClaim == other.GroupsClaim && i.GroupsPrefix == other.GroupsPrefix
}

// Check returns all mistakes of a cluster's issuers. It is as strict as the API server, which otherwise would not start with them.
func Check(issuers []Issuer) (mistakes []error) {
	if len(issuers) > mostIssuers {
		return []error{fmt.Errorf("issuers lists %d issuers: list at most %d", len(issuers), mostIssuers)}
	}
	for at, issuer := range issuers {
		mistaken := func(format string, arguments ...any) {
			mistakes = append(mistakes, fmt.Errorf("issuer %q: %w", shortened(issuer.URL), fmt.Errorf(format, arguments...)))
		}
		if why := unusable(issuer.URL); why != "" {
			mistaken("url %s: give the value of the claim iss of its tokens, such as https://id.example.org/realms/corp", why)
		}
		if len(issuer.Audiences) == 0 || len(issuer.Audiences) > mostOfOne || slices.ContainsFunc(issuer.Audiences, unfit) {
			mistaken("audiences needs 1 to %d values of the claim aud: list the id of the client at the issuer to which its tokens are given", mostOfOne)
		} else if len(slices.Compact(slices.Sorted(slices.Values(issuer.Audiences)))) < len(issuer.Audiences) {
			mistaken("audiences lists a value twice: list it once")
		}
		if err := checkAuthority(issuer.Authority); err != nil {
			mistaken("ca: %w", err)
		}
		if unfit(issuer.UsernameClaim) || unfit(issuer.GroupsClaim) {
			mistaken("usernameClaim and groupsClaim are names of claims, of at most %d bytes", mostText)
		}
		if len(issuer.RequiredClaims) > mostOfOne {
			mistaken("requiredClaims has %d claims: name at most %d", len(issuer.RequiredClaims), mostOfOne)
		}
		for _, claim := range slices.Sorted(maps.Keys(issuer.RequiredClaims)) {
			if unfit(claim) || len(issuer.RequiredClaims[claim]) > mostText {
				mistaken("requiredClaims has the claim %q: give a name, and the value that it must have, of at most %d bytes each", shortened(claim), mostText)
			}
		}
		for _, one := range [][2]string{{"usernamePrefix", issuer.UsernamePrefix}, {"groupsPrefix", issuer.GroupsPrefix}} {
			if why := unfitPrefix(one[1]); why != "" {
				mistaken("%s is %q, %s: take one such as corp:", one[0], shortened(one[1]), why)
			}
		}
		for _, former := range issuers[:at] {
			if former.URL == issuer.URL {
				mistaken("it is listed twice: list it once, with all its audiences")
				continue
			}
			if overlap(former.UsernamePrefix, issuer.UsernamePrefix) || overlap(former.GroupsPrefix, issuer.GroupsPrefix) {
				mistaken("its users or groups could have the names of those of issuer %s: give each a usernamePrefix and a groupsPrefix with which no other one begins", shortened(former.URL))
			}
		}
	}
	return mistakes
}

// unusable is the reason why a URL is not one of an issuer; "" for none.
func unusable(text string) string {
	at, err := url.Parse(text)
	switch {
	case err != nil || len(text) > mostText || at.Hostname() == "":
		return "is no URL"
	case at.Scheme != "https":
		return "does not begin with https://"
	case at.User != nil:
		return "has a user"
	case at.RawQuery != "" || at.ForceQuery || at.Fragment != "" || strings.HasSuffix(text, "#"):
		return "has a query or a fragment"
	case at.Hostname() == "kubernetes.default.svc" || strings.HasPrefix(at.Hostname(), "kubernetes.default.svc."):
		return "is the cluster's own issuer of tokens for ServiceAccounts"
	}
	return ""
}

// unfit is true for a text that is empty or too long.
func unfit(text string) bool { return text == "" || len(text) > mostText }

// unfitPrefix is the reason why users or groups cannot have this prefix; "" for none.
func unfitPrefix(prefix string) string {
	if len(prefix) > mostPrefix || !prefixText.MatchString(prefix) {
		return fmt.Sprintf("which is not up to %d letters, digits and signs with a colon, a slash or a # at the end", mostPrefix)
	}
	for _, reserved := range Reserved() {
		if overlap(prefix, reserved) {
			return "with which a claim could name a user or group of " + reserved
		}
	}
	return ""
}

// overlap is true if names with the one prefix can be names with the other.
func overlap(one, other string) bool {
	return strings.HasPrefix(one, other) || strings.HasPrefix(other, one)
}

func checkAuthority(pem string) error {
	switch {
	case pem == "":
		return nil
	case len(pem) > mostOfBundle:
		return fmt.Errorf("it has %d bytes: give at most %d", len(pem), mostOfBundle)
	case strings.Contains(pem, "PRIVATE KEY"):
		return fmt.Errorf("it has a private key: give certificates alone")
	}
	if _, err := cert.ParseCertsPEM([]byte(pem)); err != nil {
		return fmt.Errorf("it has no certificates in PEM: %w", err)
	}
	return nil
}

func shortened(text string) string {
	const most = 120
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// Parts of an AuthenticationConfiguration (apiserver.config.k8s.io/v1).
type (
	authenticator struct {
		Issuer   issuer   `yaml:"issuer"`
		Rules    []rule   `yaml:"claimValidationRules,omitempty"`
		Mappings mappings `yaml:"claimMappings"`
	}
	issuer struct {
		URL       string   `yaml:"url"`
		Authority string   `yaml:"certificateAuthority,omitempty"`
		Audiences []string `yaml:"audiences"`
		Policy    string   `yaml:"audienceMatchPolicy"`
	}
	rule struct {
		Claim string `yaml:"claim"`
		Value string `yaml:"requiredValue"`
	}
	mappings struct {
		Username claim `yaml:"username"`
		Groups   claim `yaml:"groups"`
	}
	claim struct {
		Claim  string `yaml:"claim"`
		Prefix string `yaml:"prefix"`
	}
)

// Configuration is the API server's AuthenticationConfiguration with these issuers. base is the part that does not change.
func Configuration(base []byte, issuers []Issuer) ([]byte, error) {
	if len(issuers) == 0 {
		return base, nil
	}
	var list []authenticator
	for _, one := range issuers {
		made := authenticator{
			Issuer:   issuer{URL: one.URL, Authority: one.Authority, Audiences: one.Audiences, Policy: "MatchAny"},
			Mappings: mappings{Username: claim{one.UsernameClaim, one.UsernamePrefix}, Groups: claim{one.GroupsClaim, one.GroupsPrefix}},
		}
		for _, name := range slices.Sorted(maps.Keys(one.RequiredClaims)) {
			made.Rules = append(made.Rules, rule{name, one.RequiredClaims[name]})
		}
		list = append(list, made)
	}
	written := bytes.NewBuffer(slices.Clone(base))
	encoder := yaml.NewEncoder(written)
	encoder.SetIndent(2)
	if err := encoder.Encode(map[string]any{"jwt": list}); err != nil {
		return nil, fmt.Errorf("write the issuers: %w", err)
	}
	return written.Bytes(), encoder.Close()
}
