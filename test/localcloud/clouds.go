package localcloud

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/burano/burano/test/localcloud/keystone"
)

// WriteClouds writes the file clouds.yaml of a cloud's state folder, with an entry for each user: burano-admin, burano-demo,
// burano-other, and burano-service for Burano itself. It returns the file's path.
func WriteClouds(config Config) (path string, err error) {
	var text strings.Builder
	text.WriteString("# The local cloud of Burano. The passwords are for loopback only.\nclouds:\n")
	for _, entry := range []struct{ project, user string }{{"admin", "admin"}, {"demo", "demo"}, {"other", "other"}, {"service", "burano"}} {
		fmt.Fprintf(&text, `  burano-%[1]s:
    region_name: %[3]s
    identity_api_version: 3
    auth_type: password
    auth:
      auth_url: %[4]s/identity/v3
      username: %[2]s
      password: %[2]s
      project_name: %[1]s
      user_domain_name: Default
      project_domain_name: Default
`, entry.project, entry.user, keystone.Region, config.Endpoint())
	}
	path = filepath.Join(config.StateDir, "clouds.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		return "", fmt.Errorf("write %s: %w", path, err)
	}
	return path, nil
}
