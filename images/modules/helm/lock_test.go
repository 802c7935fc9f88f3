package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestOneMasterWorksOnARelease(t *testing.T) {
	cluster := fake.NewClientset()
	name := leaseName("shop", "pages")
	try := func(holder string, run func(context.Context) error) error {
		return hold(cluster, name, holder, 30*time.Second, run)
	}
	ran := 0
	err := try("one", func(ctx context.Context) error {
		err := hold(cluster, name, "two", time.Second, func(context.Context) error { ran++; return nil })
		if !errors.Is(err, errBusy) || !strings.Contains(err.Error(), "on master one") {
			t.Errorf("another master while one works: %v", err)
		}
		// A program of the same master can only begin when the former has ended.
		if err := try("one", func(context.Context) error { ran++; return nil }); err != nil {
			t.Errorf("what the same master left: %v", err)
		}
		return ctx.Err()
	})
	if err != nil || ran != 1 {
		t.Fatalf("ran %d times: %v", ran, err)
	}
	if err := try("two", func(context.Context) error { ran++; return nil }); err != nil || ran != 2 {
		t.Errorf("another master afterwards: %v", err)
	}
	if _, err := cluster.CoordinationV1().Leases(leaseNamespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
