package openstack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/attachments"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/quotasets"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumetypes"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/volumeattach"

	"github.com/burano/burano/internal/fault"
)

// The statuses of volumes that are distinguished here:
// https://docs.openstack.org/api-ref/block-storage/v3/#volumes-volumes.
const (
	VolumeAvailable = "available"
	VolumeInUse     = "in-use"
	VolumeDeleting  = "deleting"
	VolumeError     = "error"
)

// growsInUse is the version of Cinder's API from which on volumes grow while servers have them.
const growsInUse = "3.42"

// Volume is a volume of Cinder.
type Volume struct {
	ID, Name, Status string
	Zone             string // availability zone of Cinder
	GiB              int
	Servers          []string          // ids of the servers that have it
	Attachments      map[string]string // ids in Cinder, by these servers
	Metadata         map[string]string
	Made             time.Time
}

// NewVolume is the request for a volume. Type and Zone are "" for the cloud's own choice. It begins as a copy of the snapshot, the volume or the backup with the id
// Snapshot, Source or Backup, or empty.
type NewVolume struct {
	Name, Description, Type, Zone string
	Snapshot, Source, Backup      string
	GiB                           int
	Metadata                      map[string]string
}

// BlockStorage are a project's volumes. A refusal of Cinder or Nova is a fault that repeats their words: TooLarge for a full quota, which is named.
type BlockStorage struct {
	cinder, nova *gophercloud.ServiceClient
}

// BlockStorage reaches the project's volumes. A catalog without Cinder is a fault (NotFound).
func (p *Project) BlockStorage() (*BlockStorage, error) {
	clients, err := p.clients()
	if err != nil {
		return nil, err
	}
	cinder, err := clients.Volume()
	if isMissing(err) {
		return nil, fault.New(fault.NotFound, "the cloud has no Cinder in its service catalog: %w", err)
	}
	if err != nil {
		return nil, err
	}
	return &BlockStorage{cinder, p.compute}, nil
}

// VolumeType is a kind of volumes that the project may use.
type VolumeType struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

func (t VolumeType) identity() (id, name string) { return t.ID, t.Name }

// Types lists the types of volumes that the project may use.
func (b *BlockStorage) Types(ctx context.Context) (list []VolumeType, err error) {
	pages, err := allPages(ctx, volumetypes.List(b.cinder, volumetypes.ListOpts{}))
	if err != nil {
		return nil, refusal(ctx, "Cinder", "list the types of volumes", err)
	}
	if err := volumetypes.ExtractVolumeTypesInto(pages, &list); err != nil {
		return nil, fmt.Errorf("list the types of volumes: %w", err)
	}
	return list, nil
}

// CheckType is a fault (Invalid) if the project has no type of volumes with this name or id. It is nil if the project may not list its types.
func (b *BlockStorage) CheckType(ctx context.Context, named string) error {
	list, err := b.Types(ctx)
	if err == nil && len(list) > 0 {
		_, err = one("volume type", named, list, VolumeType.identity)
		return err
	}
	if fault.KindOf(err) != 0 {
		return nil
	}
	return err
}

// Names of Cinder's quotas; the first two are also there for each type of volumes, as volumes_TYPE and gigabytes_TYPE
// (https://docs.openstack.org/api-ref/block-storage/v3/#quota-sets-extension-os-quota-sets).
const (
	quotaVolumes   = "volumes"
	quotaGigabytes = "gigabytes"
	quotaPerVolume = "per_volume_gigabytes"
)

// Quotas lists the quotas of a project under Cinder's names, sorted.
func (b *BlockStorage) Quotas(ctx context.Context, projectID string) (list []QuotaChoice, err error) {
	var answer struct {
		Set map[string]json.RawMessage `json:"quota_set"`
	}
	if err := quotasets.GetUsage(ctx, b.cinder, projectID).ExtractInto(&answer); err != nil {
		return nil, refusal(ctx, "Cinder", "look at the quotas of volumes", err)
	}
	for _, name := range slices.Sorted(maps.Keys(answer.Set)) {
		var quota quotasets.QuotaUsage
		if json.Unmarshal(answer.Set[name], &quota) == nil { // the id of the project is a text
			list = append(list, QuotaChoice{Resource: name, Used: quota.InUse + quota.Reserved, Limit: quota.Limit})
		}
	}
	return list, nil
}

