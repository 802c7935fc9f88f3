package publish

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"time"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// component is the source of the Events.
const component = "burano-publish"

// complainer makes Events of Services and Ingresses from complaints, one of each: its name is derived from its content, so that not even a restart repeats
// it. A resolved complaint that comes up again counts one more on its Event.
type complainer struct {
	client  kubernetes.Interface
	logger  *slog.Logger
	now     func() time.Time
	current map[Complaint]int32 // complaints that hold, and how often they came up
	past    map[Complaint]int32 // resolved complaints
}

func newComplainer(client kubernetes.Interface, logger *slog.Logger, now func() time.Time) *complainer {
	return &complainer{client: client, logger: logger, now: now, current: make(map[Complaint]int32), past: make(map[Complaint]int32)}
}

// maxPast limits the number of former complaints in memory; a count that begins anew does no harm.
const maxPast = 1000

// maxReported limits the Events of one pass: routes that changed since then come before further ones.
const maxReported = 100

// report makes Events of new complaints, and reports whether more than the limit are to be made. It returns an error when some could not be made; they are
// made the next time.
func (c *complainer) report(ctx context.Context, complaints []Complaint) (more bool, failed error) {
	current := make(map[Complaint]int32, len(complaints))
	reported := 0
	for _, complaint := range complaints {
		if count, made := c.current[complaint]; made {
			current[complaint] = count
			continue
		}
		if _, twice := current[complaint]; twice {
			continue
		}
		if reported == maxReported {
			more = true
			continue
		}
		reported++
		count := c.past[complaint] + 1
		if err := c.create(ctx, complaint, count); err != nil {
			failed = fmt.Errorf("make an event of %s/%s: %w", complaint.Namespace, complaint.Name, err)
			continue
		}
		current[complaint] = count
		delete(c.past, complaint)
		c.logger.Warn("complaint", "kind", cmp.Or(complaint.Kind, "Service"), "name", complaint.Namespace+"/"+complaint.Name, "reason", complaint.Reason, "message", complaint.Message)
	}
	for complaint, count := range c.current {
		if _, holds := current[complaint]; !holds {
			c.past[complaint] = count
		}
	}
	if len(c.past) > maxPast {
		clear(c.past)
	}
	c.current = current
	return more, failed
}

func (c *complainer) create(ctx context.Context, complaint Complaint, count int32) error {
	now := meta.NewTime(c.now())
	version, kind := "v1", "Service"
	if complaint.Kind != "" {
		version, kind = networking.SchemeGroupVersion.String(), complaint.Kind
	}
	namespace := cmp.Or(complaint.Namespace, meta.NamespaceDefault) // the Events of objects without one are there
	_, err := c.client.CoreV1().Events(namespace).Create(ctx, &core.Event{
		ObjectMeta: meta.ObjectMeta{Name: eventName(complaint), Namespace: namespace},
		InvolvedObject: core.ObjectReference{
			APIVersion: version, Kind: kind, Namespace: complaint.Namespace, Name: complaint.Name, UID: complaint.UID,
		},
		Type: core.EventTypeWarning, Reason: complaint.Reason, Message: complaint.Message,
		Source: core.EventSource{Component: component}, FirstTimestamp: now, LastTimestamp: now, Count: count,
	}, meta.CreateOptions{})
	if apierrors.IsAlreadyExists(err) && count > 1 {
		patch := fmt.Appendf(nil, `{"count":%d,"lastTimestamp":%q}`, count, now.UTC().Format(time.RFC3339))
		_, err = c.client.CoreV1().Events(namespace).Patch(ctx, eventName(complaint), types.MergePatchType, patch, meta.PatchOptions{})
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, core.NamespaceTerminatingCause) {
		return nil // made before, or its Service is gone
	}
	return err
}

func eventName(c Complaint) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", c.UID, c.Reason, c.Message))
	return fmt.Sprintf("%s.%x", c.Name, sum[:8])
}
