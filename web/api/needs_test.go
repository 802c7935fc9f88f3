package api

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/ui"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/openstack"
)

func TestAMissingPartOfTheCloudIsNamedWithWhoMendsIt(t *testing.T) {
	o := newOffer(
		[]openstack.ImageChoice{{Name: "node", Type: "linux.kubernetes"}, {Name: "glance.local/nginx:1.22"}},
		[]openstack.FlavorChoice{{Name: "small", CPUs: 1, RAM: 1024, Disk: 10}, {Name: "large", CPUs: 8, RAM: 16384, Disk: 100}},
		[]openstack.QuotaChoice{{Resource: "instances", Used: 9, Limit: 10}, {Resource: "cores", Used: 18, Limit: 20}, {Resource: "ram", Used: 0, Limit: -1}},
	)
	for name, c := range map[string]struct {
		needs ui.Needs
		want  []missingJSON
	}{
		"all is there":               {ui.Needs{Images: []string{"linux"}, Containers: []string{"glance.local/nginx:1.22"}, Sizes: []ui.Size{{CPUs: 1}}}, []missingJSON{}},
		"any image":                  {ui.Needs{Images: []string{""}}, []missingJSON{}},
		"no image of the type":       {ui.Needs{Images: []string{"windows"}}, []missingJSON{{Kind: "image", Name: "windows", Mends: []string{"operator"}}}},
		"a type that only begins so": {ui.Needs{Images: []string{"lin"}}, []missingJSON{{Kind: "image", Name: "lin", Mends: []string{"operator"}}}},
		"no container image":         {ui.Needs{Containers: []string{"glance.local/redis:7"}}, []missingJSON{{Kind: "container-image", Name: "glance.local/redis:7", Mends: []string{"project", "operator"}}}},
		"no flavor":                  {ui.Needs{Sizes: []ui.Size{{CPUs: 16, Memory: 1024}}}, []missingJSON{{Kind: "flavor", CPUs: 16, RAM: 1024, Mends: []string{"operator"}}}},
		"the smallest one that fits is over the quota": {ui.Needs{Sizes: []ui.Size{{Memory: 2048}}}, []missingJSON{{Kind: "quota", Name: "cores", Mends: []string{"project", "operator"}}}},
		"two servers where there is room for one":      {ui.Needs{Sizes: []ui.Size{{}, {}}}, []missingJSON{{Kind: "quota", Name: "instances", Mends: []string{"project", "operator"}}}},
	} {
		require.Equal(t, c.want, o.missing(c.needs), name)
	}
	containers := newOffer([]openstack.ImageChoice{{Name: "glance.local/nginx:1.22"}}, nil, nil)
	require.Len(t, containers.missing(ui.Needs{Images: []string{""}}), 1, "no server boots from a container image")
}

func TestApplicationsAreComparedWithTheCloudOfTheProject(t *testing.T) {
	var asked atomic.Int64
	var broken atomic.Bool
	broken.Store(true)
	s := newServer(t, func(c *Config) {
		c.Choices = func(_ context.Context, _ identity.Caller, kind, region string) (any, error) {
			asked.Add(1)
			if broken.Load() || region == "nowhere" {
				return nil, errors.New("the cloud is away")
			}
			return map[string]any{"images": []openstack.ImageChoice{}, "flavors": []openstack.FlavorChoice{}, "quota": []openstack.QuotaChoice{}}[kind], nil
		}
	})
	populated := s.populate("demo", "mark")
	works := func(query string) any {
		for _, one := range field(s.call("demo", "", "GET", "/burano/v1/needs"+query, nil, 200), "applications").([]any) {
			if field(one, "id") == populated["package"] {
				return field(one, "works")
			}
		}
		t.Fatal("it is not listed")
		return nil
	}
	require.Nil(t, works(""), "not known, and no error")
	broken.Store(false)
	require.Equal(t, true, works(""))
	before := asked.Load()
	require.Equal(t, true, works(""))
	require.Equal(t, before, asked.Load(), "the cloud was asked a moment ago")
	require.Nil(t, works("?region=nowhere"))
	for _, one := range field(s.call("other", "", "GET", "/burano/v1/needs", nil, 200), "applications").([]any) {
		require.NotEqual(t, populated["package"], field(one, "id"), "a package of another project")
	}
}
