package manila

import (
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
)

// zone is the local cloud's zone of shares, and shareType the one type of its shares.
const (
	zone      = "nova"
	shareType = "local"
)

// share is the record of a share. It is available from its first moment on.
type share struct {
	ID, ProjectID, Name, Description, NetworkID string
	SizeGB                                      int
	Metadata                                    map[string]string
	Rules                                       []rule
	CreatedAt                                   time.Time
}

// rule is an address, or a network, that has access to a share.
type rule struct{ ID, To, Level string }

func newID() string { return uuid.NewString() }

func (s share) body() map[string]any {
	return map[string]any{
		"id": s.ID, "project_id": s.ProjectID, "name": s.Name, "description": s.Description, "size": s.SizeGB, "status": "available", "share_proto": "NFS",
		"share_type": shareType, "share_type_name": shareType, "share_network_id": s.NetworkID, "availability_zone": zone, "metadata": s.Metadata,
		"is_public": false, "has_replicas": false, "created_at": s.CreatedAt.UTC().Format("2006-01-02T15:04:05.000000"),
	}
}

func (r rule) body() map[string]any {
	return map[string]any{"id": r.ID, "access_type": "ip", "access_to": r.To, "access_level": r.Level, "state": "active"}
}

// of is the share that a request is about.
func (s *Service) of(r *http.Request) (share, error) {
	found, known := s.shares.Get(r.PathValue("id"))
	if !known || found.ProjectID != identity.From(r.Context()).ProjectID {
		return found, fault.New(fault.NotFound, "Share %s could not be found.", r.PathValue("id"))
	}
	return found, nil
}

// listShares filters as gophercloud asks: metadata are one parameter in the form {'key':'value'}, which is left to the caller to filter by.
func (s *Service) listShares(w http.ResponseWriter, r *http.Request) error {
	name := r.URL.Query().Get("name")
	list := []any{}
	for _, one := range s.shares.Where(func(one share) bool {
		return one.ProjectID == identity.From(r.Context()).ProjectID && (name == "" || one.Name == name)
	}) {
		list = append(list, one.body())
	}
	answer.JSON(w, http.StatusOK, map[string]any{"shares": list})
	return nil
}

func (s *Service) createShare(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Share struct {
			Protocol    string            `json:"share_proto"`
			Size        int               `json:"size"`
			Name        string            `json:"name"`
			Description string            `json:"description"`
			Type        string            `json:"share_type"`
			Network     string            `json:"share_network_id"`
			Zone        string            `json:"availability_zone"`
			Metadata    map[string]string `json:"metadata"`
		} `json:"share"`
	}
	if err := read(r, &body); err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	wanted, project := body.Share, identity.From(r.Context()).ProjectID
	switch {
	case wanted.Protocol != "NFS":
		return fault.New(fault.Invalid, "Invalid share protocol provided: %s. It is either disabled or unsupported. Available protocols: ['NFS']", strings.ToUpper(wanted.Protocol))
	case wanted.Size < 1:
		return fault.New(fault.Invalid, "Share size '%d' must be an integer and greater than 0", wanted.Size)
	case wanted.Type != "" && wanted.Type != shareType:
		return fault.New(fault.NotFound, "Share type not found.")
	case wanted.Zone != "" && wanted.Zone != zone:
		return fault.New(fault.NotFound, "Availability zone %s could not be found.", wanted.Zone)
	}
	if network, known := s.networks.Get(wanted.Network); wanted.Network != "" && (!known || network.ProjectID != project) {
		return fault.New(fault.NotFound, "Share network %s could not be found.", wanted.Network)
	}
	if err := s.checkQuota(project, 1, wanted.Size); err != nil {
		return err
	}
	made := share{ID: newID(), ProjectID: project, Name: wanted.Name, Description: wanted.Description, NetworkID: wanted.Network, SizeGB: wanted.Size, Metadata: wanted.Metadata,
		CreatedAt: time.Now()}
	if made.Metadata == nil {
		made.Metadata = map[string]string{}
	}
	if err := os.Mkdir(s.folder(made.ID), 0o777); err != nil {
		return err
	}
	if err := s.shares.Put(made.ID, made); err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, map[string]any{"share": made.body()})
	return nil
}

func (s *Service) showShare(w http.ResponseWriter, r *http.Request) error {
	found, err := s.of(r)
	if err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, map[string]any{"share": found.body()})
	return nil
}

