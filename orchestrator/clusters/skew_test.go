package clusters

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes"
)

func TestVersionsOfKubernetesThatDoNotWorkTogetherAreRefused(t *testing.T) {
	node := func(role nodes.Role, now, wanted string) NodeVersion {
		return NodeVersion{Name: "one-" + string(role), Role: role, Now: ParseKubernetes(now), Wanted: ParseKubernetes(wanted)}
	}
	master := func(now, wanted string) NodeVersion { return node(nodes.Master, now, wanted) }
	minion := func(now, wanted string) NodeVersion { return node(nodes.Minion, now, wanted) }
	for name, c := range map[string]struct {
		list   []NodeVersion
		broken string // "" for nothing
	}{
		"one minor version up":                       {[]NodeVersion{master("v1.35.8", "v1.36.3"), minion("v1.35.8", "v1.36.3")}, ""},
		"a patch up":                                 {[]NodeVersion{master("v1.36.1", "v1.36.3"), minion("v1.36.1", "v1.36.3")}, ""},
		"a patch back":                               {[]NodeVersion{master("v1.36.3", "v1.36.1"), minion("v1.36.3", "v1.36.1")}, ""},
		"two minor versions up":                      {[]NodeVersion{master("v1.34.1", "v1.36.3")}, "one minor version at a time: from 1.34.1 first to 1.35"},
		"another major version":                      {[]NodeVersion{master("v1.36.3", "v2.0.0")}, "one minor version at a time"},
		"a minor version back":                       {[]NodeVersion{master("v1.36.3", "v1.35.8")}, "Kubernetes does not go back: the API server is 1.36.3"},
		"the master alone":                           {[]NodeVersion{master("v1.35.8", "v1.36.3"), minion("v1.35.8", "")}, ""},
		"the minions alone":                          {[]NodeVersion{master("v1.35.8", ""), minion("v1.35.8", "v1.36.3")}, "a kubelet must not be newer than the API server: one-minion would have 1.36.3, and the API server 1.35.8"},
		"minions after the masters":                  {[]NodeVersion{master("v1.36.3", ""), minion("v1.35.8", "v1.36.3")}, ""},
		"back, while a master of the former is left": {[]NodeVersion{master("v1.36.3", "v1.35.8"), master("v1.35.8", ""), minion("v1.35.8", "")}, ""},
		"kubelets that stay too far behind":          {[]NodeVersion{master("v1.36.3", "v1.37.0"), minion("v1.33.0", "")}, "not be more than 3 minor versions older"},
		"a kubelet that is too new already":          {[]NodeVersion{master("v1.35.8", "v1.36.3"), minion("v1.37.0", "")}, ""},
		"what is not known is not judged":            {[]NodeVersion{master("", "v1.36.3"), minion("", ""), node(nodes.Gateway, "v1.30.0", "v1.36.3")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			broken := Skewed(c.list)
			if c.broken == "" {
				require.Empty(t, broken)
				return
			}
			require.Len(t, broken, 1)
			require.Contains(t, broken[0], c.broken)
		})
	}
}
