package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/internal/wait"
)

// Define makes a cluster know kinds by their definitions, all at once, and waits until it serves them.
func Define(ctx context.Context, config *rest.Config, definitions []runtime.Object) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of the API server: %w", err)
	}
	all := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	problems := make([]error, len(definitions))
	var applied sync.WaitGroup
	for i, object := range definitions {
		one, err := plain(object)
		if err != nil {
			problems[i] = err
			continue
		}
		applied.Go(func() {
			found, err := all.Apply(ctx, one.GetName(), one, metav1.ApplyOptions{FieldManager: Manager, Force: true})
			if err != nil {
				problems[i] = fmt.Errorf("apply %s: %w", describe(one), err)
				return
			}
			problems[i] = wait.Every(100*time.Millisecond).For(callPatience).Until(ctx, func(ctx context.Context) error {
				if established(found) {
					return nil
				}
				if found, err = all.Get(ctx, one.GetName(), metav1.GetOptions{}); err != nil {
					return wait.Again(err)
				}
				return wait.Again(fmt.Errorf("the API server does not serve %s yet", describe(one)))
			})
		})
	}
	applied.Wait()
	return errors.Join(problems...)
}

func established(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(one any) bool {
		condition, _ := one.(map[string]any)
		return condition["type"] == "Established" && condition["status"] == "True"
	})
}
