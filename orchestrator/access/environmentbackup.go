package access

import (
	"context"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/nodes/claimdata"
	"github.com/burano/burano/orchestrator/known"
)

// BackupClaims lists the claims of the cluster that a backup has, and the others with the reasons.
func (c Clusters) BackupClaims(ctx context.Context, environmentID, objectID string) (claims []claimdata.Claim, unable map[string]string, err error) {
	err = c.ask(ctx, environmentID, objectID, known.AnswerPatience, func(ctx context.Context, config *rest.Config) error {
		client, err := kubernetes.NewForConfig(config)
		if err == nil {
			claims, unable, err = claimdata.Claims(ctx, client)
		}
		return err
	})
	return claims, unable, err
}
