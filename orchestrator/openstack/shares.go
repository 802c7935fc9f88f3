package openstack

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/sharedfilesystems/v2/messages"
	"github.com/gophercloud/gophercloud/v2/openstack/sharedfilesystems/v2/sharenetworks"
	"github.com/gophercloud/gophercloud/v2/openstack/sharedfilesystems/v2/shares"

	"github.com/burano/burano/internal/fault"
)

// The statuses of shares that are distinguished here: https://docs.openstack.org/api-ref/shared-file-system/#shares. Several statuses are errors, which begin
// with ShareError.
const (
	ShareAvailable = "available"
	ShareDeleting  = "deleting"
	ShareError     = "error"
)

// The states of access to a share that are distinguished here.
const (
	AccessActive = "active"
	AccessError  = "error"
)

// The versions of Manila's API: shares, with export locations that are preferred; and messages, with the reasons of failures.
const (
	manilaShares   = "2.14"
	manilaMessages = "2.37"
)

// Share is a share of Manila.
type Share struct {
	ID, Name, Status string
	GiB              int
	Metadata         map[string]string
	Made             time.Time
}

// NewShare is the request for a share of NFS. Type and Zone are "" for the cloud's own choice; Network is the name or id of a share network, "" for none.
type NewShare struct {
	Name, Description, Type, Zone, Network string
	GiB                                    int
	Metadata                               map[string]string
}

// Access is a right of an address to read and write a share.
type Access struct {
	ID, Address, State string
}

// SharedFileSystems are a project's shares. A refusal of Manila is a fault that repeats its words: TooLarge for a full quota, which is named.
type SharedFileSystems struct {
	manila *gophercloud.ServiceClient
}

// SharedFileSystems reaches the project's shares. A catalog without Manila is a fault (NotFound).
func (p *Project) SharedFileSystems() (*SharedFileSystems, error) {
	manila, err := openstack.NewSharedFileSystemV2(p.provider, p.endpoint)
	if isMissing(err) {
		return nil, fault.New(fault.NotFound, "the cloud has no Manila in its service catalog: %w", err)
	}
	if err != nil {
		return nil, err
	}
	manila.Microversion = manilaShares
	return &SharedFileSystems{manila}, nil
}

// Tagged are the shares with this metadata and, where it is not "", this name, the oldest first.
func (s *SharedFileSystems) Tagged(ctx context.Context, name string, metadata map[string]string) ([]Share, error) {
	found, err := listAll(ctx, shares.ListDetail(s.manila, shares.ListOpts{Name: name, Metadata: metadata}), shares.ExtractShares)
	if err != nil {
		return nil, refusal(ctx, "Manila", "list shares", err)
	}
	return tagged(found, shareOf, name, metadata, func(one Share) label { return label{one.ID, one.Name, one.Made, one.Metadata} }), nil
}

func shareOf(one shares.Share) Share {
	return Share{ID: one.ID, Name: one.Name, Status: one.Status, GiB: one.Size, Metadata: maps.Clone(one.Metadata), Made: one.CreatedAt}
}

// Share is the one with this id; NotFound when there is none.
func (s *SharedFileSystems) Share(ctx context.Context, id string) (Share, error) {
	if err := identified("share", id); err != nil {
		return Share{}, err
	}
	found, err := shares.Get(ctx, s.manila, id).Extract()
	if err != nil {
		return Share{}, refusal(ctx, "Manila", "look at share "+id, err)
	}
	return shareOf(*found), nil
}

// Create asks for a share, which is there when it is available. After an error that is no fault there may be one all the same.
func (s *SharedFileSystems) Create(ctx context.Context, wanted NewShare) (Share, error) {
	network, err := s.network(ctx, wanted.Network)
	if err != nil {
		return Share{}, err
	}
	made, err := shares.Create(ctx, s.manila, shares.CreateOpts{ShareProto: "NFS", Name: wanted.Name, Description: wanted.Description, Size: wanted.GiB, ShareType: wanted.Type,
		AvailabilityZone: wanted.Zone, ShareNetworkID: network, Metadata: wanted.Metadata}).Extract()
	if err != nil {
		return Share{}, refusal(ctx, "Manila", fmt.Sprintf("make share %s of %d GiB", wanted.Name, wanted.GiB), err)
	}
	return shareOf(*made), nil
}

// network is the id of a share network of this name or id.
func (s *SharedFileSystems) network(ctx context.Context, wanted string) (string, error) {
	if wanted == "" {
		return "", nil
	}
	found, err := listAll(ctx, sharenetworks.ListDetail(s.manila, sharenetworks.ListOpts{}), sharenetworks.ExtractShareNetworks)
	if err != nil {
		return "", refusal(ctx, "Manila", "list share networks", err)
	}
	var ids []string
	for _, one := range found {
		if one.ID == wanted {
			return wanted, nil
		}
		if one.Name == wanted {
			ids = append(ids, one.ID)
		}
	}
	switch len(ids) {
	case 0:
		return "", fault.New(fault.Invalid, "Manila has no share network %s: make it (openstack share network create), or name another one", wanted)
	case 1:
		return ids[0], nil
	}
	return "", fault.New(fault.Invalid, "Manila has %d share networks called %s: name one by its id", len(ids), wanted)
}