func (s *Service) deleteShare(w http.ResponseWriter, r *http.Request) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	found, err := s.of(r)
	if err != nil {
		return err
	}
	if _, err := s.shares.Delete(found.ID); err != nil {
		return err
	}
	if err := os.RemoveAll(s.folder(found.ID)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func (s *Service) listExports(w http.ResponseWriter, r *http.Request) error {
	found, err := s.of(r)
	if err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, map[string]any{"export_locations": []any{map[string]any{
		"id": uuid.NewSHA1(uuid.NameSpaceOID, []byte(found.ID)), "share_instance_id": found.ID, "path": s.Server + ":" + s.folder(found.ID), "is_admin_only": false, "preferred": true,
	}}})
	return nil
}

// change changes the record of a share.
func (s *Service) change(r *http.Request, change func(*share)) (share, error) {
	found, err := s.of(r)
	if err != nil {
		return found, err
	}
	if _, err := s.shares.Update(found.ID, change); err != nil {
		return found, err
	}
	return s.of(r)
}

func (s *Service) addMetadata(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Metadata map[string]string `json:"metadata"`
	}
	if err := read(r, &body); err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	found, err := s.change(r, func(row *share) {
		all := map[string]string{}
		for _, from := range []map[string]string{row.Metadata, body.Metadata} {
			for key, value := range from {
				all[key] = value
			}
		}
		row.Metadata = all
	})
	if err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, map[string]any{"metadata": found.Metadata})
	return nil
}

func (s *Service) deleteMetadata(w http.ResponseWriter, r *http.Request) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	key := r.PathValue("key")
	found, err := s.of(r)
	if err != nil {
		return err
	}
	if _, there := found.Metadata[key]; !there {
		return fault.New(fault.NotFound, "Metadata item was not found.")
	}
	_, err = s.change(r, func(row *share) {
		left := map[string]string{}
		for name, value := range row.Metadata {
			if name != key {
				left[name] = value
			}
		}
		row.Metadata = left
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// act does one of the actions of a share.
func (s *Service) act(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Allow *struct {
			Type  string `json:"access_type"`
			To    string `json:"access_to"`
			Level string `json:"access_level"`
		} `json:"allow_access"`
		Deny *struct {
			ID string `json:"access_id"`
		} `json:"deny_access"`
		Extend *struct {
			Size int `json:"new_size"`
		} `json:"extend"`
	}
	if err := read(r, &body); err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	found, err := s.of(r)
	if err != nil {
		return err
	}
	switch {
	case body.Allow != nil:
		_, failed := netip.ParseAddr(body.Allow.To)
		if _, err := netip.ParsePrefix(body.Allow.To); body.Allow.Type != "ip" || failed != nil && err != nil {
			return fault.New(fault.Invalid, "Invalid IP address or CIDR of access: %s", body.Allow.To)
		}
		if slices.ContainsFunc(found.Rules, func(one rule) bool { return one.To == body.Allow.To }) {
			return fault.New(fault.Conflict, "Share access ip:%s exists.", body.Allow.To)
		}
		made := rule{newID(), body.Allow.To, body.Allow.Level}
		if _, err := s.change(r, func(row *share) { row.Rules = append(slices.Clone(row.Rules), made) }); err != nil {
			return err
		}
		answer.JSON(w, http.StatusOK, map[string]any{"access": made.body()})
	case body.Deny != nil:
		of := func(one rule) bool { return one.ID == body.Deny.ID }
		if !slices.ContainsFunc(found.Rules, of) {
			return fault.New(fault.NotFound, "Share access %s could not be found.", body.Deny.ID)
		}
		if _, err := s.change(r, func(row *share) { row.Rules = slices.DeleteFunc(slices.Clone(row.Rules), of) }); err != nil {
			return err
		}
		w.WriteHeader(http.StatusAccepted)
	case body.Extend != nil:
		if body.Extend.Size <= found.SizeGB {
			return fault.New(fault.Invalid, "New size for extend must be greater than current size. (current: %d, extended: %d).", found.SizeGB, body.Extend.Size)
		}
		if s.checkQuota(found.ProjectID, 0, body.Extend.Size-found.SizeGB) != nil { // the answer differs from a new share's
			return fault.New(fault.Forbidden, "Requested share exceeds allowed project/user or share type gigabytes quota.")
		}
		if _, err := s.change(r, func(row *share) { row.SizeGB = body.Extend.Size }); err != nil {
			return err
		}
		w.WriteHeader(http.StatusAccepted)
	default: // access_list, which has the value null
		list := []any{}
		for _, one := range found.Rules {
			list = append(list, one.body())
		}
		answer.JSON(w, http.StatusOK, map[string]any{"access_list": list})
	}
	return nil
}
