package upkeep

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/snapshot"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/orchestrator/workloads"
)

// TestCertificatesAreRenewedInTime has a clock that runs ahead.
func TestCertificatesAreRenewedInTime(t *testing.T) {
	made := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := made
	told := time.Time{}
	var rotation *pki.Rotation
	duty := certificates{Config{Interval: time.Minute, FirstExpiry: func(_, _ string, end time.Time) { told = end }}, func() time.Time { return now },
		func(context.Context, *keeper.Environment, string) ([]nodes.Certificate, *pki.Rotation, error) {
			return []nodes.Certificate{{Node: "m", Name: "apiserver", Expires: made.Add(pki.CertificateLifetime)}, {Node: "a", Name: "kubelet", Expires: made.Add(pki.CertificateLifetime)},
				{Name: "etcd authority", Expires: made.Add(pki.AuthorityLifetime)}}, rotation, nil
		}}
	environment := &keeper.Environment{Clusters: []*desired.Cluster{{ID: "c"}}}
	for _, one := range []struct {
		after  time.Duration
		failed bool
		want   []string
		repair bool
	}{
		{0, false, []string{}, false},
		{pki.CertificateLifetime - pki.RenewBefore - time.Hour, false, []string{}, false},
		{pki.CertificateLifetime - pki.RenewBefore + time.Hour, false, []string{"warning certificates-end "}, true},
		{pki.CertificateLifetime - pki.RenewBefore + time.Hour, true, []string{"warning certificates-end "}, false},
		{pki.CertificateLifetime - 10*24*time.Hour, false, []string{"critical certificates-end "}, true},
		{pki.AuthorityLifetime - 300*24*time.Hour, true, []string{"warning authority-ends etcd authority", "critical certificates-end "}, false},
	} {
		now, environment.Failed = made.Add(one.after), one.failed
		result, err := duty.Look(t.Context(), environment)
		require.NoError(t, err)
		require.Equal(t, one.want, kinds(result.Findings), "after %s", one.after)
		repair := false
		for _, finding := range result.Findings {
			repair = repair || finding.Repair != nil && finding.Repair.Method == known.RenewCertificates && !finding.Repair.Cloud
		}
		require.Equal(t, one.repair, repair, "after %s", one.after)
		require.Equal(t, one.repair, result.Next > 0 && result.Next < time.Hour, "a repair begins when the finding was seen again")
	}
	require.Equal(t, made.Add(pki.CertificateLifetime), told)

	rotation = &pki.Rotation{Began: made, Stage: pki.UseNew}
	for after, want := range map[time.Duration][]string{time.Hour: {}, 3 * time.Hour: {"warning rotation-unfinished "}} {
		now = made.Add(after)
		result, err := duty.Look(t.Context(), environment)
		require.NoError(t, err)
		require.Equal(t, want, kinds(result.Findings), "after %s", after)
	}
}

func TestAStoreThatFillsUpIsFoundAndDefragmentedWhereThatHelps(t *testing.T) {
	const mebibyte = 1 << 20
	for name, c := range map[string]struct {
		space  etcd.Space
		want   []string
		repair bool
	}{
		"small":            {etcd.Space{Size: 20 * mebibyte, InUse: 5 * mebibyte, Quota: 2048 * mebibyte}, nil, false},
		"mostly free":      {etcd.Space{Size: 900 * mebibyte, InUse: 100 * mebibyte, Quota: 2048 * mebibyte}, []string{"info etcd-space "}, true},
		"nearly full":      {etcd.Space{Size: 1800 * mebibyte, InUse: 1790 * mebibyte, Quota: 2048 * mebibyte}, []string{"warning etcd-space "}, false},
		"full of old data": {etcd.Space{Size: 2048 * mebibyte, InUse: 500 * mebibyte, Quota: 2048 * mebibyte, Full: true}, []string{"critical etcd-space "}, true},
	} {
		found := space(&desired.Cluster{ID: "c"}, nodes.Status{Members: []nodes.MemberStatus{{Name: "m", Space: c.space}, {Name: "a", Space: c.space}}})
		if c.want == nil {
			require.Empty(t, found, name)
			continue
		}
		require.Equal(t, c.want, kinds(found), name)
		require.Equal(t, c.repair, found[0].Repair != nil, name)
	}
}