// Tagged are the volumes with this metadata and, where it is not "", this name, the oldest first.
func (b *BlockStorage) Tagged(ctx context.Context, name string, metadata map[string]string) ([]Volume, error) {
	found, err := listAll(ctx, volumes.List(b.cinder, volumes.ListOpts{Name: name, Metadata: metadata}), volumes.ExtractVolumes)
	if err != nil {
		return nil, refusal(ctx, "Cinder", "list volumes", err)
	}
	return tagged(found, volumeOf, name, metadata, func(one Volume) label { return label{one.ID, one.Name, one.Made, one.Metadata} }), nil
}

// label identifies an object of the cloud.
type label struct {
	id, name string
	made     time.Time
	metadata map[string]string
}

// tagged selects the found objects with this metadata and, where it is not "", this name, the oldest first: not every cloud filters its lists.
func tagged[F, T any](found []F, of func(F) T, name string, metadata map[string]string, labelOf func(T) label) (list []T) {
	for _, one := range found {
		item := of(one)
		label := labelOf(item)
		if (name == "" || label.name == name) && subset(metadata, func(key, value string) bool { return label.metadata[key] == value }) {
			list = append(list, item)
		}
	}
	slices.SortFunc(list, func(a, b T) int {
		one, two := labelOf(a), labelOf(b)
		return cmp.Or(one.made.Compare(two.made), cmp.Compare(one.id, two.id))
	})
	return list
}

func subset(metadata map[string]string, has func(key, value string) bool) bool {
	for key, value := range metadata {
		if !has(key, value) {
			return false
		}
	}
	return true
}

func volumeOf(one volumes.Volume) Volume {
	volume := Volume{ID: one.ID, Name: one.Name, Status: one.Status, Zone: one.AvailabilityZone, GiB: one.Size, Metadata: maps.Clone(one.Metadata), Made: one.CreatedAt, Attachments: map[string]string{}}
	for _, attachment := range one.Attachments {
		volume.Servers = append(volume.Servers, attachment.ServerID)
		volume.Attachments[attachment.ServerID] = attachment.AttachmentID
	}
	return volume
}

// Volume is the one with this id; NotFound when there is none.
func (b *BlockStorage) Volume(ctx context.Context, id string) (Volume, error) {
	if err := identified("volume", id); err != nil {
		return Volume{}, err
	}
	found, err := volumes.Get(ctx, b.cinder, id).Extract()
	if err != nil {
		return Volume{}, refusal(ctx, "Cinder", "look at volume "+id, err)
	}
	return volumeOf(*found), nil
}

// Create asks for a volume, which is there when it is available. After an error that is no fault there may be one all the same.
func (b *BlockStorage) Create(ctx context.Context, wanted NewVolume) (Volume, error) {
	client := b.cinder
	if wanted.Backup != "" {
		client = b.withBackups()
	}
	made, err := volumes.Create(ctx, client, volumes.CreateOpts{Name: wanted.Name, Description: wanted.Description, Size: wanted.GiB, VolumeType: wanted.Type,
		AvailabilityZone: wanted.Zone, SnapshotID: wanted.Snapshot, SourceVolID: wanted.Source, BackupID: wanted.Backup, Metadata: wanted.Metadata}, nil).Extract()
	if err != nil {
		return Volume{}, refusal(ctx, "Cinder", fmt.Sprintf("make volume %s of %d GiB", wanted.Name, wanted.GiB), err)
	}
	return volumeOf(*made), nil
}

// Delete asks for a volume to be deleted. That there is none is fine.
func (b *BlockStorage) Delete(ctx context.Context, id string) error {
	if err := identified("volume", id); err != nil {
		return err
	}
	err := volumes.Delete(ctx, b.cinder, id, nil).ExtractErr()
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return nil
	}
	return refusal(ctx, "Cinder", "delete volume "+id, err)
}

