package native

import (
	"errors"
	"slices"
	"sync"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/panics"
)

// objects are those of the model as it is to be; none while the environment is deleted.
type objects struct{ model func() *muranopl.Object }

// find returns the object with this id, or nil.
func (o objects) find(id string) *muranopl.Object {
	root := o.model()
	if root == nil {
		return nil
	}
	var found *muranopl.Object
	root.Walk(func(object *muranopl.Object) bool {
		if object.ID() == id {
			found = object
		}
		return found == nil
	})
	return found
}

// has reports whether an object of the model has this id.
func (o objects) has(id string) bool { return o.find(id) != nil }

// all returns every object of the class.
func (o objects) all(class string) []*muranopl.Object { return o.each(class)[0] }

// clusters returns every cluster, and all gateways without one.
func (o objects) clusters() []*muranopl.Object {
	return slices.Concat(o.each(classCluster, classGateways)...)
}

// each returns the objects of each class.
func (o objects) each(classes ...string) [][]*muranopl.Object {
	found := make([][]*muranopl.Object, len(classes))
	if root := o.model(); root != nil {
		root.Walk(func(object *muranopl.Object) bool {
			for i, class := range classes {
				if object.Class().IsEmbedded(class) {
					found[i] = append(found[i], object)
				}
			}
			return true
		})
	}
	return found
}

// clusterOf is whose node an instance, or another object, is; nil for nobody's.
func clusterOf(object *muranopl.Object) *muranopl.Object {
	if cluster := object.FindEmbedded(classCluster); cluster != nil {
		return cluster
	}
	return object.FindEmbedded(classGateways)
}

// alone says whether a cluster is of gateways and nothing else.
func alone(cluster *muranopl.Object) bool { return cluster.Class().IsEmbedded(classGateways) }

// each calls do for every object at once, waits for all, and joins their errors.
func each(objects []*muranopl.Object, do func(*muranopl.Object) error) error {
	errs := make([]error, len(objects))
	var group sync.WaitGroup
	for i, object := range objects {
		group.Go(func() { errs[i] = panics.Run(func() error { return do(object) }) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// once has the actions that a task does one time.
type once struct {
	mutex sync.Mutex
	done  map[string]func() error
}

// do runs the function of the first caller with this key; later and concurrent callers wait for it and get the same error.
func (o *once) do(key string, run func() error) error {
	o.mutex.Lock()
	if o.done == nil {
		o.done = map[string]func() error{}
	}
	if o.done[key] == nil {
		o.done[key] = sync.OnceValue(run)
	}
	outcome := o.done[key]
	o.mutex.Unlock()
	return outcome()
}
