package direct

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/burano/burano/catalog/hot"
	"github.com/burano/burano/internal/wait"
)

// This file is the types of Nova.

const nova = "compute"

func (s *stack) nova() *gophercloud.ServiceClient { return s.project.clients.Compute }

// since is Nova by a later version of its API (https://docs.openstack.org/nova/latest/reference/api-microversion-history.html).
func (s *stack) since(version string) *gophercloud.ServiceClient {
	later := *s.nova()
	later.Microversion = version
	return &later
}

const (
	// metadataResource and metadataStack are the keys by which servers and volumes name their resource.
	metadataResource = "burano_resource"
	metadataStack    = "burano_stack"
)

// metadata is the metadata for a server or a volume.
func (j *job) metadata() map[string]string {
	made := map[string]string{}
	given, _ := j.properties["metadata"].(map[string]any)
	for name, value := range given {
		made[name] = hot.Text(value)
	}
	made[metadataResource], made[metadataStack] = j.resource.ID, j.stack.row.Name
	return made
}

// ofJob is true if a server or a volume belongs to the resource.
func (j *job) ofJob(thing map[string]any) bool {
	metadata, _ := thing["metadata"].(map[string]any)
	return metadata[metadataResource] == j.resource.ID
}

// watching is how often a server or a volume is looked at that changes.
var watching = wait.Policy{First: 100 * time.Millisecond, Most: time.Second, Growth: 1.5}

var server = kind{
	properties: map[string]property{
		"name": {form: words}, "image": {form: words}, "flavor": {form: words, required: true}, "key_name": {form: words}, "networks": {form: list}, "user_data": {form: words},
		"user_data_format": {form: words, fallback: "RAW"}, "metadata": {form: object}, "security_groups": {form: list}, "availability_zone": {form: words},
		"config_drive": {form: truth}, "scheduler_hints": {form: object}, "block_device_mapping_v2": {form: list}, "admin_pass": {form: words}, "tags": {form: list},
		"flavor_update_policy": {form: words}, "image_update_policy": {form: words}, "user_data_update_policy": {form: words},
	},
	check:  checkServer,
	create: createServer,
	lookup: func(ctx context.Context, j *job) (string, error) {
		var answer struct{ Servers []map[string]any }
		query := url.Values{"name": {"^" + regexp.QuoteMeta(j.name()) + "$"}}
		if err := call(ctx, j.nova(), http.MethodGet, "servers/detail?"+query.Encode(), nil, &answer); err != nil {
			return "", err
		}
		i := slices.IndexFunc(answer.Servers, j.ofJob)
		if i < 0 {
			return "", nil
		}
		return hot.Text(answer.Servers[i]["id"]), nil
	},
	update: updateServer,
	remove: func(ctx context.Context, j *job) error {
		path := "servers/" + j.resource.PhysicalID
		if err := gentle(call(ctx, j.nova(), http.MethodDelete, path, nil, nil)); err != nil {
			return err
		}
		return watching.Until(ctx, func(ctx context.Context) error {
			shown, err := j.shown(ctx)
			switch status := hot.Text(shown["status"]); {
			case gophercloud.ResponseCodeIs(err, http.StatusNotFound), status == "DELETED", status == "SOFT_DELETED":
				return nil
			case err != nil:
				return err
			case status == "ERROR" && shown["OS-EXT-STS:task_state"] == nil:
				return fmt.Errorf("it could not be deleted: %s", faultOf(shown))
			}
			return wait.Again(errors.New("it is being deleted"))
		})
	},
	attributes: serverAttributes,
	// A port serves one server at a time, and a volume too.
	alone: func(was, is map[string]any) bool {
		before := partsOf(was)
		return slices.ContainsFunc(partsOf(is), func(part string) bool { return slices.Contains(before, part) })
	},
}

// partsOf are the ports and volumes of a server.
func partsOf(properties map[string]any) (parts []string) {
	for name, key := range map[string]string{"networks": "port", "block_device_mapping_v2": "volume_id"} {
		for _, one := range hot.List(properties[name]) {
			entry, _ := one.(map[string]any)
			if part := hot.Text(entry[key]); part != "" {
				parts = append(parts, part)
			}
		}
	}
	return parts
}

