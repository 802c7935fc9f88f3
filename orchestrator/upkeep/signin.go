package upkeep

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/signin/webhook"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/storage"
)

const dutySignIn = "sign-in"

// signInDuty answers the API servers of clusters whose a token of Keystone is, over a connection to each master that is kept between looks. A master accepts one
// server at a time, so the other servers only make sure that one answers. Clusters without keystoneSignIn are not asked.
type signInDuty struct {
	Config
	lines func(ctx context.Context, live *nodes.Cluster, has func(master string) bool) (map[string]net.Conn, error)

	mutex    sync.Mutex
	answered map[string]bool // by environment, cluster and master: this server answers
}

func newSignInDuty(config Config) *signInDuty {
	return &signInDuty{Config: config, lines: nodes.SignInLines, answered: map[string]bool{}}
}

func (s *signInDuty) Name() string { return dutySignIn }

func (s *signInDuty) Every() time.Duration { return storageIdle }

func (s *signInDuty) Look(ctx context.Context, environment *keeper.Environment) (result keeper.Result, err error) {
	for _, cluster := range environment.Clusters {
		if !cluster.KeystoneSignIn || s.Person == nil {
			continue
		}
		result.Next = min(storage.StoragePause, s.Interval)
		if err := s.answer(ctx, environment, cluster); err != nil {
			if ctx.Err() != nil {
				return result, errors.Join(err, ctx.Err())
			}
			result.Findings = append(result.Findings, keeper.Finding{ObjectID: cluster.ID, Kind: "sign-in-unanswered", Severity: keeper.Warning,
				Text:  fmt.Sprintf("Tokens of Keystone are refused at the API of cluster %s, because its masters are not reached: %v. Certificates and tokens of others work", cluster.Name, err),
				Mends: "It is tried again by itself. Bring back the master, or deploy the environment again, which starts the program for it (burano-sign-in)"})
		}
	}
	return result, nil
}

// answer makes sure that each master that serves has an answering connection.
func (s *signInDuty) answer(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster) error {
	key := func(master string) string { return environment.ID + "/" + cluster.ID + "/" + master }
	has := func(master string) bool {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		return s.answered[key(master)]
	}
	one, err := s.open(ctx, environment, cluster.ID)
	if err != nil {
		return err
	}
	complete := true
	for _, node := range one.facts.Nodes {
		complete = complete && (node.Role != nodes.Master || node.Settings.Locked || has(node.Name))
	}
	if complete {
		return nil
	}
	_, live, err := s.openApart(ctx, environment, cluster.ID)
	if err != nil {
		return err
	}
	lines, err := s.lines(ctx, live, has)
	project := environment.ProjectID
	person := func(ctx context.Context, token string) (webhook.Person, error) { return s.Person(ctx, project, token) }
	var open sync.WaitGroup
	for master, line := range lines {
		s.mutex.Lock()
		s.answered[key(master)] = true
		s.mutex.Unlock()
		s.Logger.Info("answering whose tokens of Keystone are", "environment", environment.ID, "cluster", cluster.Name, "master", master)
		open.Go(func() {
			defer func() {
				s.mutex.Lock()
				delete(s.answered, key(master))
				s.mutex.Unlock()
			}()
			webhook.Answer(context.Background(), line, person) // until it ends
			s.Logger.Info("a master's connection for tokens of Keystone has ended", "environment", environment.ID, "cluster", cluster.Name, "master", master)
		})
	}
	go func() {
		open.Wait()
		_ = live.Close()
	}()
	return err
}
