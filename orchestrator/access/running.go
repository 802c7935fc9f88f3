// Package access answers the questions of the web about clusters outside of tasks: state, objects, logs, credentials and machines that join.
package access

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/scaling"
	"github.com/burano/burano/orchestrator/snapshot"
	"github.com/burano/burano/orchestrator/store"
)

// The shapes of a cluster's objects.
type (
	// Running are workloads and pods.
	Running = kube.Running
	// Workload makes pods.
	Workload = kube.Workload
	// Pod is a pod with its containers.
	Pod = kube.Pod
	// PodDetails are a pod and its events.
	PodDetails = kube.PodDetails
	// WorkloadRef names a workload.
	WorkloadRef = kube.WorkloadRef
	// WorkloadDetails are a workload and its events.
	WorkloadDetails = kube.WorkloadDetails
	// PodLog chooses a container and the lines of its log.
	PodLog = kube.Log
	// LogLine is a line of a log.
	LogLine = kube.LogLine
)

// NoAnswer is the error of a cluster that does not answer.
type NoAnswer struct{ Err error }

func (n *NoAnswer) Error() string { return "The cluster does not answer: " + n.Err.Error() }

func (n *NoAnswer) Unwrap() error { return n.Err }

// Clusters answers questions about clusters, and changes their objects, outside of tasks. It uses Burano's own access, and only for its methods: the caller checks the
// user's rights. Errors are a fault of kind NotFound for a cluster that never was up and for a missing object, one of kind Conflict for a refused change,
// and NoAnswer.
type Clusters struct {
	Secrets known.Secrets
	Config  known.Reach
	// Meters sample gateways; the keeper has the same.
	Meters *scaling.Meters
	// ClusterIDs are the ids of the clusters of an environment that were ever up.
	ClusterIDs func(ctx context.Context, environmentID string) ([]string, error)
}

// vault has the secrets of the cluster that an object of the environment is.
func (c Clusters) vault(environmentID, objectID string) known.EnvironmentVault {
	return known.EnvironmentVault{Secrets: c.Secrets, Environment: environmentID, Cluster: objectID}
}

// Traffic samples the counters of the gateways of a cluster.
func (c Clusters) Traffic(ctx context.Context, environmentID, objectID string) (scaling.Traffic, error) {
	return c.Meters.Traffic(ctx, environmentID, objectID)
}

// TakeSnapshot takes a snapshot of a cluster, for a reason of the user.
func (c Clusters) TakeSnapshot(ctx context.Context, environmentID, objectID, reason string) (store.Snapshot, error) {
	of := snapshot.Subject{EnvironmentID: environmentID, ClusterID: objectID, Kind: store.Requested, Reason: reason}
	return known.TakeSnapshot(ctx, c.Secrets, of, c.Config)
}

// Running lists the workloads and pods in a namespace of the cluster that an object of the environment is; "" stands for all namespaces.
func (c Clusters) Running(ctx context.Context, environmentID, objectID, namespace string) (found Running, err error) {
	return found, c.ask(ctx, environmentID, objectID, known.AnswerPatience, func(ctx context.Context, config *rest.Config) (err error) {
		found, err = kube.ReadRunning(ctx, config, namespace)
		return err
	})
}

// Pod reads a pod.
func (c Clusters) Pod(ctx context.Context, environmentID, objectID, namespace, name string) (found PodDetails, err error) {
	return found, c.ask(ctx, environmentID, objectID, known.AnswerPatience, func(ctx context.Context, config *rest.Config) (err error) {
		found, err = kube.ReadPod(ctx, config, namespace, name)
		return err
	})
}

// RecreatePod is kube.RecreatePod.
func (c Clusters) RecreatePod(ctx context.Context, environmentID, objectID, namespace, name string) error {
	return c.ask(ctx, environmentID, objectID, known.AnswerPatience, func(ctx context.Context, config *rest.Config) error {
		return kube.RecreatePod(ctx, config, namespace, name)
	})
}

// Workload reads a workload.
func (c Clusters) Workload(ctx context.Context, environmentID, objectID string, ref WorkloadRef) (found WorkloadDetails, err error) {
	return found, c.ask(ctx, environmentID, objectID, known.AnswerPatience, func(ctx context.Context, config *rest.Config) (err error) {
		found, err = kube.ReadWorkload(ctx, config, ref)
		return err
	})
}

// ScaleWorkload is kube.ScaleWorkload.
func (c Clusters) ScaleWorkload(ctx context.Context, environmentID, objectID string, ref WorkloadRef, pods int32) error {
	return c.ask(ctx, environmentID, objectID, known.AnswerPatience, func(ctx context.Context, config *rest.Config) error {
		return kube.ScaleWorkload(ctx, config, ref, pods)
	})
}

// RestartWorkload is kube.RestartWorkload.
func (c Clusters) RestartWorkload(ctx context.Context, environmentID, objectID string, ref WorkloadRef) error {
	return c.ask(ctx, environmentID, objectID, known.AnswerPatience, func(ctx context.Context, config *rest.Config) error {
		return kube.RestartWorkload(ctx, config, ref, time.Now())
	})
}

// ReadLog calls line for each line of a log that is there.
func (c Clusters) ReadLog(ctx context.Context, environmentID, objectID string, log PodLog, line func(LogLine) error) error {
	return c.ask(ctx, environmentID, objectID, 0, func(ctx context.Context, config *rest.Config) error {
		return kube.ReadLog(ctx, config, log, line)
	})
}

// FollowLog is kube.FollowLog.
func (c Clusters) FollowLog(ctx context.Context, environmentID, objectID string, log PodLog, line func(LogLine) error, state func(string) error) (end string, err error) {
	return end, c.ask(ctx, environmentID, objectID, 0, func(ctx context.Context, config *rest.Config) (err error) {
		end, err = kube.FollowLog(ctx, config, log, line, state)
		return err
	})
}

// ask calls do with access to a cluster's API server, for as long as the patience lasts; 0 stands for the context's.
func (c Clusters) ask(ctx context.Context, environmentID, objectID string, patience time.Duration, do func(context.Context, *rest.Config) error) error {
	_, cluster, err := known.Open(ctx, c.Secrets, environmentID, objectID, nodes.Config{Logger: c.Config.Logger, Connected: c.Config.Connected, Patience: known.ReachPatience})
	if err != nil {
		return err
	}
	defer cluster.Close()
	asked := ctx
	if patience > 0 {
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		asked = limited
	}
	config, err := cluster.Kubernetes(asked)
	if err == nil {
		err = do(asked, config)
	}
	return c.answer(ctx, err)
}

// answer sorts an error by whose it is.
func (c Clusters) answer(ctx context.Context, err error) error {
	var none *kube.NoContainer
	var refused *kube.Refusal
	var status apierrors.APIStatus
	switch {
	case err == nil, ctx.Err() != nil:
		return err
	case apierrors.IsNotFound(err):
		return fault.New(fault.NotFound, "The cluster has it not, or not any more: %w", err)
	case errors.As(err, &none):
		return fault.New(fault.NotFound, "%w", err)
	case errors.As(err, &refused):
		return fault.New(fault.Conflict, "%w", err)
	case errors.As(err, &status) && (apierrors.IsBadRequest(err) || apierrors.IsInvalid(err)):
		return fault.New(fault.Invalid, "Kubernetes refuses: %w", err) // such as the log of a container that has not begun
	case errors.As(err, &status) && (apierrors.IsForbidden(err) || apierrors.IsConflict(err)):
		return fault.New(fault.Conflict, "Kubernetes refuses: %w", err) // such as an object that an admission webhook refuses
	}
	return &NoAnswer{err}
}
