package muranopl_test

import (
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
)

func TestVersionSpecsAdmitWhatMuranoAdmits(t *testing.T) {
	for _, test := range []struct{ spec, admitted, refused string }{
		{"", "0.0.0 1.2.3 9.0.0-a", ""},
		{"*", "0.0.0 1.2.3", ""},
		{"1", "1.0.0 1.9.9", "0.9.9 2.0.0 2.0.0-a 1.0.0-a"},
		{"==1", "1.0.0 1.9.9", "0.9.9 2.0.0"},
		{"=0", "0.0.0 0.9.9", "1.0.0"},
		{"1.2", "1.2.0 1.2.9", "1.1.9 1.3.0"},
		{"1.2.3", "1.2.3", "1.2.4 1.2.3-a"},
		{">1", "2.0.0 2.0.0-a 3.1.0", "1.9.9 1.0.0"},
		{">=1.2", "1.2.0 2.0.0", "1.1.9 1.2.0-a"},
		{"<1", "0.9.9", "1.0.0 1.0.0-a"},
		{"<=1", "0.1.0 1.9.9", "2.0.0 2.0.0-a"},
		{"!=1", "2.0.0 3.0.0", "1.5.0 0.9.0"},
		{"!=1.2.3", "1.2.4 0.9.0", "1.2.3"},
		{">=0.0.3", "0.0.3 1.0.0", "0.0.2"},
		{">=1.2, <3", "1.2.0 2.9.9", "1.1.0 3.0.0"},
		{">1.2.3", "1.2.4", "1.2.3"},
	} {
		t.Run("spec "+test.spec, func(t *testing.T) {
			spec, err := muranopl.ParseSpec(test.spec)
			require.NoError(t, err)
			for _, version := range splitWords(test.admitted) {
				require.True(t, spec.Admits(semver.MustParse(version)), version)
			}
			for _, version := range splitWords(test.refused) {
				require.False(t, spec.Admits(semver.MustParse(version)), version)
			}
		})
	}
	for _, wrong := range []string{"x", "1.2.3.4", ">", "1..2", "~1", "1.2.3-", "99999999999999999999"} {
		_, err := muranopl.ParseSpec(wrong)
		require.Error(t, err, wrong)
	}
	require.Equal(t, "==0", muranopl.RequirementSpec(""))
}