// checkServer looks for the image and the flavor before anything is made.
func checkServer(ctx context.Context, j *job) error {
	for property, find := range map[string]func(context.Context, string) (string, error){"image": j.image, "flavor": j.flavor} {
		if ref, known := j.properties[property].(string); known && ref != "" {
			if _, err := find(ctx, ref); err != nil {
				return err
			}
		}
	}
	if format, known := j.properties["user_data_format"].(string); known && format != "RAW" && format != "" {
		return wrong("the user data format %s works only with Heat, and this stack is made without it (burano serve --orchestration): RAW is what works", format)
	}
	return nil
}

// image is the id of an image that is called by its name or its id.
func (s *stack) image(ctx context.Context, ref string) (string, error) {
	glance := s.project.clients.Image
	var found map[string]any
	err := call(ctx, glance, http.MethodGet, "images/"+url.PathEscape(ref), nil, &found)
	if err == nil {
		return hot.Text(found["id"]), nil
	}
	if !gophercloud.ResponseCodeIs(err, http.StatusNotFound) && !gophercloud.ResponseCodeIs(err, http.StatusBadRequest) {
		return "", err
	}
	var answer struct{ Images []map[string]any }
	if err := call(ctx, glance, http.MethodGet, "images?"+url.Values{"name": {ref}}.Encode(), nil, &answer); err != nil {
		return "", err
	}
	image, err := one("image", ref, answer.Images)
	return hot.Text(image["id"]), err
}

func (s *stack) flavor(ctx context.Context, ref string) (string, error) {
	var answer struct{ Flavors []map[string]any }
	if err := call(ctx, s.nova(), http.MethodGet, "flavors", nil, &answer); err != nil {
		return "", err
	}
	flavor, err := one("flavor", ref, answer.Flavors)
	if err == nil {
		return hot.Text(flavor["id"]), nil
	}
	// One that is not listed can still be used by its id.
	var shown map[string]any
	if call(ctx, s.nova(), http.MethodGet, "flavors/"+url.PathEscape(ref), nil, &shown) == nil {
		return ref, nil
	}
	return "", err
}

func createServer(ctx context.Context, j *job) error {
	err := j.make(ctx, nova, func(ctx context.Context) (string, error) {
		body, client, err := j.serverRequest(ctx)
		if err != nil {
			return "", err
		}
		var answer struct{ Server map[string]any }
		err = call(ctx, client, http.MethodPost, "servers", body, &answer)
		return hot.Text(answer.Server["id"]), err
	})
	if err != nil {
		return err
	}
	return watching.Until(ctx, func(ctx context.Context) error {
		shown, err := j.shown(ctx)
		if err != nil {
			return err
		}
		switch hot.Text(shown["status"]) {
		case "ACTIVE":
			return nil
		case "ERROR":
			return fmt.Errorf("it went to status ERROR: %s", faultOf(shown))
		case "DELETED", "SOFT_DELETED":
			return errors.New("it was deleted while it was waited for")
		}
		return wait.Again(fmt.Errorf("it is in status %s", hot.Text(shown["status"])))
	})
}

func faultOf(shown map[string]any) string {
	told, _ := shown["fault"].(map[string]any)
	if message := hot.Text(told["message"]); message != "" {
		return message
	}
	return "Nova does not say why"
}

func (j *job) shown(ctx context.Context) (map[string]any, error) {
	var answer struct{ Server map[string]any }
	err := call(ctx, j.nova(), http.MethodGet, "servers/"+j.resource.PhysicalID, nil, &answer)
	return answer.Server, err
}

// serverRequest is the request to Nova, with a client of the API version that it needs.
func (j *job) serverRequest(ctx context.Context) (map[string]any, *gophercloud.ServiceClient, error) {
	client := j.nova()
	body := map[string]any{"name": j.name(), "metadata": j.metadata()}
	var err error
	if body["flavorRef"], err = j.flavor(ctx, j.text("flavor")); err != nil {
		return nil, nil, err
	}
	if ref := j.text("image"); ref != "" {
		if body["imageRef"], err = j.image(ctx, ref); err != nil {
			return nil, nil, err
		}
	} else {
		body["imageRef"] = ""
	}
	for property, field := range map[string]string{"key_name": "key_name", "availability_zone": "availability_zone", "admin_pass": "adminPass"} {
		if value := j.text(property); value != "" {
			body[field] = value
		}
	}
	if data := j.text("user_data"); data != "" {
		body["user_data"] = base64.StdEncoding.EncodeToString([]byte(data))
	}
	if drive, given := j.properties["config_drive"]; given {
		body["config_drive"] = drive
	}
	if tags, given := j.properties["tags"].([]any); given && len(tags) > 0 {
		client, body["tags"] = j.since("2.52"), tags
	}
	var groups []any
	for _, group := range hot.List(j.properties["security_groups"]) {
		groups = append(groups, map[string]any{"name": hot.Text(group)})
	}
	if len(groups) > 0 {
		body["security_groups"] = groups
	}
	entries, err := j.interfaces(ctx)
	if err != nil {
		return nil, nil, err
	}
	if len(entries) > 0 {
		body["networks"] = entries
	}
	if devices := hot.List(j.properties["block_device_mapping_v2"]); len(devices) > 0 {
		if body["block_device_mapping_v2"], err = j.devices(ctx, devices); err != nil {
			return nil, nil, err
		}
	}
	request := map[string]any{"server": body}
	if hints, given := j.properties["scheduler_hints"].(map[string]any); given && len(hints) > 0 {
		request["os:scheduler_hints"] = hints
	}
	return request, client, nil
}

