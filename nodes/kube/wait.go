package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/internal/wait"
)

// Ref names one object.
type Ref struct {
	APIVersion, Kind, Namespace, Name string
}

func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Condition gets an object (nil when it is not there) and returns whether the wait is over, and if not, what is missing. An error ends the wait.
type Condition func(object *unstructured.Unstructured) (done bool, missing string, err error)

// Wait watches an object until condition holds or ctx ends; then the error is what was missing last.
func Wait(ctx context.Context, config *rest.Config, ref Ref, condition Condition) error {
	client, err := NewClient(config)
	if err != nil {
		return err
	}
	missing := "the API server has not answered yet"
	for {
		err := client.waitOnce(ctx, ref, condition, &missing)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("wait for %s: %w: %s", ref, context.Cause(ctx), missing)
		}
		if !passing(err) {
			return fmt.Errorf("wait for %s: %w", ref, err)
		}
		if !errors.Is(err, errWatchEnded) && !cutShort(err) {
			missing = err.Error()
		}
		_ = wait.Pause(ctx, 100*time.Millisecond) // at its end the next check returns what is missing
	}
}

// cutShort is true if a request was not sent because its turn would come after the context's deadline. This is no fact about the object. The error of
// golang.org/x/time/rate has no type.
func cutShort(err error) bool { return strings.Contains(err.Error(), "would exceed context deadline") }

// conditionError is an error of the condition itself: the wait cannot succeed any more.
type conditionError struct{ error }

func (e conditionError) Unwrap() error { return e.error }

// passing is true if a wait may go on after an error: the API server may be restarting, or just have begun.
func passing(err error) bool {
	var ours conditionError
	if errors.As(err, &ours) {
		return false
	}
	return !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) && !apierrors.IsUnauthorized(err)
}

// callPatience is how long one call is repeated while the API server, or the etcd behind it, cannot answer: an election after the death of
// the member that led takes some seconds.
const callPatience = 30 * time.Second

// persist calls until it succeeds, fails for good, or callPatience is over.
func persist(ctx context.Context, call func(context.Context) error) error {
	return wait.Every(tryAgain).For(callPatience).Until(ctx, func(ctx context.Context) error {
		err := call(ctx)
		if err != nil && passing(err) {
			return wait.Again(err)
		}
		return err
	})
}

func (c *Client) waitOnce(ctx context.Context, ref Ref, condition Condition, missing *string) error {
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return conditionError{err}
	}
	resource, err := c.resource(version.WithKind(ref.Kind), ref.Namespace)
	if err != nil {
		return err
	}
	only := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", ref.Name).String()}
	list, err := resource.List(ctx, only)
	if err != nil {
		return err
	}
	var object *unstructured.Unstructured
	if len(list.Items) > 0 {
		object = &list.Items[0]
	}
	if done, err := check(condition, object, missing); done || err != nil {
		return err
	}
	only.ResourceVersion = list.GetResourceVersion()
	return follow(ctx, resource, only, condition, missing)
}

func follow(ctx context.Context, resource dynamic.ResourceInterface, only metav1.ListOptions, condition Condition, missing *string) error {
	events, err := resource.Watch(ctx, only)
	if err != nil {
		return err
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, open := <-events.ResultChan():
			if !open {
				return errWatchEnded
			}
			var object *unstructured.Unstructured
			switch event.Type {
			case watch.Added, watch.Modified:
				object, _ = event.Object.(*unstructured.Unstructured)
			case watch.Deleted:
			case watch.Error:
				return apierrors.FromObject(event.Object)
			default:
				continue
			}
			if done, err := check(condition, object, missing); done || err != nil {
				return err
			}
		}
	}
}

func check(condition Condition, object *unstructured.Unstructured, missing *string) (bool, error) {
	done, text, err := condition(object)
	if err != nil {
		return false, conditionError{err}
	}
	if text != "" {
		*missing = text
	}
	return done, nil
}

// NodeRef names a node.
func NodeRef(name string) Ref { return Ref{APIVersion: "v1", Kind: "Node", Name: name} }

// NodeReady holds when a node takes pods.
func NodeReady(object *unstructured.Unstructured) (bool, string, error) {
	if object == nil {
		return false, "its kubelet has not registered it", nil
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, entry := range conditions {
		condition, _ := entry.(map[string]any)
		if condition["type"] != "Ready" {
			continue
		}
		if condition["status"] == "True" {
			return true, "", nil
		}
		return false, fmt.Sprintf("it is not Ready: %v", condition["message"]), nil
	}
	return false, "its kubelet has not reported yet", nil
}

// Available holds when as many replicas of a Deployment, ReplicaSet or ReplicationController are available as are wanted,
// and the controller has seen the newest wish.
func Available(object *unstructured.Unstructured) (bool, string, error) {
	if object == nil {
		return false, "it is not there", nil
	}
	wanted, found, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	if !found {
		wanted = 1
	}
	observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	available, _, _ := unstructured.NestedInt64(object.Object, "status", "availableReplicas")
	replicas, _, _ := unstructured.NestedInt64(object.Object, "status", "replicas")
	if observed < object.GetGeneration() || available < wanted || replicas > wanted {
		return false, fmt.Sprintf("%d of %d replicas are available", available, wanted), nil
	}
	return true, "", nil
}

// Exists holds when an object is there.
func Exists(object *unstructured.Unstructured) (bool, string, error) {
	return object != nil, "it is not there", nil
}

// Gone holds when an object does not exist.
func Gone(object *unstructured.Unstructured) (bool, string, error) {
	return object == nil, "it is still there", nil
}
