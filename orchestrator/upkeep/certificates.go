package upkeep

import (
	"context"
	"fmt"
	"time"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
)

const (
	dutyCertificates = "certificates"
	// certificatesPause is how often certificates are looked at; urgent is when one ends so soon that something must be wrong with its renewal;
	// authorityWarning is how long before its end an authority is spoken of.
	certificatesPause = 6 * time.Hour
	urgent            = 14 * 24 * time.Hour
	authorityWarning  = 365 * 24 * time.Hour
	// rotationPatience is how long a rotation may take before it is spoken of.
	rotationPatience = 2 * time.Hour
)

// certificates is the duty that has certificates renewed before they end. It needs no cloud, and asks no node.
type certificates struct {
	Config
	now  func() time.Time
	look func(ctx context.Context, environment *keeper.Environment, clusterID string) ([]nodes.Certificate, *pki.Rotation, error)
}

func newCertificates(config Config) certificates {
	return certificates{config, time.Now, func(ctx context.Context, environment *keeper.Environment, clusterID string) ([]nodes.Certificate, *pki.Rotation, error) {
		one, err := config.open(ctx, environment, clusterID)
		if err != nil {
			return nil, nil, err
		}
		list, err := one.live.Certificates(ctx)
		if err != nil {
			return nil, nil, err
		}
		rotation, err := one.live.Rotation(ctx)
		return list, rotation, err
	}}
}

func (c certificates) Name() string { return dutyCertificates }

func (c certificates) Every() time.Duration { return certificatesPause }

func (c certificates) Look(ctx context.Context, environment *keeper.Environment) (result keeper.Result, err error) {
	now := c.now()
	for _, cluster := range environment.Clusters {
		list, rotation, err := c.look(ctx, environment, cluster.ID)
		if err != nil {
			return result, err
		}
		if len(list) > 0 && c.FirstExpiry != nil {
			c.FirstExpiry(environment.ID, cluster.ID, list[0].Expires)
		}
		due := 0
		var first nodes.Certificate
		for _, one := range list {
			switch {
			case one.Node != "" && one.Due(now):
				if due++; due == 1 {
					first = one
				}
			case one.Node == "" && one.Expires.Sub(now) < authorityWarning:
				result.Findings = append(result.Findings, keeper.Finding{ObjectID: cluster.ID, Kind: "authority-ends", Subject: one.Name, Severity: keeper.Warning,
					Text:  fmt.Sprintf("The %s of cluster %s ends on %s, and no certificate of it is good for longer", one.Name, cluster.Name, one.Expires.Format(time.DateOnly)),
					Mends: "Rotate it: burano cluster rotate certificates"})
			}
		}
		if rotation != nil && now.Sub(rotation.Began) > rotationPatience {
			result.Findings = append(result.Findings, keeper.Finding{ObjectID: cluster.ID, Kind: "rotation-unfinished", Severity: keeper.Warning,
				Text: fmt.Sprintf("A rotation in cluster %s began on %s and has not ended (%s): what it replaces may still be accepted", cluster.Name,
					rotation.Began.UTC().Format(time.DateTime), rotation.Stage),
				Mends: "Run burano cluster rotate again: it goes on where it was"})
		}
		if due == 0 {
			continue
		}
		finding := keeper.Finding{ObjectID: cluster.ID, Kind: "certificates-end", Severity: keeper.Warning, Mends: "Burano renews them by itself",
			Text: fmt.Sprintf("%d certificates of cluster %s end soon, the first one (%s of %s) on %s", due, cluster.Name, first.Name, first.Node, first.Expires.Format(time.DateOnly))}
		if first.Expires.Sub(now) < urgent {
			finding.Severity = keeper.Critical
		}
		if environment.Failed {
			finding.Mends = environment.DeployAgain("renews them", "Burano does not renew them by itself, because its newest deployment failed")
		} else {
			finding.Repair = &keeper.Repair{ObjectID: cluster.ID, Method: known.RenewCertificates, Text: "Renewal of certificates: " + finding.Text}
			result.Next = c.Interval / hurry // a repair is begun, and seen to have helped, at later looks
		}
		result.Findings = append(result.Findings, finding)
	}
	return result, nil
}
