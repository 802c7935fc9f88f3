package storage

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/attachments"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/volumes"
)

// cinderRecords are the records of a cluster about volumes of Cinder.
type cinderRecords struct{ api *rest.Config }

func (r cinderRecords) Records(ctx context.Context) (kube.Attachments, error) {
	return kube.AttachmentsOf(ctx, r.api, kube.Cinder)
}

func (r cinderRecords) Again(ctx context.Context, record kube.Attachment) error {
	return kube.AttachAgain(ctx, r.api, record)
}

func (r cinderRecords) Forget(ctx context.Context, record kube.Attachment) error {
	return kube.ForgetAttachment(ctx, r.api, record)
}

func (r cinderRecords) End(ctx context.Context, volume kube.Volume, node string) error {
	return kube.EndAttachment(ctx, r.api, kube.Cinder, volume, node)
}

// AttachmentsOf are the attachments of a reachable cluster with these nodes.
func AttachmentsOf(ctx context.Context, environment, id, name string, list []nodes.Node, live *nodes.Cluster, project *openstack.Project) (attachments.Cluster, error) {
	storage, err := project.BlockStorage()
	if err != nil {
		return attachments.Cluster{}, err
	}
	api, err := live.Kubernetes(ctx)
	if err != nil {
		return attachments.Cluster{}, err
	}
	servers := map[string]string{}
	for _, node := range list {
		servers[node.Name] = node.Server
	}
	return attachments.Cluster{ID: volumes.ClusterID(environment, id), Name: name, Servers: servers, Cloud: storage, Kubernetes: cinderRecords{api}, Server: project.Server,
		Mounts: func(ctx context.Context, node, volume string) (bool, error) {
			return nodes.MountsVolume(ctx, live, node, volume)
		}}, nil
}
