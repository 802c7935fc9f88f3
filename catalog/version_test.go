package catalog_test

import (
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/burano/burano/catalog/muranopl"
)

func TestVersionsInManifestsMeanWhatMuranoMeans(t *testing.T) {
	for spec, c := range map[string]struct{ admits, refuses []string }{
		"":           {admits: []string{"0.0.0", "7.1.2"}},
		"*":          {admits: []string{"0.0.0"}},
		"0":          {[]string{"0.0.0", "0.9.3"}, []string{"1.0.0", "1.0.0-0"}},
		"=0":         {[]string{"0.1.0"}, []string{"1.0.0"}},
		"==1":        {[]string{"1.0.0", "1.9.9"}, []string{"2.0.0", "2.0.0-0", "0.9.9"}},
		"1.2":        {[]string{"1.2.0", "1.2.7"}, []string{"1.3.0", "1.1.9"}},
		"1.2.3":      {[]string{"1.2.3"}, []string{"1.2.4"}},
		">1":         {[]string{"2.0.0", "2.0.0-0"}, []string{"1.9.9"}},
		">=1.2":      {[]string{"1.2.0"}, []string{"1.1.9"}},
		"<1":         {[]string{"0.9.9"}, []string{"1.0.0-0", "1.0.0"}},
		"<=1":        {[]string{"1.9.9"}, []string{"2.0.0-0"}},
		"!=1":        {[]string{"2.0.0"}, []string{"1.5.0"}},
		">=1.2, <2":  {[]string{"1.2.0", "1.9.0"}, []string{"1.1.0", "2.0.0"}},
		"!=1.2.3":    {[]string{"1.2.4"}, []string{"1.2.3"}},
		">1.2.3-rc1": {[]string{"1.2.3"}, []string{"1.2.3-alpha"}},
	} {
		s, err := muranopl.ParseSpec(spec)
		require.NoError(t, err, spec)
		for _, version := range c.admits {
			require.True(t, s.Admits(semver.MustParse(version)), "%q should admit %s", spec, version)
		}
		for _, version := range c.refuses {
			require.False(t, s.Admits(semver.MustParse(version)), "%q should refuse %s", spec, version)
		}
	}
	for _, spec := range []string{"soon", "1.2.3.4", ">", "1.x", "99999999999999999999", ">=1.99999999999999999999"} {
		_, err := muranopl.ParseSpec(spec)
		require.Error(t, err, spec)
	}
}

func TestAPartialVersionAdmitsExactlyWhatItBegins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Uint64Range(0, 3)
		version := semver.New(number.Draw(t, "major"), number.Draw(t, "minor"), number.Draw(t, "patch"), "", "")
		major, minor := number.Draw(t, "spec major"), number.Draw(t, "spec minor")
		s, err := muranopl.ParseSpec(semver.New(major, minor, 0, "", "").Original()[:3])
		require.NoError(t, err)
		require.Equal(t, version.Major() == major && version.Minor() == minor, s.Admits(version))
	})
}
