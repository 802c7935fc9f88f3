package nova

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/test/localcloud/answer"
	"github.com/burano/burano/test/localcloud/neutron"
)

// Metadata answers a server's requests at 169.254.169.254: the files of its config drive under /openstack, and the basics in Amazon's layout under /latest
// (https://docs.openstack.org/nova/latest/user/metadata.html). Each version has the same content.
func (s *Service) Metadata(serverID string) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			return answer.Failure{Status: http.StatusMethodNotAllowed, Message: "The metadata service is read with GET."}
		}
		files, err := s.metadata(r, serverID)
		if err != nil {
			return err
		}
		path := strings.Trim(r.URL.Path, "/")
		content, ok := files[path]
		switch {
		case ok && strings.HasSuffix(path, ".json"):
			w.Header().Set("Content-Type", "application/json")
		case ok && path == "openstack/latest/user_data":
			w.Header().Set("Content-Type", "application/octet-stream")
		default:
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		}
		if !ok {
			listing := children(files, path)
			if len(listing) == 0 {
				return fault.New(fault.NotFound, "The metadata service has no %s.", r.URL.Path)
			}
			content = []byte(strings.Join(listing, "\n"))
		}
		_, _ = w.Write(content) // a broken connection is the server's to notice
		return nil
	})
}

// The version of Amazon's layout that clients begin with, and the version of OpenStack's that has just the files of the config drive.
var (
	amazonVersions    = []string{"2009-04-04", "latest"}
	openstackVersions = []string{"2015-10-15", "latest"}
)

// metadata are the files a server may read.
func (s *Service) metadata(r *http.Request, serverID string) (map[string][]byte, error) {
	server, err := s.Get(r.Context(), "", serverID)
	if err != nil {
		return nil, err
	}
	var plugged []neutron.Interface
	for _, in := range server.Interfaces {
		described, err := s.networks.DescribePort(r.Context(), in.PortID)
		if err != nil {
			return nil, fmt.Errorf("look at port %s: %w", in.PortID, err)
		}
		plugged = append(plugged, described)
	}
	drive, err := configDrive(server, plugged)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, version := range openstackVersions {
		for path, content := range drive {
			files["openstack/"+version+strings.TrimPrefix(path, "openstack/latest")] = content
		}
	}
	basics := map[string]string{
		"instance-id":                 "i-" + strings.ReplaceAll(server.ID, "-", "")[:8],
		"hostname":                    server.Hostname,
		"local-hostname":              server.Hostname,
		"public-hostname":             server.Hostname,
		"security-groups":             strings.Join(server.SecurityGroups, "\n"),
		"placement/availability-zone": server.AvailabilityZone,
	}
	basics["instance-type"] = s.flavorOfServer(server).Name
	for _, address := range s.networks.ServerAddresses(server.ID) {
		name := map[string]string{"fixed": "local-ipv4", "floating": "public-ipv4"}[address.Type]
		if _, told := basics[name]; !told {
			basics[name] = address.IP.String()
		}
	}
	if server.KeyName != "" {
		basics["public-keys/0/openssh-key"] = server.PublicKey
	}
	for _, version := range amazonVersions {
		for name, value := range basics {
			files[version+"/meta-data/"+name] = []byte(value)
		}
		if server.KeyName != "" {
			// The list of keys names them: "0=name".
			files[version+"/meta-data/public-keys"] = []byte("0=" + server.KeyName)
		}
		if len(server.UserData) > 0 {
			files[version+"/user-data"] = server.UserData
		}
	}
	return files, nil
}

// children lists the content of a folder for clients: below Amazon's versions with a slash after folders.
func children(files map[string][]byte, folder string) []string {
	var found []string
	for path := range files {
		rest, inside := strings.CutPrefix(path, folder+"/")
		if folder == "" {
			rest, inside = path, true
		}
		if !inside {
			continue
		}
		name, _, isFolder := strings.Cut(rest, "/")
		if isFolder && folder != "" && folder != "openstack" {
			name += "/"
		}
		found = append(found, name)
	}
	slices.Sort(found)
	// A folder that is a file as well is listed as the folder.
	return slices.DeleteFunc(slices.Compact(found), func(name string) bool { return slices.Contains(found, name+"/") })
}
