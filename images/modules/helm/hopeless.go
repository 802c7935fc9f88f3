package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A container's fault may pass by itself within these times, as for the pods of a KubernetesPod: a registry may serve the image after all, another object
// may supply a reference or dependency, a pod of a former form may be removed.
const (
	formerPatience = 15 * time.Second
	imagePatience  = 45 * time.Second
	othersPatience = 2 * time.Minute
	crashes        = 3 // starts after the first, before a container that ends counts as failing
	look           = 2 * time.Second
)

var errHopeless = errors.New("it was given up before its time: what is wrong does not pass by itself")

// patienceWith returns how long a container may stay in its state; 0 is without limit.
func patienceWith(status corev1.ContainerStatus) time.Duration {
	waiting := status.State.Waiting
	switch {
	case waiting != nil && (waiting.Reason == "InvalidImageName" || waiting.Reason == "ErrImageNeverPull"):
		return formerPatience
	case waiting != nil && (waiting.Reason == "ErrImagePull" || waiting.Reason == "ImagePullBackOff"):
		return imagePatience
	case waiting != nil && strings.HasSuffix(waiting.Reason, "Error"):
		return othersPatience
	case status.RestartCount >= crashes && status.State.Running == nil:
		return othersPatience
	}
	return 0
}

// stays is the lasting state of a container of a pod.
type stays struct {
	pod, container string
	patience       time.Duration
}

// hopes remembers since when containers are not as they should be.
type hopes map[stays]time.Time

// over reports whether one has been so for longer than it may.
func (h hopes) over(pods []corev1.Pod, now time.Time) (over bool) {
	found := map[stays]bool{}
	for _, pod := range pods {
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			patience := patienceWith(status)
			if patience == 0 {
				continue
			}
			one := stays{string(pod.UID), status.Name, patience}
			found[one] = true
			if _, known := h[one]; !known {
				h[one] = now
			}
			over = over || now.Sub(h[one]) >= patience
		}
	}
	for one := range h {
		if !found[one] {
			delete(h, one)
		}
	}
	return over
}

// watch cancels the wait for the release's pods once it is in vain.
func (r *releases) watch(ctx context.Context, giveUp context.CancelCauseFunc) {
	seen := hopes{}
	clock := time.NewTicker(look)
	defer clock.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-clock.C:
			if seen.over(r.unready(), now) {
				giveUp(errHopeless)
				return
			}
		}
	}
}
