package restores

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/attachments"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/storage"
)

const (
	// settlePatience is how long a restore waits until the attachments of volumes match the records of Kubernetes. The keeper mends the rest.
	settlePatience = 2 * time.Minute
)

// settleAttachments is the part of a restore that has volumes be attached as Kubernetes records it since.
func (c Restores) settleAttachments(ctx context.Context, object *muranopl.Object) error {
	has, err := nodes.HasStorage(ctx, known.Vault{Runtime: c.Runtime, Cluster: object.ID()}, kube.Cinder)
	if err != nil || !has {
		return err
	}
	return c.Runtime.Step(ctx, object, "compare the attachments of volumes", func(ctx context.Context) error {
		project, err := c.Runtime.Project(ctx)
		if err != nil {
			return err
		}
		live, err := c.Live(object)
		if err != nil {
			return err
		}
		known, err := c.Facts(ctx, object)
		if err != nil {
			return err
		}
		of, err := storage.AttachmentsOf(ctx, c.Runtime.EnvironmentID(), object.ID(), object.Text("name"), known.Nodes, live, project)
		if err != nil {
			return err
		}
		left, err := of.Settle(ctx, settlePatience, func(one attachments.Difference) { c.Reports.Inform(ctx, object, "%s. %s", one.Text, one.Mends) })
		var expired *wait.Expired
		if err != nil && (!errors.As(err, &expired) || ctx.Err() != nil) {
			return err
		}
		for _, one := range left {
			c.Reports.Warn(ctx, object, one.Text, fmt.Sprintf("%s. The finding volume-attachment-differs goes when it is done.", one.Mends))
		}
		return nil
	})
}
