package api

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/access"
	"github.com/burano/burano/orchestrator/store"
)

// Access lets users into clusters, and machines that are no servers of the cloud become nodes (access.Clusters). The caller's rights are checked before.
type Access interface {
	Kubeconfig(ctx context.Context, environmentID, objectID string, person access.Person) ([]byte, error)
	Credential(ctx context.Context, environmentID, objectID string, person access.Person) (access.Credential, error)
	// SSHKey is the public key by which a machine lets Burano in, and GiveSSHKey stores a private one for a machine; "" removes it.
	SSHKey(ctx context.Context, environmentID, objectID string) (string, error)
	GiveSSHKey(ctx context.Context, environmentID, objectID, node, private string) (string, error)
	// TakesMachines returns a fault unless machines may join the cluster, and Join describes how a machine joins.
	TakesMachines(ctx context.Context, environmentID, objectID string) error
	Join(ctx context.Context, environmentID, objectID string, machine store.Machine) (access.Joining, error)
}

// accessHandlers give access to clusters.
type accessHandlers struct {
	orchestrator *orchestrator.Service
	access       Access
	limits       Limits
}

func (h accessHandlers) register(v1 *echo.Group) {
	const cluster = "/environments/:environment/clusters/:cluster"
	v1.GET(cluster+"/kubeconfig", h.kubeconfig)
	v1.GET(cluster+"/credential", h.credential)
	v1.GET(cluster+"/ssh-key", h.showKey)
	v1.PUT(cluster+"/ssh-keys/:node", h.giveKey, readBody(h.limits.Values))
	v1.DELETE(cluster+"/ssh-keys/:node", h.takeKey)
}

// The rules for the groups.
const (
	ruleAdmins  = "get_kubeconfig"
	ruleEditors = "get_editor_kubeconfig"
	ruleReaders = "get_reader_kubeconfig"
)

// ruleOf is the rule for a group of Kubernetes: a caller with all rights may have any group.
func ruleOf(group string) string {
	switch group {
	case access.GroupReaders:
		return ruleReaders
	case access.GroupEditors:
		return ruleEditors
	}
	return ruleAdmins
}

// groupOf is the group with the most rights that a caller may have.
func groupOf(caller identity.Caller) string {
	for _, group := range []string{access.GroupAdmins, access.GroupEditors} {
		if caller.May(ruleOf(group)) {
			return group
		}
	}
	return access.GroupReaders
}

const (
	shortestAccess = 10 * time.Minute
	longestAccess  = 24 * time.Hour
	// credentialLife is the lifetime of a certificate that the plugin fetches each time.
	credentialLife = time.Hour
)

