package direct

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/burano/burano/catalog/hot"
	"github.com/burano/burano/internal/wait"
)

// This file is the types of Cinder.

const cinder = "block-storage"

func (s *stack) cinder() (*gophercloud.ServiceClient, error) { return s.project.clients.Volume() }

var volume = kind{
	properties: map[string]property{
		"name": {form: words, changes: true}, "description": {form: words, changes: true}, "size": {form: number, changes: true}, "metadata": {form: object, changes: true},
		"read_only": {form: truth, changes: true}, "volume_type": {form: words}, "availability_zone": {form: words}, "snapshot_id": {form: words}, "source_volid": {form: words},
		"image": {form: words},
	},
	precious: true,
	create: func(ctx context.Context, j *job) error {
		client, err := j.cinder()
		if err != nil {
			return err
		}
		err = j.make(ctx, cinder, func(ctx context.Context) (string, error) {
			body := map[string]any{"name": j.name(), "metadata": j.metadata()}
			for _, name := range []string{"description", "size", "volume_type", "availability_zone", "snapshot_id", "source_volid"} {
				if value, given := j.properties[name]; given {
					body[name] = value
				}
			}
			if ref := j.text("image"); ref != "" {
				id, err := j.image(ctx, ref)
				if err != nil {
					return "", err
				}
				body["imageRef"] = id
			}
			var answer struct{ Volume map[string]any }
			err := call(ctx, client, http.MethodPost, "volumes", map[string]any{"volume": body}, &answer)
			return hot.Text(answer.Volume["id"]), err
		})
		if err == nil {
			err = awaitVolume(ctx, client, j.resource.PhysicalID, "available", "in-use")
		}
		if err != nil {
			return err
		}
		return j.readOnly(ctx, client)
	},
	lookup: func(ctx context.Context, j *job) (string, error) {
		client, err := j.cinder()
		if err != nil {
			return "", err
		}
		var answer struct{ Volumes []map[string]any }
		if err := call(ctx, client, http.MethodGet, "volumes/detail?"+url.Values{"name": {j.name()}}.Encode(), nil, &answer); err != nil {
			return "", err
		}
		i := slices.IndexFunc(answer.Volumes, j.ofJob)
		if i < 0 {
			return "", nil
		}
		return hot.Text(answer.Volumes[i]["id"]), nil
	},
	update: func(ctx context.Context, j *job, differing []string) error {
		client, err := j.cinder()
		if err != nil {
			return err
		}
		body := map[string]any{"name": j.name(), "description": j.text("description"), "metadata": j.metadata()}
		if err := call(ctx, client, http.MethodPut, "volumes/"+j.resource.PhysicalID, map[string]any{"volume": body}, nil); err != nil {
			return err
		}
		if slices.Contains(differing, "size") {
			if err := j.extend(ctx, client); err != nil {
				return err
			}
		}
		return j.readOnly(ctx, client)
	},
	remove: func(ctx context.Context, j *job) error {
		client, err := j.cinder()
		if err != nil {
			return err
		}
		id := j.resource.PhysicalID
		if err := awaitVolume(ctx, client, id, "available", "in-use", "error", "error_deleting", "error_extending", "deleting"); err != nil {
			return gentle(err)
		}
		if err := gentle(call(ctx, client, http.MethodDelete, "volumes/"+url.PathEscape(id), nil, nil)); err != nil {
			return err
		}
		return watching.Until(ctx, func(ctx context.Context) error {
			shown, err := shownVolume(ctx, client, id)
			switch {
			case err != nil:
				return gentle(err)
			case shown["status"] == "error_deleting":
				return errors.New("Cinder could not delete it")
			}
			return wait.Again(errors.New("it is being deleted"))
		})
	},
	attributes: func(ctx context.Context, j *job) (map[string]any, error) {
		client, err := j.cinder()
		if err != nil {
			return nil, err
		}
		shown, err := shownVolume(ctx, client, j.resource.PhysicalID)
		if err != nil {
			return nil, err
		}
		made := withShow(shown)
		made["display_name"], made["display_description"], made["attachments_list"] = shown["name"], shown["description"], shown["attachments"]
		return made, nil
	},
}

func shownVolume(ctx context.Context, client *gophercloud.ServiceClient, id string) (map[string]any, error) {
	var answer struct{ Volume map[string]any }
	err := call(ctx, client, http.MethodGet, "volumes/"+url.PathEscape(id), nil, &answer)
	return answer.Volume, err
}

// awaitVolume waits until a volume is in one of these states.
func awaitVolume(ctx context.Context, client *gophercloud.ServiceClient, id string, states ...string) error {
	return watching.Until(ctx, func(ctx context.Context) error {
		shown, err := shownVolume(ctx, client, id)
		if err != nil {
			return err
		}
		status := hot.Text(shown["status"])
		switch {
		case slices.Contains(states, status):
			return nil
		case len(status) >= 5 && status[:5] == "error":
			return fmt.Errorf("the volume went to status %s", status)
		}
		return wait.Again(fmt.Errorf("the volume is in status %s", status))
	})
}

