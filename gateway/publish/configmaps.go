package publish

import (
	"context"
	"sync"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/burano/burano/gateway/route"
)

// configMaps follows single ConfigMaps, by name: a cluster may have many that are none of the gateways' business.
type configMaps struct {
	ctx     context.Context // ends all of them
	client  rest.Interface
	watch   func(what string, informer cache.SharedIndexInformer) error
	wake    func() // the loop, when one is known
	running map[types.NamespacedName]followedMap
	group   *sync.WaitGroup
}

type followedMap struct {
	informer cache.SharedIndexInformer
	end      context.CancelFunc
}

// of returns the ConfigMaps that exist of these, and follows no others from now on. known is false until all were read; the loop is woken then.
func (c *configMaps) of(names []types.NamespacedName) (list []*core.ConfigMap, known bool) {
	known = true
	wanted := make(map[types.NamespacedName]bool, len(names))
	for _, name := range names {
		wanted[name] = true
		one, runs := c.running[name]
		if !runs {
			var err error
			if one, err = c.follow(name); err != nil {
				known = false
				continue
			}
			c.running[name] = one
		}
		known = known && one.informer.HasSynced()
		list = append(list, objects[*core.ConfigMap](one.informer)...)
	}
	for name, one := range c.running {
		if !wanted[name] {
			one.end()
			delete(c.running, name)
		}
	}
	return list, known
}

func (c *configMaps) follow(name types.NamespacedName) (followedMap, error) {
	from := cache.NewListWatchFromClient(c.client, "configmaps", name.Namespace, fields.OneTermEqualSelector(meta.ObjectNameField, name.Name))
	list := from.ListWithContextFunc
	from.ListWithContextFunc = func(ctx context.Context, options meta.ListOptions) (runtime.Object, error) {
		found, err := list(ctx, options)
		if apierrors.IsForbidden(err) { // the rights of a former release: as if there were none
			return &core.ConfigMapList{}, nil
		}
		return found, err
	}
	informer := cache.NewSharedIndexInformer(from, &core.ConfigMap{}, 0, nil)
	if err := informer.SetTransform(authoritiesAlone); err != nil {
		return followedMap{}, err
	}
	if err := c.watch("the ConfigMap "+name.String(), informer); err != nil {
		return followedMap{}, err
	}
	ctx, end := context.WithCancel(c.ctx)
	c.group.Go(func() { informer.RunWithContext(ctx) })
	c.group.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			c.wake()
		}
	})
	return followedMap{informer, end}, nil
}

// authoritiesAlone leaves out all data of a ConfigMap that gateways do not need.
func authoritiesAlone(object any) (any, error) {
	has, is := object.(*core.ConfigMap)
	if !is {
		return object, nil
	}
	only := &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Namespace: has.Namespace, Name: has.Name, UID: has.UID, ResourceVersion: has.ResourceVersion}}
	if text, there := has.Data[authoritiesKey]; there {
		only.Data = map[string]string{authoritiesKey: text[:min(len(text), route.MaxAuthoritiesSize+1)]} // one that is too long stays so
	}
	return only, nil
}
