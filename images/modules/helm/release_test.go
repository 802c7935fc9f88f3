package main

import (
	"testing"

	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
)

func TestAFailedInstallThatWasReplacedIsNothingToGoBackTo(t *testing.T) {
	for _, one := range []struct {
		status      common.Status
		description string
		ran         bool
	}{
		{common.StatusDeployed, "Install complete", true},
		{common.StatusSuperseded, "Upgrade complete", true},
		{common.StatusSuperseded, replaced, false},
		{common.StatusFailed, "", false},
	} {
		if ran(&releasev1.Release{Info: &releasev1.Info{Status: one.status, Description: one.description}}) != one.ran {
			t.Errorf("%s, %s: it should be %t that it ran", one.status, one.description, one.ran)
		}
	}
}

func TestPodsOfAManifestsObjects(t *testing.T) {
	serving := map[string]any{"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "a"}}}}
	if which, has := podsOf("Deployment", "a", serving); !has || which.LabelSelector != "app=a" {
		t.Errorf("a Deployment's pods: %v %v", which, has)
	}
	if which, has := podsOf("Job", "a", nil); !has || which.LabelSelector != "batch.kubernetes.io/job-name=a" {
		t.Errorf("a Job's pods: %v %v", which, has)
	}
	if _, has := podsOf("Deployment", "a", map[string]any{}); has {
		t.Error("a Deployment without selector would have all pods")
	}
	if _, has := podsOf("Service", "a", serving); has {
		t.Error("a Service has no pods of its own")
	}
}
