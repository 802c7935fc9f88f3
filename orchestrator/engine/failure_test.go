package engine

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
)

func TestAFailureThatSeveralObjectsWaitedForIsReportedOnce(t *testing.T) {
	of := func(class string, err error) error {
		return &methodError{method: &muranopl.Method{Class: &muranopl.Class{Name: class}, Name: "deploy"}, err: err}
	}
	refused := errors.New("claim data has 10Gi and cannot get 20Gi")
	failed := failedWith("", errors.Join(of("a.Pod", refused), of("a.Application", refused), of("a.Other", errors.New(refused.Error()))))
	var texts []string
	for _, one := range failed.lines {
		texts = append(texts, one.text)
	}
	require.Equal(t, []string{"a.Pod.deploy: claim data has 10Gi and cannot get 20Gi", "a.Other.deploy: claim data has 10Gi and cannot get 20Gi"}, texts, "the last one is another error")
}
