// Package etcd runs the cluster's store on its own nodes: the choice of voters, the configuration and joining of a member, the rights of users, and the
// forwarder through which a node's clients reach the members.
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
	// Locked is true for a node that may be off for a while.
	Locked bool
}

// Voters returns the nodes that should vote, masters first: an odd number, as large as the nodes allow and at most most, which is no more than MaxVoters. Masters are
// always members (as far as the number goes). Then present voters stay, so that a new node moves no vote; then come minions and gateways. Of equal nodes the ones in
// service come first, and then names decide: the order of candidates has no effect.
func Voters(candidates []Candidate, current []string, most int) []string {
	number := min(len(candidates), most, MaxVoters)
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
	locked := func(c Candidate) int {
		if c.Locked && c.Rank > 0 {
			return 1
		}
		return 0
	}
	sorted := slices.Clone(candidates)
	slices.SortFunc(sorted, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(class(a), class(b)), cmp.Compare(locked(a), locked(b)), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Name, b.Name))
	})
	names := make([]string, 0, number)
	for _, candidate := range sorted[:number] {
		names = append(names, candidate.Name)
	}
	return names
}
