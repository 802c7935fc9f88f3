package heat

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/burano/burano/catalog/hot"
	"github.com/burano/burano/internal/fault"
)

// This file is the resource types of Nova and Heat's own.

// poll is the time between two looks at a server that is being made.
const poll = 50 * time.Millisecond

func (s *Service) resourceTypes() map[string]resourceType {
	all := map[string]resourceType{
		"OS::Nova::Server":       serverType(),
		"OS::Nova::KeyPair":      keyPairType(),
		"OS::Nova::ServerGroup":  serverGroupType(),
		"OS::Heat::RandomString": randomStringType(),
		"OS::Heat::Value":        valueType(),
		"OS::Heat::None":         noneType(),
		groupKind:                groupType(),
	}
	maps.Copy(all, s.networkTypes())
	maps.Copy(all, volumeTypes())
	return all
}

func serverType() resourceType {
	return resourceType{
		properties: map[string]property{
			"name": {kind: words, update: true}, "image": {kind: words, update: true}, "flavor": {kind: words, required: true, update: true},
			"key_name": {kind: words}, "networks": {kind: aList, update: true}, "user_data": {kind: words, update: true},
			"user_data_format": {kind: words, fallback: "RAW"}, "metadata": {kind: aMap, update: true}, "security_groups": {kind: aList},
			"availability_zone": {kind: words}, "config_drive": {kind: truth}, "scheduler_hints": {kind: aMap},
			"block_device_mapping_v2": {kind: aList},
			"flavor_update_policy":    {kind: words, fallback: "RESIZE", update: true},
			"image_update_policy":     {kind: words, fallback: "REBUILD", update: true},
			"user_data_update_policy": {kind: words, fallback: "REPLACE", update: true},
		},
		replaces: func(differing []string, next map[string]any) bool {
			return slices.ContainsFunc([]string{"flavor", "image", "user_data"}, func(name string) bool {
				return slices.Contains(differing, name) && hot.Text(next[name+"_update_policy"]) == "REPLACE"
			})
		},
		create: createServer,
		update: updateServer,
		remove: func(ctx context.Context, j *job) error {
			id := j.resource.PhysicalID
			if id == "" && j.resource.Data["asked"] == "" {
				return nil
			}
			if id == "" {
				found, err := j.adopt(ctx)
				if err != nil || found == "" {
					return err
				}
				id = found
			}
			return gone(j.compute().DeleteServer(ctx, j.project(), id))
		},
		attributes: serverAttributes,
		// A port serves one server at a time.
		deleteFirst: func(old, next map[string]any) bool {
			before := portsOf(old)
			return slices.ContainsFunc(portsOf(next), func(port string) bool { return slices.Contains(before, port) })
		},
	}
}

// updateServer applies the changed properties to an existing server.
func updateServer(ctx context.Context, j *job) error {
	differing := changed(j.resource.Properties, j.properties)
	id := j.resource.PhysicalID
	if slices.Contains(differing, "name") || slices.Contains(differing, "metadata") {
		if err := j.compute().RenameServer(ctx, j.project(), id, j.name(), j.metadata()); err != nil {
			return err
		}
	}
	if slices.Contains(differing, "networks") {
		ports, networks, err := j.interfaces()
		if err == nil {
			err = j.compute().ReplugServer(ctx, j.project(), id, ports, networks)
		}
		if err != nil {
			return err
		}
	}
	if slices.Contains(differing, "flavor") {
		if err := j.compute().ResizeServer(ctx, j.project(), id, j.text("flavor")); err != nil {
			return err
		}
	}
	if slices.Contains(differing, "user_data") && j.text("user_data_update_policy") == "REBUILD" {
		return notValid("user_data_update_policy REBUILD is not supported by the local cloud's Heat; it takes REPLACE and IGNORE")
	}
	if slices.Contains(differing, "image") {
		return j.compute().RebuildServer(ctx, j.project(), id, j.text("image"))
	}
	return nil
}

func portsOf(properties map[string]any) (ports []string) {
	for _, one := range hot.List(properties["networks"]) {
		entry, _ := one.(map[string]any)
		if port := hot.Text(entry["port"]); port != "" {
			ports = append(ports, port)
		}
	}
	return ports
}

