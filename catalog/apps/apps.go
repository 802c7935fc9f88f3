// Package apps holds the packages that come with Burano, each in a folder of its name as it would be in a zip.
//
// io.murano is the core library: Environment, Application, the servers, networks and volumes of resources (resources/Instance.yaml,
// resources/Volume.yaml), the stacks and notifiers of system. io.murano.applications is the library for groups of servers. com.mirantis.docker and
// com.example.docker are Murano's Kubernetes applications; object models for Murano load with them. io.burano.… are applications in containers, whose
// images consist of Debian's packages (images/applications), and classes that publish applications on servers.
//
// A method with "Native: true", or "Native: prompt" when it hardly waits, has its body in Go: in catalog/core, or in orchestrator/native when it needs a
// cloud.
package apps

import (
	"embed"
	"fmt"
	"io/fs"

	"github.com/burano/burano/catalog"
)

//go:embed all:io.murano all:io.murano.applications all:com.mirantis.docker.Interfaces all:com.mirantis.docker.kubernetes.KubernetesCluster
//go:embed all:com.mirantis.docker.DockerStandaloneHost all:com.mirantis.docker.kubernetes.KubernetesPod all:com.example.docker.DockerApp
//go:embed all:io.burano.Gateways all:io.burano.GitSite all:io.burano.Glance all:io.burano.Guestbook all:io.burano.HTTPd all:io.burano.HTTPdSite all:io.burano.HelmRelease all:io.burano.Keystone all:io.burano.MariaDB all:io.burano.Memcached all:io.burano.Placement all:io.burano.RabbitMQ
//go:embed all:io.burano.openstack all:io.burano.Neutron all:io.burano.Nova all:io.burano.NovaCompute all:io.burano.NovaConductor all:io.burano.NovaScheduler all:io.burano.Nginx all:io.burano.NginxSite all:io.burano.PostgreSQL all:io.burano.Prometheus all:io.burano.PublicImage all:io.burano.Redis all:io.burano.Route all:io.burano.Tomcat
var folders embed.FS

// Packages returns the embedded packages, ordered by name.
func Packages() ([]*catalog.Package, error) {
	entries, err := fs.ReadDir(folders, ".")
	if err != nil {
		return nil, fmt.Errorf("list the embedded packages: %w", err)
	}
	packages := make([]*catalog.Package, 0, len(entries))
	for _, entry := range entries {
		folder, err := fs.Sub(folders, entry.Name())
		if err != nil {
			return nil, fmt.Errorf("embedded package %s: %w", entry.Name(), err)
		}
		p, err := catalog.ReadEmbedded(folder)
		if err != nil {
			return nil, fmt.Errorf("embedded package %s: %w", entry.Name(), err)
		}
		packages = append(packages, p)
	}
	return packages, nil
}