// interfaces are a server's networks as Nova wants them.
func (j *job) interfaces(ctx context.Context) ([]any, error) {
	var entries []any
	for _, one := range hot.List(j.properties["networks"]) {
		entry, _ := one.(map[string]any)
		for key, value := range entry {
			if value != nil && !slices.Contains([]string{"port", "network", "uuid", "fixed_ip"}, key) {
				return nil, wrong("networks: %s works only with Heat, and this stack is made without it (burano serve --orchestration): an entry has port, or network and fixed_ip", key)
			}
		}
		made := map[string]any{}
		switch port, network := hot.Text(entry["port"]), hot.Text(entry["network"])+hot.Text(entry["uuid"]); {
		case port != "":
			made["port"] = port
		case network != "":
			id, err := j.idOf(ctx, "network", "networks", network)
			if err != nil {
				return nil, err
			}
			made["uuid"] = id
			if address := hot.Text(entry["fixed_ip"]); address != "" {
				made["fixed_ip"] = address
			}
		default:
			return nil, wrong("networks: an entry names neither a network nor a port")
		}
		entries = append(entries, made)
	}
	return entries, nil
}

// devices are a server's disks as Nova wants them (https://docs.openstack.org/nova/latest/user/block-device-mapping.html).
func (j *job) devices(ctx context.Context, entries []any) ([]any, error) {
	var devices []any
	for _, one := range entries {
		entry, _ := one.(map[string]any)
		made := map[string]any{"destination_type": "volume", "source_type": "blank", "boot_index": -1.0}
		for name, value := range entry {
			if value == nil || value == "" {
				continue
			}
			switch name {
			case "volume_id", "snapshot_id":
				made["uuid"], made["source_type"] = hot.Text(value), map[string]string{"volume_id": "volume", "snapshot_id": "snapshot"}[name]
			case "image", "image_id":
				id, err := j.image(ctx, hot.Text(value))
				if err != nil {
					return nil, err
				}
				made["uuid"], made["source_type"] = id, "image"
			case "swap_size":
				made["guest_format"], made["destination_type"], made["volume_size"] = "swap", "local", value
			case "ephemeral_size":
				made["destination_type"], made["volume_size"] = "local", value
			case "ephemeral_format":
				made["guest_format"] = hot.Text(value)
			case "device_name", "device_type", "disk_bus":
				made[name] = hot.Text(value)
			case "boot_index", "volume_size":
				converted, err := number.convert(value)
				if err != nil {
					return nil, err
				}
				made[name] = converted
			case "delete_on_termination":
				converted, err := truth.convert(value)
				if err != nil {
					return nil, err
				}
				made[name] = converted
			default:
				return nil, wrong("block_device_mapping_v2: %s is not known", name)
			}
		}
		devices = append(devices, made)
	}
	return devices, nil
}

// updateServer gives a server that is there another name, other metadata and other interfaces.
func updateServer(ctx context.Context, j *job, differing []string) error {
	path := "servers/" + j.resource.PhysicalID
	if slices.Contains(differing, "name") {
		if err := call(ctx, j.nova(), http.MethodPut, path, map[string]any{"server": map[string]any{"name": j.name()}}, nil); err != nil {
			return err
		}
	}
	if slices.Contains(differing, "metadata") {
		if err := call(ctx, j.nova(), http.MethodPut, path+"/metadata", map[string]any{"metadata": j.metadata()}, nil); err != nil {
			return err
		}
	}
	if slices.Contains(differing, "tags") {
		if err := call(ctx, j.since("2.26"), http.MethodPut, path+"/tags", map[string]any{"tags": hot.List(j.properties["tags"])}, nil); err != nil {
			return err
		}
	}
	if slices.Contains(differing, "networks") {
		return j.replug(ctx)
	}
	return nil
}

