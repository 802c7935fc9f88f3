package openstack

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/gophercloud/gophercloud/v2"
)

// MetadataNamespaces lists the namespaces of Glance's metadata definitions that are for resources of a type of Heat's, each with the fields of
// Glance's API (https://docs.openstack.org/api-ref/image/v2/metadefs-index.html).
func (g Glance) MetadataNamespaces(ctx context.Context, resourceType string) ([]any, error) {
	var all []any
	for query := (url.Values{"resource_types": {resourceType}}); ; {
		page, err := g.metadefs(ctx, "metadefs/namespaces?"+query.Encode())
		list, _ := page["namespaces"].([]any)
		all = append(all, list...)
		if err != nil || page["next"] == nil || len(list) == 0 {
			return all, err
		}
		last, _ := list[len(list)-1].(map[string]any)
		name, _ := last["namespace"].(string)
		query.Set("marker", name)
	}
}

// MetadataObjects lists the objects of such a namespace; of one that is not there, none.
func (g Glance) MetadataObjects(ctx context.Context, namespace string) ([]any, error) {
	page, err := g.metadefs(ctx, "metadefs/namespaces/"+url.PathEscape(namespace)+"/objects")
	list, _ := page["objects"].([]any)
	return list, err
}

// metadefs reads a path of Glance's API; the result is empty for a missing one.
func (g Glance) metadefs(ctx context.Context, path string) (page map[string]any, err error) {
	client, err := g.client()
	if err != nil {
		return nil, err
	}
	_, err = client.Get(ctx, client.ServiceURL(path), &page, nil)
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask Glance for its metadata definitions: %w", err)
	}
	return page, nil
}