// Note adds to the metadata of a volume.
func (b *BlockStorage) Note(ctx context.Context, id string, metadata map[string]string) error {
	return b.note(ctx, "volume", id, metadata)
}

func (b *BlockStorage) note(ctx context.Context, kind, id string, metadata map[string]string) error {
	if err := identified(kind, id); err != nil {
		return err
	}
	answer, err := b.cinder.Post(ctx, b.cinder.ServiceURL(kind+"s", id, "metadata"), map[string]any{"metadata": metadata}, nil, &gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}})
	_, _, err = gophercloud.ParseResponse(answer, err)
	return refusal(ctx, "Cinder", fmt.Sprintf("note something of %s %s", kind, id), err)
}

// Attach asks for a server to have a volume.
func (b *BlockStorage) Attach(ctx context.Context, id, server string) error {
	if err := errors.Join(identified("volume", id), identified("server", server)); err != nil {
		return err
	}
	_, err := volumeattach.Create(ctx, b.nova, server, volumeattach.CreateOpts{VolumeID: id}).Extract()
	return refusal(ctx, "Nova", fmt.Sprintf("attach volume %s to server %s", id, server), err)
}

// Detach asks for a server to have a volume no more. That it has not, or that there is no such server, is fine.
func (b *BlockStorage) Detach(ctx context.Context, id, server string) error {
	if err := errors.Join(identified("volume", id), identified("server", server)); err != nil {
		return err
	}
	err := volumeattach.Delete(ctx, b.nova, server, id).ExtractErr()
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return nil
	}
	return refusal(ctx, "Nova", fmt.Sprintf("detach volume %s from server %s", id, server), err)
}

// attachmentsKnown is the version of Cinder's API from which on it has attachments of their own.
const attachmentsKnown = "3.27"

// DropAttachment deletes an attachment of Cinder, which it allows where Nova does not know the server. That there is none is fine.
func (b *BlockStorage) DropAttachment(ctx context.Context, id string) error {
	if err := identified("attachment", id); err != nil {
		return err
	}
	client := *b.cinder
	client.Microversion = attachmentsKnown
	err := attachments.Delete(ctx, &client, id).ExtractErr()
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return nil
	}
	return refusal(ctx, "Cinder", "delete attachment "+id, err)
}

// Grow asks for a volume to have this size, also while a server has it.
func (b *BlockStorage) Grow(ctx context.Context, volume Volume, gib int) error {
	if err := identified("volume", volume.ID); err != nil {
		return err
	}
	client := *b.cinder
	if volume.Status == VolumeInUse {
		client.Microversion = growsInUse
	}
	err := volumes.ExtendSize(ctx, &client, volume.ID, volumes.ExtendSizeOpts{NewSize: gib}).ExtractErr()
	return refusal(ctx, "Cinder", fmt.Sprintf("have volume %s grow to %d GiB", volume.ID, gib), err)
}

// refusal turns a service's refusal into a fault in its own words. Errors that pass by themselves become no fault.
func refusal(ctx context.Context, service, doing string, err error) error {
	if err == nil {
		return nil
	}
	var unexpected gophercloud.ErrUnexpectedResponseCode
	if _, passing := passes(ctx, err); passing || !errors.As(err, &unexpected) || unexpected.Actual >= http.StatusInternalServerError {
		return fmt.Errorf("%s: %w", doing, err)
	}
	kind, there := map[int]fault.Kind{http.StatusBadRequest: fault.Invalid, http.StatusForbidden: fault.Forbidden, http.StatusNotFound: fault.NotFound,
		http.StatusConflict: fault.Conflict, http.StatusRequestEntityTooLarge: fault.TooLarge}[unexpected.Actual]
	if !there {
		return fmt.Errorf("%s: %w", doing, err)
	}
	var answer map[string]struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(unexpected.Body, &answer) == nil {
		for _, part := range answer {
			if part.Message != "" {
				return fault.New(kind, "%s: %s says: %s", doing, service, part.Message)
			}
		}
	}
	return fault.New(kind, "%s: %w", doing, err)
}
