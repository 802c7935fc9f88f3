package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestACopyMayAskForWhatItsSourceHasAskedFor(t *testing.T) {
	for _, c := range []struct {
		size, source string
		holds        bool
	}{
		{"1500Mi", "2Gi", true}, // the source was made of a claim of 1500Mi
		{"2Gi", "2Gi", true},
		{"1", "1Gi", true},
		{"3Gi", "2Gi", true},
		{"1Gi", "2Gi", false},
		{"1G", "1Gi", true},
		{"2000Mi", "2500Mi", false},
	} {
		if got := holds(resource.MustParse(c.size), resource.MustParse(c.source)); got != c.holds {
			t.Errorf("a claim of %s holds %s: %v, and not %v", c.size, c.source, got, c.holds)
		}
	}
}
