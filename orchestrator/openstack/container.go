package openstack

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/objectstorage/v1/containers"
	"github.com/gophercloud/gophercloud/v2/openstack/objectstorage/v1/objects"

	"github.com/burano/burano/internal/fault"
)

// Objects are those of containers that projects share with the service user.
type Objects struct {
	provider        *gophercloud.ProviderClient
	project, userID string // the service user's; project is "" when its token has none
}

// objectReader is the service user's name in a container's access lists of Swift (https://docs.openstack.org/swift/latest/overview_acl.html).
func (o Objects) objectReader() string { return cmp.Or(o.project, "*") + ":" + o.userID }

// ShareContainer makes a container of this name in the project's object store, unless it is there, and lets the service user read and write
// its objects from then on, without the project's trust. It returns the container's address.
func (o Objects) ShareContainer(ctx context.Context, p *Project, name string) (address string, err error) {
	ctx = WithOutages(ctx, Outages{Patience: callerPatience})
	client, err := openstack.NewObjectStorageV1(p.provider, p.endpoint)
	if err != nil {
		return "", fmt.Errorf("find an object store in the service catalog: %w", err)
	}
	me := o.objectReader()
	var read, write []string
	header, err := containers.Get(ctx, client, name, nil).Extract()
	switch {
	case gophercloud.ResponseCodeIs(err, http.StatusNotFound):
	case gophercloud.ResponseCodeIs(err, http.StatusForbidden):
		return "", fault.New(fault.Forbidden, "The object store refuses the project's container %s: the roles of --trust-roles must be among those that it lets operate it", name)
	case err != nil:
		return "", fmt.Errorf("look at container %s: %w", name, err)
	default:
		read, write = header.Read, header.Write
		if slices.Contains(read, me) && slices.Contains(write, me) {
			return client.ServiceURL(name), nil
		}
	}
	add := func(list []string) string {
		list = slices.DeleteFunc(slices.Clone(list), func(one string) bool { return one == "" || one == me })
		return strings.Join(append(list, me), ",")
	}
	err = containers.Create(ctx, client, name, containers.CreateOpts{ContainerRead: add(read), ContainerWrite: add(write)}).Err
	if gophercloud.ResponseCodeIs(err, http.StatusForbidden) {
		return "", fault.New(fault.Forbidden, "The object store refuses to make the project's container %s: the roles of --trust-roles must be among those that it lets operate it", name)
	}
	if err != nil {
		return "", fmt.Errorf("make container %s: %w", name, err)
	}
	return client.ServiceURL(name), nil
}

// container is where an address of ShareContainer leads, as the service user.
func (o Objects) container(address string) (client *gophercloud.ServiceClient, name string) {
	slash := strings.LastIndex(address, "/")
	return &gophercloud.ServiceClient{ProviderClient: o.provider, Endpoint: address[:slash+1], Type: "object-store"}, address[slash+1:]
}

// PutObject writes an object of a container that ShareContainer has made.
func (o Objects) PutObject(ctx context.Context, address, name string, content []byte) error {
	client, container := o.container(address)
	err := objects.Create(WithOutages(ctx, Outages{Patience: callerPatience}), client, container, name,
		objects.CreateOpts{Content: bytes.NewReader(content), ContentType: "application/octet-stream"}).Err
	if err != nil {
		return fmt.Errorf("write %s into %s: %w", name, address, err)
	}
	return nil
}

// Object reads an object of a container that ShareContainer has made; false when it is not there.
func (o Objects) Object(ctx context.Context, address, name string) (content []byte, found bool, err error) {
	client, container := o.container(address)
	result := objects.Download(WithOutages(ctx, Outages{Patience: callerPatience}), client, container, name, nil)
	if gophercloud.ResponseCodeIs(result.Err, http.StatusNotFound) {
		return nil, false, nil
	}
	if result.Err == nil {
		content, err = io.ReadAll(result.Body)
		err = errors.Join(err, result.Body.Close())
	}
	if err := errors.Join(result.Err, err); err != nil {
		return nil, false, fmt.Errorf("read %s of %s: %w", name, address, err)
	}
	return content, true, nil
}

// DeleteObject removes an object of a container that ShareContainer has made. A missing object is no error. Neither is a container that its project has
// removed, or shares no more: its contents are the project's own.
func (o Objects) DeleteObject(ctx context.Context, address, name string) error {
	client, container := o.container(address)
	err := objects.Delete(WithOutages(ctx, Outages{Patience: callerPatience}), client, container, name, nil).Err
	if err != nil && !gophercloud.ResponseCodeIs(err, http.StatusNotFound) && !gophercloud.ResponseCodeIs(err, http.StatusForbidden) {
		return fmt.Errorf("delete %s of %s: %w", name, address, err)
	}
	return nil
}