func TestANodeThatRunsOutOfDiskIsFoundBeforeItEndsPods(t *testing.T) {
	const gibibyte = 1 << 30
	of := func(free, least int64) nodes.Status {
		return nodes.Status{Nodes: []nodes.NodeStatus{{Node: nodes.Node{Name: "a", Role: nodes.Minion}, Disk: &nodes.Disk{Free: free * gibibyte, Size: 100 * gibibyte, Least: int(least)}}}}
	}
	for name, c := range map[string]struct {
		status nodes.Status
		want   []string
	}{
		"nobody knows":                {nodes.Status{Nodes: []nodes.NodeStatus{{}}}, []string{}},
		"room":                        {of(20, 10), []string{}},
		"little room":                 {of(12, 10), []string{"warning disk-nearly-full a"}},
		"none":                        {of(9, 10), []string{"critical disk-nearly-full a"}},
		"a container with room":       {of(9, 1), []string{}},
		"a container without":         {of(5, 1), []string{"warning disk-nearly-full a"}},
		"what the kubelet ran out of": {nodes.Status{Nodes: []nodes.NodeStatus{{Node: nodes.Node{Name: "a"}, Pressure: []string{"MemoryPressure"}}}}, []string{"critical node-pressure a"}},
	} {
		found := shortages(&desired.Cluster{ID: "c"}, c.status)
		require.Equal(t, c.want, kinds(found), name)
		for _, one := range found {
			require.Nil(t, one.Repair, "another server would have no more room")
		}
	}
}

func TestASnapshotIsTakenWhenItIsDueAndWhatKeepsFailingIsFound(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	kept := &fakeSnapshots{}
	var failure error
	duty := scheduled{Config{Reach: known.Reach{Snapshots: kept}}, func() time.Time { return now }, func(_ context.Context, of snapshot.Subject) (store.Snapshot, error) {
		if failure == nil {
			kept.list = append([]store.Snapshot{{Kind: of.Kind, Created: store.Time(now.UnixMicro())}}, kept.list...)
		}
		require.Equal(t, 3, of.Keep)
		return store.Snapshot{}, failure
	}}
	environment := &keeper.Environment{ID: "e", Clusters: []*desired.Cluster{stored(t, "c", map[string]any{"snapshotEvery": int64(6), "snapshotsKept": int64(3)}),
		stored(t, "never", map[string]any{"snapshotEvery": int64(0)})}}
	look := func(after time.Duration, taken int, want ...string) {
		t.Helper()
		now = now.Add(after)
		result, err := duty.Look(t.Context(), environment)
		require.NoError(t, err)
		require.Equal(t, append([]string{}, want...), kinds(result.Findings))
		require.Len(t, kept.list, taken)
	}
	look(0, 1)
	look(5*time.Hour, 1)
	look(2*time.Hour, 2)
	failure = errors.New("etcd is away")
	look(7*time.Hour, 2, "info snapshot-failed ")
	look(7*time.Hour, 2, "warning snapshot-failed ")
	failure = fault.New(fault.Forbidden, "the quota is used up")
	look(time.Hour, 2, "warning snapshot-failed ")
	failure = nil
	look(time.Hour, 3)
}

// archived lists snapshots, and does nothing else.
type archived = known.Snapshots

type fakeSnapshots struct {
	archived
	list []store.Snapshot
}

func (f *fakeSnapshots) Snapshots(context.Context, store.SnapshotFilter) ([]store.Snapshot, error) {
	return f.list, nil
}

func TestAContainerThatEndsAgainAndAgainIsFoundWithItsLastLines(t *testing.T) {
	duty := newPodsDuty(Config{Interval: time.Minute})
	duty.crashes = func(context.Context, *keeper.Environment, *desired.Cluster) ([]workloads.Crash, error) {
		return []workloads.Crash{{ObjectID: "pod", Subject: "container web of pod shop", Why: "container web of shop-1: it ended with exit code 3 (Error), and was started again 7 times", LastLines: "no database"}}, nil
	}
	result, err := duty.Look(t.Context(), &keeper.Environment{ID: "e", Name: "demo", Clusters: []*desired.Cluster{{ID: "c", Name: "kube"}}})
	require.NoError(t, err)
	require.Equal(t, []string{"warning container-crashes container web of pod shop"}, kinds(result.Findings))
	require.Equal(t, "In cluster kube container web of shop-1: it ended with exit code 3 (Error), and was started again 7 times. Its last lines:\nno database", result.Findings[0].Text)
	require.Equal(t, "pod", result.Findings[0].ObjectID)
	require.Equal(t, 5*time.Minute, duty.Every())

	duty.crashes = func(context.Context, *keeper.Environment, *desired.Cluster) ([]workloads.Crash, error) {
		return nil, errors.New("no API")
	}
	result, err = duty.Look(t.Context(), &keeper.Environment{ID: "e", Name: "demo", Clusters: []*desired.Cluster{{ID: "c", Name: "kube"}}})
	require.NoError(t, err)
	require.Equal(t, keeper.Result{Next: time.Minute}, result, "the duty health reports that the API does not answer")
}