// replug attaches a server's missing interfaces, and detaches the ones that it must not have any more.
func (j *job) replug(ctx context.Context) error {
	path := "servers/" + j.resource.PhysicalID + "/os-interface"
	attached := func(ctx context.Context) ([]map[string]any, error) {
		var answer struct {
			Attachments []map[string]any `json:"interfaceAttachments"`
		}
		err := call(ctx, j.nova(), http.MethodGet, path, nil, &answer)
		return answer.Attachments, err
	}
	has, err := attached(ctx)
	if err != nil {
		return err
	}
	wanted, err := j.interfaces(ctx)
	if err != nil {
		return err
	}
	var missing []map[string]any
	for _, one := range wanted {
		entry := one.(map[string]any)
		i := slices.IndexFunc(has, func(there map[string]any) bool { return fits(entry, there) })
		if i < 0 {
			missing = append(missing, entry)
		} else {
			has = slices.Delete(has, i, i+1)
		}
	}
	for _, one := range has {
		port := hot.Text(one["port_id"])
		if err := gentle(call(ctx, j.nova(), http.MethodDelete, path+"/"+port, nil, nil)); err != nil {
			return err
		}
		err := watching.Until(ctx, func(ctx context.Context) error {
			left, err := attached(ctx)
			if err == nil && slices.ContainsFunc(left, func(other map[string]any) bool { return other["port_id"] == port }) {
				return wait.Again(fmt.Errorf("port %s is being detached", port))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, entry := range missing {
		body := map[string]any{}
		if port := entry["port"]; port != nil {
			body["port_id"] = port
		} else {
			body["net_id"] = entry["uuid"]
			if address := entry["fixed_ip"]; address != nil {
				body["fixed_ips"] = []any{map[string]any{"ip_address": address}}
			}
		}
		err := patiently(ctx, nova, false, func(ctx context.Context) (bool, error) {
			now, err := attached(ctx)
			return slices.ContainsFunc(now, func(there map[string]any) bool { return fits(entry, there) }), err
		}, func(ctx context.Context) error {
			return call(ctx, j.nova(), http.MethodPost, path, map[string]any{"interfaceAttachment": body}, nil)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// fits is true if an interface is as an entry asks.
func fits(entry, there map[string]any) bool {
	if port := entry["port"]; port != nil {
		return there["port_id"] == port
	}
	return there["net_id"] == entry["uuid"]
}

func serverAttributes(ctx context.Context, j *job) (map[string]any, error) {
	shown, err := j.shown(ctx)
	if err != nil {
		return nil, err
	}
	known, err := j.listed(ctx, "networks", nil)
	if err != nil {
		return nil, err
	}
	byName, _ := shown["addresses"].(map[string]any)
	addresses, networks, first := map[string]any{}, map[string]any{}, ""
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		var list []any
		for _, one := range hot.List(byName[name]) {
			address, _ := one.(map[string]any)
			list = append(list, address["addr"])
			if first == "" {
				first = hot.Text(address["addr"])
			}
		}
		keys := []string{name}
		for _, one := range known {
			if one["name"] == name {
				keys = append(keys, hot.Text(one["id"]))
			}
		}
		for _, key := range keys {
			addresses[key], networks[key] = byName[name], list
		}
	}
	return map[string]any{"name": shown["name"], "addresses": addresses, "networks": networks, "first_address": first, "show": shown, "accessIPv4": shown["accessIPv4"],
		"accessIPv6": shown["accessIPv6"], "instance_name": shown["OS-EXT-SRV-ATTR:instance_name"]}, nil
}

// keyPair has its name as physical id. Key pairs carry no mark: a key pair from before the request belongs to another owner.
var keyPair = kind{
	properties: map[string]property{"name": {form: words, required: true}, "public_key": {form: words}, "save_private_key": {form: truth}, "type": {form: words}},
	create: func(ctx context.Context, j *job) error {
		if !j.resource.Asked {
			var there map[string]any
			err := call(ctx, j.nova(), http.MethodGet, "os-keypairs/"+url.PathEscape(j.text("name")), nil, &there)
			if err == nil {
				return fmt.Errorf("the user has a key pair called %s already", j.text("name"))
			}
			if gentle(err) != nil {
				return err
			}
		}
		return j.make(ctx, nova, func(ctx context.Context) (string, error) {
			body, client := map[string]any{"name": j.text("name")}, j.nova()
			if key := j.text("public_key"); key != "" {
				body["public_key"] = key
			}
			if kind := j.text("type"); kind != "" {
				body["type"], client = kind, j.since("2.2")
			}
			var answer struct{ Keypair map[string]any }
			if err := call(ctx, client, http.MethodPost, "os-keypairs", map[string]any{"keypair": body}, &answer); err != nil {
				return "", err
			}
			if j.properties["save_private_key"] == true {
				j.resource.Data = map[string]string{"private_key": hot.Text(answer.Keypair["private_key"])}
			}
			return j.text("name"), nil
		})
	},
	lookup: func(ctx context.Context, j *job) (string, error) {
		var there map[string]any
		err := call(ctx, j.nova(), http.MethodGet, "os-keypairs/"+url.PathEscape(j.text("name")), nil, &there)
		if err != nil {
			return "", gentle(err)
		}
		if j.text("public_key") == "" && j.resource.Action == actionCreate {
			// Its private half was in the lost answer.
			return "", gentle(call(ctx, j.nova(), http.MethodDelete, "os-keypairs/"+url.PathEscape(j.text("name")), nil, nil))
		}
		return j.text("name"), nil
	},
	remove: func(ctx context.Context, j *job) error {
		return gentle(call(ctx, j.nova(), http.MethodDelete, "os-keypairs/"+url.PathEscape(j.resource.PhysicalID), nil, nil))
	},
	attributes: func(ctx context.Context, j *job) (map[string]any, error) {
		var answer struct{ Keypair map[string]any }
		if err := call(ctx, j.nova(), http.MethodGet, "os-keypairs/"+url.PathEscape(j.resource.PhysicalID), nil, &answer); err != nil {
			return nil, err
		}
		made := withShow(answer.Keypair)
		made["private_key"] = j.resource.Data["private_key"]
		return made, nil
	},
	alone: func(was, is map[string]any) bool { return was["name"] == is["name"] },
	adopt: func(one *resource, attributes map[string]any) {
		one.Data = map[string]string{"private_key": hot.Text(attributes["private_key"])}
	},
}

// serverGroup: groups carry no mark, and several may have one name. Groups from before the request are recorded.
var serverGroup = kind{
	properties: map[string]property{"name": {form: words}, "policies": {form: list, fallback: []any{"anti-affinity"}}, "rules": {form: object}},
	create: func(ctx context.Context, j *job) error {
		if !j.resource.Asked {
			there, err := j.groups(ctx)
			if err != nil {
				return err
			}
			for _, id := range there {
				if err := j.note(ctx, id, "there before"); err != nil {
					return err
				}
			}
		}
		return j.make(ctx, nova, func(ctx context.Context) (string, error) {
			policies := hot.List(j.properties["policies"])
			if len(policies) != 1 {
				return "", wrong("a server group has one policy")
			}
			body, client := map[string]any{"name": j.name(), "policies": policies}, j.since("2.15")
			if rules := j.properties["rules"]; rules != nil {
				body, client = map[string]any{"name": j.name(), "policy": policies[0], "rules": rules}, j.since("2.64")
			}
			var answer map[string]map[string]any
			err := call(ctx, client, http.MethodPost, "os-server-groups", map[string]any{"server_group": body}, &answer)
			return hot.Text(answer["server_group"]["id"]), err
		})
	},
	lookup: func(ctx context.Context, j *job) (string, error) {
		there, err := j.groups(ctx)
		for _, id := range there {
			if j.resource.Data[id] == "" {
				return id, err
			}
		}
		return "", err
	},
	remove: func(ctx context.Context, j *job) error {
		return gentle(call(ctx, j.nova(), http.MethodDelete, "os-server-groups/"+j.resource.PhysicalID, nil, nil))
	},
	attributes: func(ctx context.Context, j *job) (map[string]any, error) {
		var answer map[string]map[string]any
		if err := call(ctx, j.nova(), http.MethodGet, "os-server-groups/"+j.resource.PhysicalID, nil, &answer); err != nil {
			return nil, err
		}
		return withShow(answer["server_group"]), nil
	},
}

// groups are the ids of the project's server groups with the resource's name.
func (j *job) groups(ctx context.Context) (ids []string, err error) {
	var answer map[string][]map[string]any
	if err := call(ctx, j.nova(), http.MethodGet, "os-server-groups", nil, &answer); err != nil {
		return nil, err
	}
	for _, group := range answer["server_groups"] {
		if group["name"] == j.name() {
			ids = append(ids, hot.Text(group["id"]))
		}
	}
	return ids, nil
}
