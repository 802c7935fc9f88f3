package task

import (
	"errors"
	"slices"
	"sync"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/panics"
)

// Objects are the objects of the desired model; none while the environment is deleted.
type Objects struct{ Model func() *muranopl.Object }

// Find returns the object with this id, or nil.
func (o Objects) Find(id string) *muranopl.Object {
	root := o.Model()
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

// Has reports whether an object of the model has this id.
func (o Objects) Has(id string) bool { return o.Find(id) != nil }

// All returns every object of the class.
func (o Objects) All(class string) []*muranopl.Object { return o.each(class)[0] }

// Clusters returns every cluster, and all gateways without one.
func (o Objects) Clusters() []*muranopl.Object {
	return slices.Concat(o.each(ClassCluster, ClassGateways)...)
}

// each returns the objects of each class.
func (o Objects) each(classes ...string) [][]*muranopl.Object {
	found := make([][]*muranopl.Object, len(classes))
	if root := o.Model(); root != nil {
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

// ClusterOf is the cluster or the gateways that an object belongs to, such as the instance of a node; nil for other objects.
func ClusterOf(object *muranopl.Object) *muranopl.Object {
	if cluster := object.FindEmbedded(ClassCluster); cluster != nil {
		return cluster
	}
	return object.FindEmbedded(ClassGateways)
}

// OnlyGateways is true if a cluster consists of gateways only.
func OnlyGateways(cluster *muranopl.Object) bool { return cluster.Class().IsEmbedded(ClassGateways) }

// Each calls do for every object at once, waits for all, and joins their errors.
func Each(objects []*muranopl.Object, do func(*muranopl.Object) error) error {
	errs := make([]error, len(objects))
	var group sync.WaitGroup
	for i, object := range objects {
		group.Go(func() { errs[i] = panics.Run(func() error { return do(object) }) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// Once runs each action of a task one time.
type Once struct {
	mutex sync.Mutex
	done  map[string]func() error
}

// Do runs the function of the first caller with this key; later and concurrent callers wait for it and get the same error.
func (o *Once) Do(key string, run func() error) error {
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

// MapArgument returns an argument of a call that is a map, and an empty map for none.
func MapArgument(call muranopl.Call, name string) map[string]any {
	value, _ := call.Args[name].(map[string]any)
	if value == nil {
		value = map[string]any{}
	}
	return value
}
