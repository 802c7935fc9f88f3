package orchestrator

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/store"
)

// RequestStatistics is one API server's last report of its requests since it was started.
type RequestStatistics struct {
	ID               int64 // set when it is stored, as Created and Updated are
	Host             string
	Requests, Errors int64
	Seconds          float64 // on the average of all requests
	// Projects are the numbers of requests by project.
	Projects map[string]int64
	// The rates are numbers a second, since the statistics were written before.
	RequestRate, ErrorRate float64
	CPUs                   int
	// CPUPercent is how much of all processors the server used since then.
	CPUPercent       float64
	Created, Updated time.Time
}

// Statistics counts requests, and the applications and servers of environments.
type Statistics struct{ *core }

// Statistics are the counts of requests, and of applications and servers.
func (s *Service) Statistics() Statistics { return Statistics{s.core} }

// SaveRequests keeps the statistics of their host.
func (s Statistics) SaveRequests(ctx context.Context, statistics RequestStatistics) error {
	projects := store.Document{}
	for id, count := range statistics.Projects {
		projects[id] = count
	}
	return s.store.Statistics().SaveRequests(ctx, store.RequestStatistics{Host: statistics.Host, Requests: statistics.Requests, Errors: statistics.Errors,
		Seconds: statistics.Seconds, Projects: projects, RequestRate: statistics.RequestRate, ErrorRate: statistics.ErrorRate,
		CPUs: int64(statistics.CPUs), CPUPercent: statistics.CPUPercent})
}

// Requests lists the API servers' reports, by their ids. A user who is no admin sees only the own one of the projects.
func (s Statistics) Requests(ctx context.Context, caller identity.Caller) ([]RequestStatistics, error) {
	rows, err := s.store.Statistics().Requests(ctx)
	list := make([]RequestStatistics, len(rows))
	for i, row := range rows {
		list[i] = RequestStatistics{ID: row.ID, Host: row.Host, Requests: row.Requests, Errors: row.Errors, Seconds: row.Seconds,
			Projects: map[string]int64{}, RequestRate: row.RequestRate, ErrorRate: row.ErrorRate, CPUs: int(row.CPUs),
			CPUPercent: row.CPUPercent, Created: row.Created.Time(), Updated: row.Updated.Time()}
		for id, count := range row.Projects {
			if number, ok := count.(int64); ok && (caller.Admin || id == caller.ProjectID) {
				list[i].Projects[id] = number
			}
		}
	}
	return list, err
}

// InstanceStatistics is the lifetime of an application or a server of an environment.
type InstanceStatistics struct {
	InstanceID string
	Type       int64 // 100 is an application, 200 a server
	TypeName   string
	TypeTitle  *string
	UnitCount  *int64
	Duration   time.Duration
	Active     bool
}

// Instances lists the counts of classes in an environment, oldest first; with an instanceID only that one's.
func (s Statistics) Instances(ctx context.Context, caller identity.Caller, environmentID, instanceID string) ([]InstanceStatistics, error) {
	if _, err := s.environment(ctx, caller, environmentID); err != nil {
		return nil, err
	}
	rows, err := s.store.Statistics().Instances(ctx, environmentID)
	list := []InstanceStatistics{}
	for _, row := range rows {
		if instanceID != "" && row.InstanceID != instanceID {
			continue
		}
		end := s.now()
		if row.Destroyed != nil {
			end = row.Destroyed.Time()
		}
		list = append(list, InstanceStatistics{InstanceID: row.InstanceID, Type: row.Type, TypeName: row.TypeName, TypeTitle: row.TypeTitle,
			UnitCount: row.UnitCount, Duration: end.Sub(row.Created.Time()), Active: row.Destroyed == nil})
	}
	return list, err
}

// TypeStatistics sums up the statistics of a type of instances.
type TypeStatistics struct {
	Type     int64
	Duration time.Duration
	Count    int
}

// Types sums up the counts of classes in an environment, by types.
func (s Statistics) Types(ctx context.Context, caller identity.Caller, environmentID string) ([]TypeStatistics, error) {
	rows, err := s.Instances(ctx, caller, environmentID, "")
	sums := map[int64]TypeStatistics{}
	for _, row := range rows {
		sum := sums[row.Type]
		sums[row.Type] = TypeStatistics{Type: row.Type, Duration: sum.Duration + row.Duration, Count: sum.Count + 1}
	}
	list := make([]TypeStatistics, 0, len(sums))
	for _, kind := range slices.Sorted(maps.Keys(sums)) {
		list = append(list, sums[kind])
	}
	return list, err
}