// extend gives a volume more room. That it has it is fine: an earlier request may have been heard.
func (j *job) extend(ctx context.Context, client *gophercloud.ServiceClient) error {
	id := j.resource.PhysicalID
	shown, err := shownVolume(ctx, client, id)
	if err != nil {
		return err
	}
	was, _ := shown["size"].(float64)
	size, _ := j.properties["size"].(float64)
	switch {
	case size == was:
		return nil
	case size < was:
		return wrong("the volume has %.0f GiB and cannot shrink to %.0f", was, size)
	}
	growing := *client
	if shown["status"] == "in-use" {
		growing.Microversion = "3.42" // from which on volumes grow while servers have them
	}
	err = patiently(ctx, cinder, true, func(ctx context.Context) (bool, error) {
		now, err := shownVolume(ctx, client, id)
		return now["size"] == size || now["status"] == "extending", err
	}, func(ctx context.Context) error {
		return call(ctx, &growing, http.MethodPost, "volumes/"+url.PathEscape(id)+"/action", map[string]any{"os-extend": map[string]any{"new_size": size}}, nil)
	})
	if err != nil {
		return err
	}
	return awaitVolume(ctx, client, id, "available", "in-use")
}

func (j *job) readOnly(ctx context.Context, client *gophercloud.ServiceClient) error {
	wanted, given := j.properties["read_only"]
	if !given || wanted == false && j.resource.Properties["read_only"] != true {
		return nil
	}
	return patiently(ctx, cinder, false, func(context.Context) (bool, error) { return false, nil }, func(ctx context.Context) error {
		return call(ctx, client, http.MethodPost, "volumes/"+j.resource.PhysicalID+"/action", map[string]any{"os-update_readonly_flag": map[string]any{"readonly": wanted}}, nil)
	})
}

// volumeAttachment is a volume in a server. Its physical id is the volume's; the server is in its notes.
var volumeAttachment = kind{
	properties: map[string]property{
		"instance_uuid": {form: words, required: true, changes: true}, "volume_id": {form: words, required: true, changes: true}, "mountpoint": {form: words, changes: true},
	},
	create: attach,
	lookup: func(ctx context.Context, j *job) (string, error) {
		var answer map[string]map[string]any
		err := call(ctx, j.nova(), http.MethodGet, "servers/"+url.PathEscape(j.text("instance_uuid"))+"/os-volume_attachments/"+url.PathEscape(j.text("volume_id")), nil, &answer)
		if err != nil {
			return "", gentle(err)
		}
		return j.text("volume_id"), nil
	},
	update: func(ctx context.Context, j *job, _ []string) error {
		if err := detach(ctx, j); err != nil {
			return err
		}
		j.resource.PhysicalID, j.resource.Asked = "", false
		return attach(ctx, j)
	},
	remove: detach,
	attributes: func(_ context.Context, j *job) (map[string]any, error) {
		return map[string]any{"show": map[string]any{"volumeId": j.resource.PhysicalID, "serverId": j.resource.Data["server"]}}, nil
	},
	adopted: func(one *resource) {
		one.PhysicalID, one.Data = hot.Text(one.Properties["volume_id"]), map[string]string{"server": hot.Text(one.Properties["instance_uuid"])}
	},
}

func attach(ctx context.Context, j *job) error {
	if err := j.note(ctx, "server", j.text("instance_uuid")); err != nil {
		return err
	}
	client, err := j.cinder()
	if err != nil {
		return err
	}
	err = j.make(ctx, nova, func(ctx context.Context) (string, error) {
		body := map[string]any{"volumeId": j.text("volume_id")}
		if device := j.text("mountpoint"); device != "" {
			body["device"] = device
		}
		err := call(ctx, j.nova(), http.MethodPost, "servers/"+url.PathEscape(j.text("instance_uuid"))+"/os-volume_attachments", map[string]any{"volumeAttachment": body}, nil)
		return j.text("volume_id"), err
	})
	if err != nil {
		return err
	}
	return awaitVolume(ctx, client, j.resource.PhysicalID, "in-use")
}

func detach(ctx context.Context, j *job) error {
	client, err := j.cinder()
	if err != nil {
		return err
	}
	server, volume := j.resource.Data["server"], j.resource.PhysicalID
	if err := gentle(call(ctx, j.nova(), http.MethodDelete, "servers/"+url.PathEscape(server)+"/os-volume_attachments/"+url.PathEscape(volume), nil, nil)); err != nil {
		return err
	}
	return watching.Until(ctx, func(ctx context.Context) error {
		shown, err := shownVolume(ctx, client, volume)
		if err != nil {
			return gentle(err)
		}
		for _, one := range hot.List(shown["attachments"]) {
			if attachment, _ := one.(map[string]any); attachment["server_id"] == server {
				return wait.Again(errors.New("it is being detached"))
			}
		}
		if shown["status"] == "detaching" {
			return wait.Again(errors.New("it is being detached"))
		}
		return nil
	})
}
