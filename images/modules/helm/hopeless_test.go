package main

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhatDoesNotPassByItselfEndsTheWait(t *testing.T) {
	waiting := func(reason string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: "web", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
	}
	crashing := waiting("CrashLoopBackOff")
	crashing.RestartCount = crashes
	for _, one := range []struct {
		name  string
		now   []corev1.ContainerStatus // of one pod, looked at each 20 seconds
		ended int                      // at which look the wait ends, 0 for never
	}{
		{"an image that cannot be pulled", []corev1.ContainerStatus{waiting("ErrImagePull"), waiting("ImagePullBackOff"), waiting("ErrImagePull"), waiting("ErrImagePull")}, 4},
		{"an image that comes after all", []corev1.ContainerStatus{waiting("ErrImagePull"), waiting("ImagePullBackOff"), waiting("ContainerCreating"), waiting("ErrImagePull"), waiting("ErrImagePull")}, 0},
		{"a name that is none of an image", []corev1.ContainerStatus{waiting("InvalidImageName"), waiting("InvalidImageName")}, 2},
		{"a container that is being made", []corev1.ContainerStatus{waiting("ContainerCreating"), waiting("ContainerCreating"), waiting("ContainerCreating"), waiting("ContainerCreating")}, 0},
		{"a container that ends again and again", []corev1.ContainerStatus{crashing, crashing, crashing, crashing, crashing, crashing, crashing}, 7},
	} {
		seen, ended := hopes{}, 0
		start := time.Now()
		for i, status := range one.now {
			pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "1"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status}}}
			if seen.over([]corev1.Pod{pod}, start.Add(time.Duration(i)*20*time.Second)) && ended == 0 {
				ended = i + 1
			}
		}
		if ended != one.ended {
			t.Errorf("%s: it should end at look %d, not at %d", one.name, one.ended, ended)
		}
	}
}
