package kube

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/internal/wait"
)

const (
	// longestLine is how much of a line of a log stays in one piece, in bytes; a longer one becomes several.
	longestLine = 16 << 10
	// lookAgain is how often it is looked whether a container runs again.
	lookAgain = 2 * time.Second
	// annotationContainer names the container whose log is meant when none is named, as for kubectl.
	annotationContainer = "kubectl.kubernetes.io/default-container"
)

// Log chooses a container and the lines of its log.
type Log struct {
	Namespace string
	Pod       string
	Container string    // "" for the pod's main one
	Tail      int64     // how many of the last lines there are; 0 for all
	After     time.Time // lines that were written later only; zero for all
	Previous  bool      // lines of the container's former run, which ended
}

// LogLine is a line of a log.
type LogLine struct {
	Time time.Time // when it was written
	Text string    // without its line feed
}

// NoContainer is the error for a pod that has no container of that name.
type NoContainer struct {
	Name  string
	Names []string // the pod's containers
}

func (e *NoContainer) Error() string {
	return fmt.Sprintf("the pod has no container %q; it has %s", e.Name, strings.Join(e.Names, ", "))
}

// ReadLog calls line for each line that is there.
func ReadLog(ctx context.Context, config *rest.Config, log Log, line func(LogLine) error) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a Kubernetes client: %w", err)
	}
	if err := log.choose(ctx, client); err != nil {
		return err
	}
	_, err = log.stream(ctx, client, false, line)
	return err
}

// FollowLog calls line for each present and each new line. It goes on when a container ends and is started again. While the container does not run, state
// gets the reason, such as CrashLoopBackOff. FollowLog returns when the pod has ended or is gone, with the pod's end, or with an error: also an error of
// line and state.
func FollowLog(ctx context.Context, config *rest.Config, log Log, line func(LogLine) error, state func(string) error) (end string, err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("make a Kubernetes client: %w", err)
	}
	if err := log.choose(ctx, client); err != nil {
		return "", err
	}
	for first := true; ; first = false {
		if end, err := log.await(ctx, client, first, state); end != "" || err != nil {
			return end, err
		}
		last, err := log.stream(ctx, client, true, line)
		if err != nil {
			return "", err
		}
		if last.After(log.After) {
			log.After, log.Tail = last, 0
		}
		if err := wait.Pause(ctx, lookAgain); err != nil {
			return "", err
		}
	}
}

// choose sees to it that the container is one of the pod's.
func (l *Log) choose(ctx context.Context, client kubernetes.Interface) error {
	pod, err := client.CoreV1().Pods(l.Namespace).Get(ctx, l.Pod, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read pod %s/%s: %w", l.Namespace, l.Pod, err)
	}
	var names []string
	for _, container := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		names = append(names, container.Name)
	}
	if len(names) == 0 {
		return fmt.Errorf("read pod %s/%s: it has no containers, says the API server", l.Namespace, l.Pod)
	}
	l.Container = cmp.Or(l.Container, pod.Annotations[annotationContainer], names[0])
	if !slices.Contains(names, l.Container) {
		return &NoContainer{Name: l.Container, Names: names}
	}
	return nil
}

// await waits until the container has a log; at first that may be the log of an ended run. end describes the end of a pod that will not run again.
func (l *Log) await(ctx context.Context, client kubernetes.Interface, first bool, state func(string) error) (end string, err error) {
	told := ""
	err = wait.Every(lookAgain).Until(ctx, func(ctx context.Context) error {
		pod, err := client.CoreV1().Pods(l.Namespace).Get(ctx, l.Pod, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			end = "Deleted"
			return nil
		}
		if err != nil {
			return fmt.Errorf("read pod %s/%s: %w", l.Namespace, l.Pod, err)
		}
		found := podOf(pod)
		i := slices.IndexFunc(found.Containers, func(container Container) bool { return container.Name == l.Container })
		if i < 0 {
			return fmt.Errorf("pod %s/%s has no container %s any more", l.Namespace, l.Pod, l.Container)
		}
		container := found.Containers[i]
		ended := hasEnded(pod, l.Container)
		switch {
		case container.State == stateRunning, first && (ended || container.Restarts > 0):
			return nil
		case ended && (container.Init && container.State == stateCompleted || pod.Spec.RestartPolicy == corev1.RestartPolicyNever ||
			pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed):
			end = container.State
			return nil
		}
		if told != container.State {
			told = container.State
			if err := state(told); err != nil {
				return err
			}
		}
		return wait.Again(nil)
	})
	return end, err
}

func hasEnded(pod *corev1.Pod, container string) bool {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if status.Name == container {
			return status.State.Terminated != nil
		}
	}
	return false
}

// stream reads lines until the log ends; it returns when the last one was written. follow: until the container ends.
func (l *Log) stream(ctx context.Context, client kubernetes.Interface, follow bool, line func(LogLine) error) (last time.Time, err error) {
	options := &corev1.PodLogOptions{Container: l.Container, Follow: follow, Previous: l.Previous, Timestamps: true}
	if l.Tail > 0 {
		options.TailLines = &l.Tail
	}
	if !l.After.IsZero() {
		since := metav1.NewTime(l.After) // whole seconds: lines before that time are left out below
		options.SinceTime = &since
	}
	body, err := client.CoreV1().Pods(l.Namespace).GetLogs(l.Pod, options).Stream(ctx)
	if err != nil {
		return last, fmt.Errorf("read the log of container %s of pod %s/%s: %w", l.Container, l.Namespace, l.Pod, err)
	}
	defer body.Close()
	reader := bufio.NewReaderSize(body, longestLine)
	continued := false // the piece that is read next belongs to the line of the one before
	for {
		piece, err := reader.ReadSlice('\n')
		if len(piece) > 0 {
			text := strings.TrimSuffix(string(piece), "\n")
			if !continued {
				stamp, rest, _ := strings.Cut(text, " ")
				if written, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
					last, text = written, rest
				}
			}
			continued = errors.Is(err, bufio.ErrBufferFull)
			if last.After(l.After) || l.After.IsZero() {
				if err := line(LogLine{Time: last, Text: strings.ToValidUTF8(text, "\uFFFD")}); err != nil {
					return last, err
				}
			}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull), err == nil:
		case errors.Is(err, io.EOF):
			return last, nil
		default:
			return last, fmt.Errorf("read the log of container %s of pod %s/%s: %w", l.Container, l.Namespace, l.Pod, err)
		}
	}
}