// Delete begins the deletion of a share, even if addresses have access to it. A missing one is no error.
func (s *SharedFileSystems) Delete(ctx context.Context, id string) error {
	if err := identified("share", id); err != nil {
		return err
	}
	return withoutMissing(ctx, "delete share "+id, shares.Delete(ctx, s.manila, id).ExtractErr())
}

func withoutMissing(ctx context.Context, doing string, err error) error {
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return nil
	}
	return refusal(ctx, "Manila", doing, err)
}

// Grow asks for a share to have this size, also while it is mounted.
func (s *SharedFileSystems) Grow(ctx context.Context, id string, gib int) error {
	if err := identified("share", id); err != nil {
		return err
	}
	err := shares.Extend(ctx, s.manila, id, shares.ExtendOpts{NewSize: gib}).ExtractErr()
	refused := refusal(ctx, "Manila", fmt.Sprintf("have share %s grow to %d GiB", id, gib), err)
	if fault.KindOf(refused) == fault.Forbidden && strings.Contains(refused.Error(), "quota") { // so Manila answers here where a quota is full
		return fault.New(fault.TooLarge, "%w", refused)
	}
	return refused
}

// Export is where a share is mounted from, such as 10.0.0.5:/shares/share-1; "" where Manila has no address yet.
func (s *SharedFileSystems) Export(ctx context.Context, id string) (string, error) {
	if err := identified("share", id); err != nil {
		return "", err
	}
	found, err := shares.ListExportLocations(ctx, s.manila, id).Extract()
	if err != nil {
		return "", refusal(ctx, "Manila", "look where share "+id+" is mounted from", err)
	}
	found = slices.DeleteFunc(found, func(one shares.ExportLocation) bool { return one.IsAdminOnly })
	slices.SortStableFunc(found, func(a, b shares.ExportLocation) int {
		switch {
		case a.Preferred == b.Preferred:
			return cmp.Compare(a.Path, b.Path)
		case a.Preferred:
			return -1
		}
		return 1
	})
	if len(found) == 0 {
		return "", nil
	}
	return found[0].Path, nil
}

// Allowed are the addresses that have access to a share.
func (s *SharedFileSystems) Allowed(ctx context.Context, id string) (list []Access, err error) {
	if err := identified("share", id); err != nil {
		return nil, err
	}
	found, err := shares.ListAccessRights(ctx, s.manila, id).Extract()
	if err != nil {
		return nil, refusal(ctx, "Manila", "look who has access to share "+id, err)
	}
	for _, one := range found {
		if one.AccessType == "ip" {
			list = append(list, Access{ID: one.ID, Address: one.AccessTo, State: one.State})
		}
	}
	return list, nil
}

// Allow asks for an address to have access to a share, which it has when that is active. That it has it already is a fault: a Conflict, or Invalid.
func (s *SharedFileSystems) Allow(ctx context.Context, id, address string) error {
	if err := identified("share", id); err != nil {
		return err
	}
	_, err := shares.GrantAccess(ctx, s.manila, id, shares.GrantAccessOpts{AccessType: "ip", AccessTo: address, AccessLevel: "rw"}).Extract()
	return refusal(ctx, "Manila", fmt.Sprintf("give %s access to share %s", address, id), err)
}

// Deny asks for access, by its id, to be taken back. That there is none is fine.
func (s *SharedFileSystems) Deny(ctx context.Context, id, access string) error {
	if err := identified("share", id); err != nil {
		return err
	}
	return withoutMissing(ctx, fmt.Sprintf("take back access %s to share %s", access, id), shares.RevokeAccess(ctx, s.manila, id, shares.RevokeAccessOpts{AccessID: access}).ExtractErr())
}

// Note adds to the metadata of a share, and Forget takes a key out of it. That it is not there is fine.
func (s *SharedFileSystems) Note(ctx context.Context, id string, metadata map[string]string) error {
	if err := identified("share", id); err != nil {
		return err
	}
	return refusal(ctx, "Manila", "note something of share "+id, shares.SetMetadata(ctx, s.manila, id, shares.SetMetadataOpts{Metadata: metadata}).Err)
}

// Forget is described with Note.
func (s *SharedFileSystems) Forget(ctx context.Context, id, key string) error {
	if err := identified("share", id, key); err != nil {
		return err
	}
	return withoutMissing(ctx, "forget something of share "+id, shares.DeleteMetadatum(ctx, s.manila, id, key).ExtractErr())
}

// Why is Manila's reason for a failure of a share; "" where it gives none.
func (s *SharedFileSystems) Why(ctx context.Context, id string) string {
	client := *s.manila
	client.Microversion = manilaMessages
	pages, err := allPages(ctx, messages.List(&client, messages.ListOpts{ResourceID: id}))
	if err != nil {
		return ""
	}
	found, err := messages.ExtractMessages(pages)
	if err != nil || len(found) == 0 {
		return ""
	}
	return slices.MaxFunc(found, func(a, b messages.Message) int { return a.CreatedAt.Compare(b.CreatedAt) }).UserMessage
}
