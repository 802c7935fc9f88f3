package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/nodes/pki"
)

// Users of etcd. A user holds a certificate of the etcd authority with the user's common name.
const (
	Root      = "root" // Burano itself: members, users, everything
	APIServer = "apiserver"
	Calico    = "calico"
	Flannel   = "flannel"
	Publisher = "publisher"
	Gateway   = "gateway"
)

// Permission is a user's right to the keys that begin with Prefix, or to the one key Key.
type Permission struct {
	Prefix string
	Key    string
	Write  bool // read is always included
}

// Permissions are the rights of each user. All other access is refused.
func Permissions() map[string][]Permission {
	return map[string][]Permission{
		// In the second key, API servers agree on the part of the history that they do not need. Only root may compact it: members do it themselves.
		APIServer: {{Prefix: "/registry/", Write: true}, {Key: "compact_rev_key", Write: true}},
		Calico:    {{Prefix: "/calico/", Write: true}},
		Flannel:   {{Prefix: "/coreos.com/network/", Write: true}},
		Publisher: {{Prefix: route.Prefix, Write: true}},
		Gateway:   {{Prefix: route.Prefix}, {Prefix: route.KeysPrefix, Write: true}},
	}
}

// ClientRequest is the certificate of a user.
func ClientRequest(user string) pki.Request {
	return pki.Request{CommonName: user, Usage: pki.Client}
}

// Authorize makes the users and their permissions as Permissions lists them and switches authorization on. Finished work is recognised, so it may be
// repeated. client's user is Root.
func Authorize(ctx context.Context, client *clientv3.Client) error {
	users := Permissions()
	users[Root] = nil
	for user, permissions := range users {
		err := patiently(ctx, "make etcd user "+user, func(ctx context.Context) error {
			return ensureUser(ctx, client, user, permissions)
		})
		if err != nil {
			return err
		}
	}
	return patiently(ctx, "switch etcd authorization on", func(ctx context.Context) error {
		status, err := client.AuthStatus(ctx)
		if err != nil || status.Enabled {
			return err
		}
		_, err = client.AuthEnable(ctx)
		return err
	})
}

// patiently repeats a write until it succeeds, since members come and go meanwhile. doing describes the work in the error.
func patiently(ctx context.Context, doing string, change func(ctx context.Context) error) error {
	err := retry(ctx, changePatience, learnerPause, func(ctx context.Context) (bool, error) {
		err := change(ctx)
		return isLearner(err) || transient(err), err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// learnerPause is between two tries at a member that may not have heard yet that it was promoted.
const learnerPause = 50 * time.Millisecond

// isLearner is true if a member refused a request because it does not know yet that it votes. The client has no error of its own for that.
func isLearner(err error) bool {
	return err != nil && rpctypes.Error(err).Error() == rpctypes.ErrorDesc(rpctypes.ErrGRPCNotSupportedForLearner)
}

// ensureUser looks before it writes: a refused write of etcd is a warning in every member's journal.
func ensureUser(ctx context.Context, client *clientv3.Client, name string, permissions []Permission) error {
	role, err := client.RoleGet(ctx, name)
	if errors.Is(err, rpctypes.ErrRoleNotFound) {
		role = &clientv3.AuthRoleGetResponse{}
		_, err = client.RoleAdd(ctx, name)
	}
	if err != nil {
		return err
	}
	for _, permission := range permissions {
		key, end, kind := permission.Key, "", clientv3.PermissionType(clientv3.PermRead)
		if permission.Prefix != "" {
			key, end = permission.Prefix, clientv3.GetPrefixRangeEnd(permission.Prefix)
		}
		if permission.Write {
			kind = clientv3.PermissionType(clientv3.PermReadWrite)
		}
		if granted(role.Perm, key, end, kind) {
			continue
		}
		if _, err := client.RoleGrantPermission(ctx, name, key, end, kind); err != nil {
			return err
		}
	}
	user, err := client.UserGet(ctx, name)
	if errors.Is(err, rpctypes.ErrUserNotFound) {
		user = &clientv3.AuthUserGetResponse{}
		_, err = client.UserAddWithOptions(ctx, name, "", &clientv3.UserAddOptions{NoPassword: true})
	}
	if err != nil || slices.Contains(user.Roles, name) {
		return err
	}
	_, err = client.UserGrantRole(ctx, name, name)
	return err
}

// PutOnce writes the settings whose keys etcd does not hold yet. client's user is Root.
func PutOnce(ctx context.Context, client *clientv3.Client, settings map[string]string) error {
	for key, value := range settings {
		absent := clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
		err := patiently(ctx, "write "+key+" into etcd", func(ctx context.Context) error {
			_, err := client.Txn(ctx).If(absent).Then(clientv3.OpPut(key, value)).Commit()
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Fold replaces the keys with a prefix by the result of wanted, which gets the present ones. It returns the revision of their last change, as far as the
// present keys show it. client's user is Root.
func Fold(ctx context.Context, client *clientv3.Client, prefix string, wanted func(held map[string]string) (map[string]string, error)) (revision int64, err error) {
	return revision, patiently(ctx, "write "+prefix+" into etcd", func(ctx context.Context) error {
		response, err := client.Get(ctx, prefix, clientv3.WithPrefix())
		if err != nil {
			return err
		}
		held := make(map[string]string, len(response.Kvs))
		revision = 0
		for _, pair := range response.Kvs {
			held[string(pair.Key)] = string(pair.Value)
			revision = max(revision, pair.ModRevision)
		}
		keep, err := wanted(held)
		if err != nil {
			return err
		}
		var changes []clientv3.Op
		for key, value := range keep {
			if is, there := held[key]; !there || is != value {
				changes = append(changes, clientv3.OpPut(key, value))
			}
		}
		for key := range held {
			if _, stays := keep[key]; !stays {
				changes = append(changes, clientv3.OpDelete(key))
			}
		}
		if len(changes) == 0 {
			return nil
		}
		done, err := client.Txn(ctx).Then(changes...).Commit()
		if err != nil {
			return err
		}
		revision = done.Header.Revision
		return nil
	})
}

func granted(held []*authpb.Permission, key, end string, kind clientv3.PermissionType) bool {
	for _, permission := range held {
		if string(permission.Key) == key && string(permission.RangeEnd) == end && permission.PermType == authpb.Permission_Type(kind) {
			return true
		}
	}
	return false
}
