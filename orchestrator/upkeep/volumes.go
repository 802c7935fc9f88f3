package upkeep

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/storage"
	"github.com/burano/burano/orchestrator/volumes"
)

const (
	dutyStorage = "storage"
	// storageIdle is the pause between looks while no cluster has volumes of the cloud: the end of every task has it looked, too. storagePause is
	// the pause between looks at whether the controllers of a cluster have an answering connection.
	storageIdle = time.Hour
	// leftEvery is how often it is looked for volumes in Cinder that a cluster does not know, and leftAge how old these are at least: a younger one may be about to become known.
	leftEvery = time.Hour
)

// storageDuty answers the requests of clusters for volumes of Cinder or shares of Manila, over a connection to a master that is kept between looks.
// The controllers there accept one server at a time, so the other servers only make sure that one answers. Clusters without such volumes are not
// asked.
type storageDuty struct {
	Config
	line func(live *nodes.Cluster, ctx context.Context) (net.Conn, error)
	find func(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster) (storage.Left, error)

	mutex    sync.Mutex
	answered map[string]bool         // by environment and cluster: this server answers
	left     map[string]storage.Left // by environment and cluster
}

func newStorageDuty(config Config) *storageDuty {
	s := &storageDuty{Config: config, line: (*nodes.Cluster).VolumeLine, answered: map[string]bool{}, left: map[string]storage.Left{}}
	s.find = s.strange
	return s
}

func (s *storageDuty) Name() string { return dutyStorage }

func (s *storageDuty) Every() time.Duration { return storageIdle }

func (s *storageDuty) Look(ctx context.Context, environment *keeper.Environment) (result keeper.Result, err error) {
	for _, cluster := range environment.Clusters {
		has, err := nodes.HasStorage(ctx, known.EnvironmentVault{Secrets: s.Secrets, Environment: environment.ID, Cluster: cluster.ID}, kube.Cinder, kube.Manila)
		if err != nil {
			return result, err
		}
		if !has {
			continue
		}
		result.Next = min(storage.StoragePause, s.Interval)
		if _, err := environment.Project(ctx, ""); errors.Is(err, keeper.ErrNoDelegation) {
			result.Findings = append(result.Findings, keeper.Finding{ObjectID: cluster.ID, Kind: "volumes-undelegated", Severity: keeper.Warning,
				Text:  fmt.Sprintf("Volumes of cluster %s are neither made, attached nor deleted in the cloud: the environment has no standing delegation. What runs with its volumes goes on", cluster.Name),
				Mends: "Give it one: burano environment delegation set " + environment.Name + ", or let Burano work in the project with a role of its own: burano project enable"})
		}
		result.Findings = append(result.Findings, s.leftovers(ctx, environment, cluster)...)
		if err := s.answer(ctx, environment, cluster); err != nil {
			if ctx.Err() != nil {
				return result, errors.Join(err, ctx.Err())
			}
			result.Findings = append(result.Findings, keeper.Finding{ObjectID: cluster.ID, Kind: "volumes-unanswered", Severity: keeper.Warning,
				Text:  fmt.Sprintf("Volumes of cluster %s are neither made, attached nor deleted in the cloud, because its controllers are not reached: %v. What runs with its volumes goes on", cluster.Name, err),
				Mends: "It is tried again by itself. Bring back a master, or deploy the environment again, which starts what does not run there"})
		}
	}
	return result, nil
}

// leftovers are findings about volumes and snapshots in Cinder, and shares in Manila, that a cluster does not know. If they cannot be found out,
// which other findings report, they stay unchanged.
func (s *storageDuty) leftovers(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster) (findings []keeper.Finding) {
	key := environment.ID + "/" + cluster.ID
	s.mutex.Lock()
	known := s.left[key]
	s.mutex.Unlock()
	if time.Since(known.Looked) > leftEvery {
		if found, err := s.find(ctx, environment, cluster); err != nil {
			s.Logger.DebugContext(ctx, "whether volumes are left in the cloud could not be found out", "environment", environment.ID, "cluster", cluster.Name, "error", err)
		} else {
			known = found
			known.Looked = time.Now()
			s.mutex.Lock()
			s.left[key] = known
			s.mutex.Unlock()
		}
	}
	add := func(kind, service, plural, object string, gib int, names []string) {
		if len(names) == 0 {
			return
		}
		findings = append(findings, keeper.Finding{ObjectID: cluster.ID, Kind: kind, Severity: keeper.Info,
			Text:  fmt.Sprintf("%d %s in %s, of %d GiB together, were made for cluster %s, and no %s of it is any of them: %s", len(names), plural, service, gib, cluster.Name, object, storage.Some(names)),
			Mends: "Delete those whose data nobody needs: burano cluster volumes delete " + environment.Name + " ID. Burano deletes none of them by itself"})
	}
	gib := 0
	var names []string
	for _, one := range known.Volumes {
		gib, names = gib+one.GiB, append(names, fmt.Sprintf("%s (%s, %d GiB, made %s)", one.ID, one.Name, one.GiB, one.Made.UTC().Format("2 January 2006")))
	}
	add("volumes-left", "Cinder", "volumes", "PersistentVolume", gib, names)
	gib, names = 0, nil
	for _, one := range known.Snapshots {
		gib, names = gib+one.GiB, append(names, fmt.Sprintf("%s (%s)", one.ID, one.Name))
	}
	add("volume-snapshots-left", "Cinder", "snapshots of volumes", "VolumeSnapshotContent", gib, names)
	gib, names = 0, nil
	for _, one := range known.Shares {
		gib, names = gib+one.GiB, append(names, fmt.Sprintf("%s (%s)", one.ID, one.Name))
	}
	add("shares-left", "Manila", "shares", "PersistentVolume", gib, names)
	return findings
}

