package api

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAClusterIsDescribedToThoseWhoMaySeeIt(t *testing.T) {
	s := newServer(t)
	mine := s.settle("demo", "demos")
	path := "/burano/v1/environments/" + mine["environment"] + "/clusters/"
	require.Equal(t, mine["environment"]+"/"+mine["cluster"], field(s.call("demo", "", "GET", path+mine["cluster"], nil, 200), "name"))
	s.call("demo", "", "GET", path+"nothing", nil, 404)
	s.call("other", "", "GET", path+mine["cluster"], nil, 403)
}
