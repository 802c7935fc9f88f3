package catalog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheCacheKnowsWhatAPackageTakes(t *testing.T) {
	sized := func(name string, files int) *Package {
		content := map[string][]byte{"manifest.yaml": []byte("FullName: " + name + "\nType: Library\n")}
		for i := range files {
			content[fmt.Sprintf("Resources/%d%s", i, strings.Repeat("x", 400))] = nil
		}
		p, err := ReadFiles(content)
		require.NoError(t, err)
		return p
	}
	// Four thousand empty files cost memory: their names and entries.
	p := sized("org.A", 4000)
	require.Greater(t, p.held, 4000*(400+ofFile))
	cache := newPackageCache()
	most := maxCached / p.held
	for i := range most + 10 {
		cache.put(fmt.Sprint(i), p)
		require.LessOrEqual(t, cache.bytes, maxCached)
	}
	_, there := cache.get("0")
	require.False(t, there, "the one that was not used for longest goes")
	for i := range most {
		_, there := cache.get(fmt.Sprint(i + 10))
		require.True(t, there)
	}
	for i := range most + 10 {
		cache.drop(fmt.Sprint(i))
	}
	require.Zero(t, cache.bytes)
}
