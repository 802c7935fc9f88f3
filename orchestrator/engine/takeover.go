package engine

import (
	"strings"

	"github.com/burano/burano/orchestrator/openstack"
)

// TakenOver are the stacks of an environment that Murano has made, as AttributeAdopted keeps them.
type TakenOver struct {
	openstack.Adoption // the one in the environment's own region; its Stack is "" where there is none
	// Elsewhere are the stacks in other regions, by the regions' names.
	Elsewhere map[string]openstack.Adoption `json:"elsewhere,omitempty"`
	// Templates are the names of the stacks of packages in HOT.
	Templates []string `json:"templates,omitempty"`
}

// stacks are all of them, by Burano's names for them.
func (t TakenOver) stacks(environmentID string) map[string]openstack.Adoption {
	all := map[string]openstack.Adoption{}
	if t.Stack != "" {
		all[StackName(environmentID, "")] = t.Adoption
	}
	for region, one := range t.Elsewhere {
		all[StackName(environmentID, region)] = one
	}
	for _, name := range t.Templates {
		all[name] = openstack.Adoption{Stack: name}
	}
	return all
}

// StackName is the name of an environment's stack in a region, "" for its own. It is always the same, so that a stack is found again when the answer to
// its creation was lost. It differs by region, so that the name alone identifies the stack.
func StackName(environmentID, region string) string {
	name := "burano-" + environmentID
	if region == "" {
		return name
	}
	// Heat's characters for names of stacks.
	return name + "-" + strings.Map(func(c rune) rune {
		if c < 128 && (c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.ContainsRune("._-", c)) {
			return c
		}
		return '-'
	}, region)
}