// unknown are the volumes in Cinder that were made for a cluster and belong to no PersistentVolume of it, and the snapshots without a
// VolumeSnapshotContent, both without those of classes with the policy Retain.
func (s *storageDuty) unknown(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster) (found storage.Left, err error) {
	project, err := environment.Project(ctx, "")
	if err != nil {
		return found, err
	}
	cinder, err := project.BlockStorage()
	if err != nil {
		return found, err
	}
	// Listed before the cluster's own volumes: a volume that is made in between is in both lists.
	tag := map[string]string{volumes.ClusterMetadata: volumes.ClusterID(environment.ID, cluster.ID)}
	if found, err = storage.TaggedVolumes(ctx, cinder, tag); err != nil || len(found.Volumes)+len(found.Snapshots) == 0 {
		return found, err
	}
	err = s.ask(ctx, environment, cluster, func(api *rest.Config) (err error) {
		found, err = found.WithoutKnown(ctx, api)
		return err
	})
	return found, err
}

// answer makes sure that the controllers of a cluster have an answering connection.
func (s *storageDuty) answer(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster) error {
	key := environment.ID + "/" + cluster.ID
	s.mutex.Lock()
	does := s.answered[key]
	s.mutex.Unlock()
	if does {
		return nil
	}
	_, live, err := s.openApart(ctx, environment, cluster.ID)
	if err != nil {
		return err
	}
	line, err := s.line(live, ctx)
	if errors.Is(err, nodes.ErrVolumesHeld) {
		return live.Close()
	}
	if err != nil {
		return errors.Join(err, live.Close())
	}
	s.mutex.Lock()
	s.answered[key] = true
	s.mutex.Unlock()
	go func() {
		defer func() {
			s.mutex.Lock()
			delete(s.answered, key)
			s.mutex.Unlock()
		}()
		s.Logger.Info("answering what a cluster asks for its volumes", "environment", environment.ID, "cluster", cluster.Name)
		err := storage.AnswerOn(context.Background(), line, s.clusterOf(environment, cluster)) // until it ends
		s.Logger.Info("a cluster's connection for its volumes has ended", "environment", environment.ID, "cluster", cluster.Name, "reason", errors.Join(err, live.Close()))
	}()
	return nil
}

// strange is all in the cloud that was made for a cluster and that it does not know. Back-ends that it has not are not asked.
func (s *storageDuty) strange(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster) (found storage.Left, err error) {
	vault := known.EnvironmentVault{Secrets: s.Secrets, Environment: environment.ID, Cluster: cluster.ID}
	if has, err := nodes.HasStorage(ctx, vault, kube.Cinder); err != nil {
		return found, err
	} else if has {
		if found, err = s.unknown(ctx, environment, cluster); err != nil {
			return found, err
		}
	}
	if has, err := nodes.HasStorage(ctx, vault, kube.Manila); err != nil || !has {
		return found, err
	}
	found.Shares, err = s.unknownShares(ctx, environment, cluster)
	return found, err
}

// clusterOf is a cluster for the controllers of its volumes. Its nodes and its delegation are read each time, since a delegation can be given, or
// revoked, at any time.
func (s *storageDuty) clusterOf(environment *keeper.Environment, cluster *desired.Cluster) volumes.Cluster {
	return volumes.Cluster{ID: volumes.ClusterID(environment.ID, cluster.ID), Name: cluster.Name, Logger: s.Logger,
		Cloud: func(ctx context.Context) (volumes.Cloud, error) {
			project, err := delegated(ctx, environment)
			if err != nil {
				return nil, err
			}
			return project.BlockStorage()
		},
		Shares: func(ctx context.Context) (volumes.Shares, error) {
			project, err := delegated(ctx, environment)
			if err != nil {
				return nil, err
			}
			return project.SharedFileSystems()
		},
		Addresses: func(ctx context.Context) (map[string]string, error) {
			known, err := known.FactsOf(ctx, known.EnvironmentVault{Secrets: s.Secrets, Environment: environment.ID, Cluster: cluster.ID})
			addresses := map[string]string{}
			for _, node := range known.Nodes {
				addresses[node.Name] = node.Address.String()
			}
			return addresses, err
		},
		Servers: func(ctx context.Context) (map[string]string, error) {
			known, err := known.FactsOf(ctx, known.EnvironmentVault{Secrets: s.Secrets, Environment: environment.ID, Cluster: cluster.ID})
			servers := map[string]string{}
			for _, node := range known.Nodes {
				servers[node.Name] = node.Server
			}
			return servers, err
		}}
}

// delegated is the project of an environment. It describes the remedy where the environment has no delegation.
func delegated(ctx context.Context, environment *keeper.Environment) (*openstack.Project, error) {
	project, err := environment.Project(ctx, "")
	if errors.Is(err, keeper.ErrNoDelegation) {
		return nil, fault.New(fault.Conflict, "environment %s has no standing delegation, without which Burano asks the cloud for no volumes: burano environment delegation set %s",
			environment.Name, environment.Name)
	}
	return project, err
}