func createServer(ctx context.Context, j *job) error {
	if j.resource.PhysicalID == "" {
		// A server that was asked for before a crash has no id here yet.
		found, err := j.adopt(ctx)
		if err != nil {
			return err
		}
		if found == "" {
			request, err := serverRequest(j)
			if err != nil {
				return err
			}
			server, err := j.compute().CreateServer(ctx, j.project(), request)
			if err != nil {
				return err
			}
			found = server.ID
		}
		if err := j.setID(found); err != nil {
			return err
		}
	}
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		server, err := j.compute().GetServer(ctx, j.project(), j.resource.PhysicalID)
		if err != nil {
			return err
		}
		switch server.Status {
		case "ACTIVE":
			return nil
		case "ERROR":
			return &inError{reason: server.Fault}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// adopt finds a server of this resource's name that belongs to no other resource.
func (j *job) adopt(ctx context.Context) (string, error) {
	candidates, err := j.compute().FindServers(ctx, j.project(), j.name())
	if err != nil || len(candidates) == 0 {
		return "", err
	}
	if j.text("name") != "" && j.resource.Data["asked"] == "" {
		// A name from the template may belong to any server; only an interrupted try leaves one of ours.
		return "", nil
	}
	taken := map[string]bool{}
	for _, stack := range j.service.stacks.All() {
		for _, resource := range append(slices.Collect(maps.Values(stack.Resources)), stack.Leftovers...) {
			taken[resource.PhysicalID] = true
		}
	}
	for _, id := range candidates {
		if !taken[id] {
			return id, nil
		}
	}
	return "", nil
}

func serverRequest(j *job) (ServerRequest, error) {
	r := ServerRequest{Name: j.name(), Flavor: j.text("flavor"), Image: j.text("image"), KeyName: j.text("key_name"), AvailabilityZone: j.text("availability_zone"), Metadata: j.metadata()}
	if format := j.text("user_data_format"); format != "RAW" && j.text("user_data") != "" {
		return r, notValid("user_data_format %s is not supported by the local cloud's Heat; it takes RAW", format)
	}
	r.UserData = []byte(j.text("user_data"))
	hints, _ := j.properties["scheduler_hints"].(map[string]any)
	r.Group = hot.Text(hints["group"])
	for _, group := range hot.List(j.properties["security_groups"]) {
		r.SecurityGroups = append(r.SecurityGroups, hot.Text(group))
	}
	var err error
	if r.Volumes, err = j.blockDevices(); err != nil {
		return r, err
	}
	if r.Ports, r.Networks, err = j.interfaces(); err != nil {
		return r, err
	}
	// Noted before the request, see adopt.
	if j.resource.Data == nil {
		j.resource.Data = map[string]string{}
	}
	j.resource.Data["asked"] = "yes"
	return r, j.service.storeResource(j.stack.ID, j.resource)
}

// interfaces are the ports that a server is to have, and the networks in which it is to have one each.
func (j *job) interfaces() (ports, networks []string, err error) {
	for _, one := range hot.List(j.properties["networks"]) {
		entry, _ := one.(map[string]any)
		port, network := hot.Text(entry["port"]), hot.Text(entry["network"])+hot.Text(entry["uuid"])
		for key := range entry {
			if !slices.Contains([]string{"port", "network", "uuid"}, key) && entry[key] != nil {
				return nil, nil, notValid("networks: %s is not supported by the local cloud's Heat; it takes port or network", key)
			}
		}
		switch {
		case port != "":
			ports = append(ports, port)
		case network != "":
			id, err := j.findNetwork(network)
			if err != nil {
				return nil, nil, err
			}
			networks = append(networks, id)
		default:
			return nil, nil, notValid("networks: each entry names a network or a port")
		}
	}
	return ports, networks, nil
}

// metadata is the desired metadata of the server.
func (j *job) metadata() map[string]string {
	wanted, _ := j.properties["metadata"].(map[string]any)
	metadata := map[string]string{}
	for key, value := range wanted {
		metadata[key] = hot.Text(value)
	}
	return metadata
}

func serverAttributes(ctx context.Context, j *job) (map[string]any, error) {
	server, err := j.compute().GetServer(ctx, j.project(), j.resource.PhysicalID)
	if err != nil {
		return nil, err
	}
	ids := map[string]string{}
	for _, network := range j.network().Networks(j.project()) {
		ids[network.Name] = network.ID
	}
	addresses, networks, first := map[string]any{}, map[string]any{}, ""
	for _, address := range j.network().ServerAddresses(server.ID) {
		if first == "" {
			first = address.IP.String()
		}
		shown := map[string]any{"addr": address.IP.String(), "version": 4, "OS-EXT-IPS:type": address.Type, "OS-EXT-IPS-MAC:mac_addr": address.MAC}
		for _, key := range []string{address.Network, ids[address.Network]} {
			addresses[key] = append(hot.List(addresses[key]), shown)
			networks[key] = append(hot.List(networks[key]), address.IP.String())
		}
	}
	return map[string]any{
		"name": server.Name, "addresses": addresses, "networks": networks, "first_address": first, "show": server.Show, "accessIPv4": "", "accessIPv6": "", "instance_name": server.Name,
	}, nil
}

func keyPairType() resourceType {
	return resourceType{
		properties: map[string]property{"name": {kind: words, required: true}, "public_key": {kind: words}, "save_private_key": {kind: truth}},
		create: func(ctx context.Context, j *job) error {
			again := j.resource.PhysicalID != ""
			if err := j.setID(j.text("name")); err != nil {
				return err
			}
			pair, err := j.compute().CreateKeyPair(ctx, j.project(), j.text("name"), j.text("public_key"))
			if again && fault.KindOf(err) == fault.Conflict && j.text("public_key") != "" {
				return nil // made before the crash
			}
			if fault.KindOf(err) == fault.Conflict && !again {
				// It belongs to another owner: not to be deleted with the stack.
				if forget := j.setID(""); forget != nil {
					return forget
				}
			}
			if err != nil {
				return err
			}
			j.resource.Data = map[string]string{"public_key": pair.PublicKey}
			if save, _ := j.properties["save_private_key"].(bool); save {
				j.resource.Data["private_key"] = pair.PrivateKey
			}
			return j.service.storeResource(j.stack.ID, j.resource)
		},
		remove: func(ctx context.Context, j *job) error {
			if j.resource.PhysicalID == "" {
				return nil
			}
			return gone(j.compute().DeleteKeyPair(ctx, j.project(), j.resource.PhysicalID))
		},
		attributes: func(_ context.Context, j *job) (map[string]any, error) {
			return map[string]any{"public_key": j.resource.Data["public_key"], "private_key": j.resource.Data["private_key"], "name": j.resource.PhysicalID}, nil
		},
		deleteFirst: func(old, next map[string]any) bool { return old["name"] == next["name"] },
	}
}

func serverGroupType() resourceType {
	return resourceType{
		properties: map[string]property{"name": {kind: words}, "policies": {kind: aList, fallback: []any{"anti-affinity"}}, "rules": {kind: aMap}},
		create: func(ctx context.Context, j *job) error {
			policies := hot.List(j.properties["policies"])
			if len(policies) != 1 {
				return notValid("policies: the local cloud's Heat takes one policy")
			}
			if err := j.setID(j.resource.ID); err != nil {
				return err
			}
			err := j.compute().CreateServerGroup(ctx, j.project(), j.resource.ID, j.name(), hot.Text(policies[0]))
			if err != nil {
				return errors.Join(err, j.setID(""))
			}
			return nil
		},
		remove: func(ctx context.Context, j *job) error {
			if j.resource.PhysicalID == "" {
				return nil
			}
			return gone(j.compute().DeleteServerGroup(ctx, j.project(), j.resource.PhysicalID))
		},
		attributes: func(_ context.Context, j *job) (map[string]any, error) {
			return map[string]any{"show": map[string]any{"id": j.resource.PhysicalID, "name": j.name(), "policies": j.properties["policies"]}}, nil
		},
	}
}

// randomStringType keeps its value as Heat does, with the resource.
func randomStringType() resourceType {
	classes := map[string]string{
		"lowercase": "abcdefghijklmnopqrstuvwxyz", "uppercase": "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "digits": "0123456789", "hexdigits": "0123456789ABCDEF",
		"octdigits": "01234567", "letters": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
		"lettersdigits": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
	}
	choose := func(alphabet string) (string, error) {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(alphabet))))
		if err != nil {
			return "", err
		}
		return alphabet[n.Int64() : n.Int64()+1], nil
	}
	return resourceType{
		properties: map[string]property{"length": {kind: number, fallback: 32.0}, "character_classes": {kind: aList}, "salt": {kind: words}},
		create: func(_ context.Context, j *job) error {
			if j.resource.PhysicalID != "" {
				return nil
			}
			length, _ := j.properties["length"].(float64)
			if length < 1 || length > 512 {
				return notValid("length %v is not between 1 and 512", length)
			}
			value, alphabet := "", ""
			wanted := hot.List(j.properties["character_classes"])
			if len(wanted) == 0 {
				wanted = []any{map[string]any{"class": "lettersdigits", "min": 1.0}}
			}
			for _, one := range wanted {
				entry, _ := one.(map[string]any)
				name := hot.Text(entry["class"])
				if name == "" {
					name = "lettersdigits"
				}
				letters, ok := classes[name]
				if !ok {
					return notValid("character class %s is not known", name)
				}
				alphabet += letters
				least, _ := entry["min"].(float64)
				for range int(least) {
					letter, err := choose(letters)
					if err != nil {
						return err
					}
					value += letter
				}
			}
			if len(value) > int(length) {
				return notValid("length %v is less than the characters the classes demand", length)
			}
			for len(value) < int(length) {
				letter, err := choose(alphabet)
				if err != nil {
					return err
				}
				value += letter
			}
			j.resource.Data = map[string]string{"value": value}
			return j.setID(j.resource.physicalName(j.stack.Name))
		},
		remove: func(context.Context, *job) error { return nil },
		attributes: func(_ context.Context, j *job) (map[string]any, error) {
			return map[string]any{"value": j.resource.Data["value"]}, nil
		},
		reference: func(r *Resource) any { return r.Data["value"] },
	}
}

func valueType() resourceType {
	keep := func(_ context.Context, j *job) error { return j.setID(j.resource.physicalName(j.stack.Name)) }
	return resourceType{
		properties: map[string]property{"value": {kind: anything, required: true, update: true}, "type": {kind: words, update: true}},
		create:     keep,
		update:     keep,
		remove:     func(context.Context, *job) error { return nil },
		attributes: func(_ context.Context, j *job) (map[string]any, error) {
			return map[string]any{"value": j.properties["value"]}, nil
		},
	}
}

// noneType takes everything and does nothing.
func noneType() resourceType {
	return resourceType{
		create: func(_ context.Context, j *job) error { return j.setID(fmt.Sprintf("none-%s", j.resource.ID)) },
		remove: func(context.Context, *job) error { return nil },
	}
}