var (
	groupName     = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9_.:@/]{0,62}$`)
	namespaceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
)

// userOf is the Kubernetes name of a user of Keystone. The prefix separates them from the cluster's own.
func userOf(caller identity.Caller) string {
	name := caller.UserName
	if caller.UserDomainName != "" {
		name += "@" + caller.UserDomainName
	}
	return "keystone:" + name
}

// reach finds the cluster that the path names, for its caller.
func (h accessHandlers) reach(c echo.Context) (ctx context.Context, caller identity.Caller, environmentID, clusterID string, err error) {
	environmentID, clusterID = c.Param("environment"), c.Param("cluster")
	ctx, caller = calling(c)
	if err := h.orchestrator.Environments().MayReach(ctx, caller, environmentID, clusterID); err != nil {
		return ctx, caller, "", "", err
	}
	if h.access == nil {
		return ctx, caller, "", "", fault.New(fault.NotFound, "This Burano gives no access to clusters")
	}
	return ctx, caller, environmentID, clusterID, nil
}

func (h accessHandlers) kubeconfig(c echo.Context) error {
	ctx, caller, environmentID, clusterID, err := h.reach(c)
	if err != nil {
		return err
	}
	person, err := personOf(c, caller)
	if err != nil {
		return err
	}
	if c.QueryParam("sign_in") == signInKeystone {
		person.User = "keystone"
		person.Command = []string{"burano", "cluster", "token", environmentID, clusterID}
		person.Hint = "This kubeconfig signs in by Keystone: it needs the program burano, and OS_* variables or clouds.yaml."
	}
	text, err := h.access.Kubeconfig(ctx, environmentID, clusterID, person)
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, "application/yaml", text)
}

// signInKeystone selects a kubeconfig without a certificate, and signInCertificate one with it.
const (
	signInKeystone    = "keystone"
	signInCertificate = "certificate"
)

// personOf reads the person of a kubeconfig from a call, and checks that the caller may have that person's rights.
func personOf(c echo.Context, caller identity.Caller) (access.Person, error) {
	query := c.QueryParams()
	person := access.Person{Groups: query["group"], Namespace: query.Get("namespace")}
	if person.Namespace != "" && !namespaceName.MatchString(person.Namespace) {
		return person, fault.New(fault.Invalid, "%q is no name of a namespace: use lower-case letters, digits and dashes, at most 63", person.Namespace)
	}
	if text := query.Get("lifetime"); text != "" {
		life, err := lifetimeOf(text)
		if err != nil {
			return person, err
		}
		person.Lifetime = life
	}
	switch way := query.Get("sign_in"); way {
	case "", signInCertificate:
	case signInKeystone:
		if len(person.Groups) > 0 || person.Lifetime > 0 {
			return person, fault.New(fault.Invalid, "With sign_in=%s neither group nor lifetime is chosen: the roles of whoever signs in say which rights they have, and a certificate is fetched each time", signInKeystone)
		}
		return person, nil
	default:
		return person, fault.New(fault.Invalid, "sign_in is %q: it is %s or %s", way, signInCertificate, signInKeystone)
	}
	chosen := len(person.Groups) > 0
	if !chosen {
		person.Groups = []string{groupOf(caller)}
	}
	for _, group := range person.Groups {
		switch {
		case !groupName.MatchString(group):
			return person, fault.New(fault.Invalid, "%q is no name of a group: use letters, digits and any of - _ . : @ /, at most 63", group)
		case strings.HasPrefix(group, "system:"):
			return person, fault.New(fault.Invalid, "The group %s is Kubernetes' own, whose rights nobody could take away again: %s has all rights", group, access.GroupAdmins)
		case !caller.May(ruleOf(group)):
			return person, fault.New(fault.Forbidden, "The policy does not let you have a kubeconfig of the group %s (rule %s); you may have one of %s", group, ruleOf(group), groupOf(caller))
		}
	}
	person.User = userOf(caller)
	if !chosen && person.Groups[0] == access.GroupAdmins {
		person.User = access.Admin().User
	}
	return person, nil
}

// lifetimeOf reads a time in seconds, or as 8h30m.
func lifetimeOf(text string) (time.Duration, error) {
	life, err := time.ParseDuration(text)
	if seconds, plain := strconv.Atoi(text); plain == nil {
		life, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || life < shortestAccess || life > longestAccess {
		return 0, fault.New(fault.Invalid, "The lifetime is %q: write seconds, or such as 8h, from %s to %s. A certificate cannot be taken back, so for longer use sign_in=%s, or a "+
			"service account of the cluster", text, "10m", "24h", signInKeystone)
	}
	return life, nil
}

// credential returns a certificate for a caller, with the rights of their roles in Keystone, for the exec plugin.
func (h accessHandlers) credential(c echo.Context) error {
	ctx, caller, environmentID, clusterID, err := h.reach(c)
	if err != nil {
		return err
	}
	person := withRoles(caller)
	person.Lifetime = credentialLife
	if !caller.Expires.IsZero() {
		person.Lifetime = min(person.Lifetime, max(time.Until(caller.Expires), time.Minute))
	}
	made, err := h.access.Credential(ctx, environmentID, clusterID, person)
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusOK, made)
}

// withRoles is a caller with the rights of their roles in Keystone.
func withRoles(caller identity.Caller) access.Person {
	person := access.Person{User: userOf(caller), Groups: []string{groupOf(caller)}}
	if caller.ProjectID != "" {
		person.Groups = append(person.Groups, "keystone:project:"+caller.ProjectID)
	}
	for _, role := range caller.Roles {
		person.Groups = append(person.Groups, "keystone:role:"+role)
	}
	return person
}

// PersonOf is a caller with a token as a user of a cluster of a project, as a kubeconfig of sign_in=keystone makes one.
func PersonOf(caller identity.Caller, projectID string) (access.Person, error) {
	switch {
	case caller.ProjectID == "":
		return access.Person{}, fault.New(fault.Unauthorized, "the token belongs to no project: use one that is scoped to the project of the cluster")
	case caller.ProjectID != projectID:
		return access.Person{}, fault.New(fault.Unauthorized, "the token belongs to another project than the cluster")
	case !caller.May(ruleReaders):
		return access.Person{}, fault.New(fault.Unauthorized, "the policy does not let the user %s use clusters (rule %s)", caller.UserName, ruleReaders)
	}
	return withRoles(caller), nil
}

// publicKey is the answer with a key.
type publicKey struct {
	PublicKey string `json:"public_key"`
}

func (h accessHandlers) showKey(c echo.Context) error {
	ctx, _, environmentID, clusterID, err := h.reach(c)
	if err != nil {
		return err
	}
	key, err := h.access.SSHKey(ctx, environmentID, clusterID)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, publicKey{key})
}

func (h accessHandlers) giveKey(c echo.Context) error {
	ctx, _, environmentID, clusterID, err := h.reach(c)
	if err != nil {
		return err
	}
	given, err := object(c)
	if err != nil {
		return err
	}
	private, _ := given["private_key"].(string)
	if strings.TrimSpace(private) == "" {
		return fault.New(fault.Invalid, `Give the private key for %s: {"private_key": "-----BEGIN OPENSSH PRIVATE KEY-----…"}`, c.Param("node"))
	}
	key, err := h.access.GiveSSHKey(ctx, environmentID, clusterID, c.Param("node"), private)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, publicKey{key})
}

func (h accessHandlers) takeKey(c echo.Context) error {
	ctx, _, environmentID, clusterID, err := h.reach(c)
	if err != nil {
		return err
	}
	if _, err := h.access.GiveSSHKey(ctx, environmentID, clusterID, c.Param("node"), ""); err != nil {
		return err
	}
	return h.showKey(c)
}
