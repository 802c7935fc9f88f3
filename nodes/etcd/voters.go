// Package etcd runs the cluster's store on its own nodes: who votes, how a member is configured and joins, who may
// read and write what, and the forwarder through which a node's clients reach the members.
package etcd

import (
	"cmp"
	"slices"
)

// MaxVoters is the largest number of voting members; more make writes slower and nothing safer.
const MaxVoters = 5

// Candidate is a node that may become a member.
type Candidate struct {
	Name string
	Rank int // 0 master, 1 minion, 2 gateway: lower comes first
}

// Voters returns who should vote, masters first: an odd number, as large as there are nodes and at most MaxVoters.
// Masters are always members (as far as the number goes), then those that vote already stay, so that a new node moves
// no vote; then minions and gateways in their order.
func Voters(candidates []Candidate, current []string) []string {
	number := min(len(candidates), MaxVoters)
	if number%2 == 0 {
		number = max(number-1, 0)
	}
	class := func(c Candidate) int {
		switch {
		case c.Rank == 0:
			return 0
		case slices.Contains(current, c.Name):
			return 1
		default:
			return 2
		}
	}
	sorted := slices.Clone(candidates)
	slices.SortStableFunc(sorted, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(class(a), class(b)), cmp.Compare(a.Rank, b.Rank))
	})
	names := make([]string, 0, number)
	for _, candidate := range sorted[:number] {
		names = append(names, candidate.Name)
	}
	return names
}
